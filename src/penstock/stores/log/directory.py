"""A bucket in a directory: one file per object, linked into place whole and never changed.

    <root>/log/00000000000000000042.jsonl   an object: its key is its path below the root
    <root>/.tmp/<32 hex digits>             a draft, no object yet; one that a crash left goes with the first put of a
                                            process, once it is a day old

A put writes a draft, syncs it, links it to its name and syncs the directory of that name. The draft has a name on
purpose. Of a file without one (``O_TMPFILE``) the first sync makes a link count of zero durable: on ext4 without a
journal a quarter of the objects put that way were gone after a crash and ``e2fsck``. And as the count is right, a
reader need sync only the directory before it answers from what another process has linked.
"""

import errno
import logging
import os
import re
import stat
from asyncio import to_thread
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from threading import Lock
from typing import Final, NamedTuple

from penstock.clock import Clock
from penstock.errors import Invalid, NotFound
from penstock.stores.log.bucket import Listed, Taken, check_key, check_prefix
from penstock.stores.log.clerk import FOLDER, Clerk, Disk, Syncs

__all__ = ["DirectoryBucket", "Disk", "network_type"]

_log: Final = logging.getLogger("penstock")

_DRAFTS: Final = ".tmp"
_STRAY_AFTER_S: Final = 86_400.0

# Objects above this many bytes have a thread of their own, so that putting a snapshot holds up no commit.
IN_ORDER_BYTES: Final = 1 << 20

# No symbolic link is followed here either. NONBLOCK: a FIFO must not hang us.
_OBJECT: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

# Of a line of mountinfo: the mount's own number, that of the mount it is on, its point, its type.
_MOUNT: Final = re.compile(r"^(\d+) (\d+) [^ \n]+ [^ \n]+ ([^ \n]+) .*? - ([^ \n]+)", re.MULTILINE)
_NETWORK: Final = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|beegfs|ceph|coda|fuse(\..*)?|gfs2?|glusterfs|gpfs|lustre|ocfs2|orangefs|virtiofs"
)


class DirectoryBucket:
    """Objects as files. The first put makes the directories that are missing; looking makes none.

    One thread carries out the calls in the order in which they were made (another puts the objects above 1 MiB, in no
    order with the rest). Those that are made in one turn of the event loop, as by ``gather``, share the sync of a
    directory, up to 64 of them. A call that is cancelled before its turn has come is not carried out.

    Once a sync of a directory has failed, every call is Unavailable until the bucket is opened again: the kernel
    still shows the names that it could not write, and answers the next sync as if it had.

    On a network file system it works as far as that does; the first put logs a warning.
    """

    def __init__(self, root: Path, clock: Clock, disk: Disk | None = None) -> None:
        self._root = Path(os.path.realpath(root))
        self._clock = clock
        self._disk = disk or Disk()
        syncs = Syncs(self._root, self._disk)
        self._small = Clerk(self._root, self._disk, syncs)
        self._large = Clerk(self._root, self._disk, syncs)
        self._tidied = Lock()

    async def put(self, key: str, data: bytes | bytearray) -> None:
        """Create the file: answered when it, its directory and all directories above are synced."""
        check_key(key)
        clerk = self._large if len(data) > IN_ORDER_BYTES else self._small
        await clerk.do(partial(self._put, clerk, key, data, self._clock.secret()))

    async def get(self, key: str) -> bytes:
        """Answer the file, once its directory is synced: another process may have linked it this instant."""
        check_key(key)
        data: bytes = await self._small.do(partial(self._get, key))
        return data

    async def list(self, prefix: str) -> Sequence[Listed]:
        """Show the files below a folder, stamped with the time of writing. Names that are no keys are passed over."""
        check_prefix(prefix)
        found: Sequence[Listed] = await self._small.do(partial(self._list, prefix.removesuffix("/")))
        return found

    async def delete(self, key: str) -> None:
        """Remove the file and sync its directory; the directory stays."""
        check_key(key)
        await self._small.do(partial(self._delete, key))

    async def close(self) -> None:
        """End the threads, once they have done what they were given. Closing again waits for the same."""
        clerks = (self._small, self._large)
        for clerk in clerks:
            clerk.dismiss()
        for clerk in clerks:
            await to_thread(clerk.join)

    def _put(self, clerk: Clerk, key: str, data: bytes | bytearray, draft: str) -> None:
        folder, _, name = key.rpartition("/")
        there = clerk.make(folder)
        # Only the link decides. This look spares the loser of a race the writing.
        if _is_object(name, there):
            raise Taken(key)
        drafts = clerk.make(_DRAFTS)
        self._tidy(drafts)
        file = self._disk.open(draft, _DRAFT, 0o666, dir_fd=drafts)
        try:
            self._write(file, data)
            self._disk.link(draft, name, src_dir_fd=drafts, dst_dir_fd=there, follow_symlinks=False)
        except FileExistsError:
            raise Taken(key) from None
        finally:
            with suppress(OSError):
                self._disk.unlink(draft, dir_fd=drafts)
        clerk.touch(folder)

    def _write(self, file: int, data: bytes | bytearray) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[self._disk.write(file, left) :]
            self._disk.fsync(file)
        finally:
            self._disk.close(file)

    def _get(self, key: str) -> bytes:
        folder, _, name = key.rpartition("/")
        try:
            file = self._disk.open(name, _OBJECT, dir_fd=self._small.enter(folder))
        except FileNotFoundError:
            raise NotFound("there is no such object", key=key) from None
        try:
            data = _read(file, name)
        finally:
            self._disk.close(file)
        self._small.touch(folder)
        return data

    def _list(self, folder: str) -> Sequence[Listed]:
        with suppress(FileNotFoundError):
            return [*_walk(folder, self._small.enter(folder))]
        return ()

    def _delete(self, key: str) -> None:
        folder, _, name = key.rpartition("/")
        with suppress(FileNotFoundError):
            there = self._small.enter(folder)
            # Also when it is gone already: whoever removed it may not have synced yet.
            self._small.touch(folder)
            if _is_object(name, there):
                self._disk.unlink(name, dir_fd=there)

    def _tidy(self, drafts: int) -> None:
        # Once, by whichever thread comes first; it is never released.
        if not self._tidied.acquire(blocking=False):
            return
        with suppress(OSError):
            kind = network_type(self._disk.mounts(), self._root)
            if kind is not None:
                _log.warning("network_file_system root=%s type=%s", self._root, kind)
        with suppress(OSError), os.scandir(drafts) as found:
            # By the time of the file system, which has stamped the drafts too: two clocks are not compared.
            os.utime(drafts)
            before = os.fstat(drafts).st_mtime - _STRAY_AFTER_S
            for stray in found:
                if stray.stat(follow_symlinks=False).st_mtime < before:
                    self._disk.unlink(stray.name, dir_fd=drafts)


def network_type(mounts: str, path: PurePath) -> str | None:
    """Say on which kind of network file system a path is, if any, by the lines of ``/proc/self/mountinfo``."""
    found = [_Mount(*fields) for fields in _MOUNT.findall(mounts)]
    names = {mount.name for mount in found}
    # What everything is mounted on is not shown.
    inside = [mount for mount in found if mount.above not in names - {mount.name}]
    kind = ""
    while on_the_way := [mount for mount in inside if path.is_relative_to(mount.point())]:
        # Of two mounts on one mount, the outer hides the inner: it came later, or the inner would be on it.
        here = min(on_the_way, key=lambda mount: len(mount.point()))
        kind = here.kind
        inside = [mount for mount in found if mount.above == here.name != mount.name]
    return kind if _NETWORK.fullmatch(kind) else None


class _Mount(NamedTuple):
    name: str
    above: str
    escaped: str
    kind: str

    def point(self) -> str:
        return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), self.escaped)


def _is_object(name: str, there: int) -> bool:
    # Asked before every put, and most find nothing: this look raises nothing then.
    if not os.access(name, os.F_OK, dir_fd=there, follow_symlinks=False):
        return False
    with suppress(FileNotFoundError):
        _check_plain(os.stat(name, dir_fd=there, follow_symlinks=False), name)
        return True
    return False


def _check_plain(about: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EISDIR, "it is not a plain file", name)


def _read(file: int, name: str) -> bytes:
    _check_plain(os.fstat(file), name)
    with open(file, "rb", buffering=0, closefd=False) as stream:
        return stream.readall()


def _walk(folder: str, opened: int) -> Iterator[Listed]:
    with os.scandir(opened) as found:
        for entry in found:
            key = f"{folder}/{entry.name}" if folder else entry.name
            with suppress(Invalid, FileNotFoundError):
                check_key(key)
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk_below(key, opened)
                else:
                    about = entry.stat(follow_symlinks=False)
                    _check_plain(about, entry.name)
                    yield Listed(key, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC))


def _walk_below(folder: str, above: int) -> Iterator[Listed]:
    opened = os.open(folder.rpartition("/")[2], FOLDER, dir_fd=above)
    try:
        yield from _walk(folder, opened)
    finally:
        os.close(opened)
