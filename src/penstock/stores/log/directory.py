"""A bucket in a directory: one file per object, linked into place whole and never changed.

    <root>/log/00000000000000000042.jsonl   an object: its key is its path below the root
    <root>/.tmp/<32 hex digits>             a draft, no object yet; one left by a crash goes after a day

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
from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

from penstock.clock import Clock
from penstock.errors import Busy, Corrupt, Denied, Invalid, NotFound, PenstockError, Unavailable
from penstock.stores.log.bucket import Listed, Taken, check_key, check_prefix

_log: Final = logging.getLogger("penstock")

_DRAFTS: Final = ".tmp"
_STRAY_AFTER: Final = timedelta(days=1)
_RETRY_FULL_S: Final = 1.0

# Objects above this many bytes have a thread of their own, so that a snapshot holds up no commit.
_LARGE: Final = 1 << 20

# No more calls than this wait for each other.
_MOST_IN_ROUND: Final = 64

# Below the root no symbolic link is followed, so no key leads out of it. NONBLOCK: a FIFO must not hang us.
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OBJECT: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EOPNOTSUPP, errno.ENOSYS})
_FOREIGN: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR})

_NETWORK: Final = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|beegfs|ceph|coda|fuse(\..*)?|gfs2?|glusterfs|gpfs|lustre|ocfs2|orangefs|virtiofs"
)


class Disk(NamedTuple):
    """The system calls that matter to a crash, as a value: tests pass others, to watch them or to make them fail."""

    open: Callable[..., int] = os.open
    write: Callable[..., int] = os.write
    fsync: Callable[[int], None] = os.fsync
    close: Callable[[int], None] = os.close
    mkdir: Callable[..., None] = os.mkdir
    link: Callable[..., None] = os.link
    unlink: Callable[..., None] = os.unlink
    mounts: Callable[[], str] = partial(Path("/proc/self/mountinfo").read_text, errors="surrogateescape")


class DirectoryBucket:
    """Objects as files. The first put makes the directories that are missing; looking makes none.

    One thread carries out the calls in the order they were made (another puts the objects above 1 MiB), and those
    that wait together share a sync. On a network file system it works as far as that does, and logs a warning.
    """

    def __init__(self, root: Path, clock: Clock, disk: Disk | None = None) -> None:
        self._root = root.resolve()
        self._clock = clock
        self._disk = disk or Disk()
        self._small = _Clerk(self._root, self._disk)
        self._large = _Clerk(self._root, self._disk)
        self._tidied = False

    async def put(self, key: str, data: bytes) -> None:
        """Create the file: answered when it, its directory and all directories above are synced."""
        check_key(key)
        clerk = self._large if len(data) > _LARGE else self._small
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
        """End the threads, once they have done what they were given."""
        await self._small.close()
        await self._large.close()

    def _put(self, clerk: "_Clerk", key: str, data: bytes, draft: str) -> None:
        folder, _, name = key.rpartition("/")
        there = clerk.make(folder)
        # Only the link decides. This look spares the loser of a race the writing.
        if os.access(name, os.F_OK, dir_fd=there, follow_symlinks=False):
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

    def _write(self, file: int, data: bytes) -> None:
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
            data = _read(file)
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
            self._disk.unlink(name, dir_fd=there)

    def _tidy(self, drafts: int) -> None:
        if self._tidied:
            return
        self._tidied = True
        kind = network_type(self._disk.mounts(), self._root)
        if kind is not None:
            _log.warning("network_file_system root=%s type=%s", self._root, kind)
        before = (self._clock.now() - _STRAY_AFTER).timestamp()
        with os.scandir(drafts) as found:
            for stray in found:
                with suppress(OSError):
                    if stray.stat(follow_symlinks=False).st_mtime < before:
                        self._disk.unlink(stray.name, dir_fd=drafts)


class _Clerk:
    """One thread that carries out calls in rounds: all that wait, then one sync of each directory, then the answers.

    A folder that is entered for the first time has the one above synced too: another process may have made it this
    instant, and an object is no more durable than the names that lead to it.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        self._root = root
        self._disk = disk
        self._thread = ThreadPoolExecutor(1, "penstock-directory")
        self._calls: deque[tuple[Callable[[], object], Future[Any]]] = deque()
        self._open: dict[str, int] = {}
        self._touched: set[str] = set()
        self._durable: set[str] = set()

    async def do(self, work: Callable[[], object]) -> Any:
        """Have the work done by the thread. An OSError becomes an error that tells the caller what to do."""
        answer: Future[Any] = get_running_loop().create_future()
        self._calls.append((work, answer))
        try:
            self._thread.submit(self._round)
        except RuntimeError:
            raise Unavailable("the bucket is closed") from None
        return await answer

    async def close(self) -> None:
        """End the thread after what it was given before."""
        with suppress(Unavailable):
            await self.do(lambda: None)
        self._thread.shutdown()

    def enter(self, folder: str) -> int:
        """Open a folder below the root, or the root as ``""``, for this round."""
        if folder not in self._open:
            above, _, name = folder.rpartition("/")
            if folder:
                self._open[folder] = self._disk.open(name, _FOLDER, dir_fd=self.enter(above))
            else:
                self._open[folder] = self._disk.open(self._root, _FOLDER)
            if folder and folder not in self._durable:
                self.touch(above)
        return self._open[folder]

    def make(self, folder: str) -> int:
        """Open a folder, which is made if it is missing."""
        try:
            return self.enter(folder)
        except FileNotFoundError:
            self._durable.clear()
        above, _, name = folder.rpartition("/")
        with suppress(FileExistsError):
            if folder:
                self._disk.mkdir(name, dir_fd=self.make(above))
            else:
                self._make_path(self._root)
        return self.enter(folder)

    def _make_path(self, path: Path) -> None:
        if not path.parent.exists():
            self._make_path(path.parent)
        with suppress(FileExistsError):
            self._disk.mkdir(path)

    def touch(self, folder: str) -> None:
        """Have a folder synced before anybody is answered."""
        self._touched.add(folder)

    def _round(self) -> None:
        calls = [self._calls.popleft() for _ in range(min(len(self._calls), _MOST_IN_ROUND))]
        outcomes = [_outcome(work) for work, _ in calls]
        failure = _outcome(self._end)
        for (_, answer), outcome in zip(calls, outcomes, strict=True):
            told = outcome if failure is None or isinstance(outcome, Exception) else Unavailable(str(failure))
            with suppress(RuntimeError):  # its event loop is gone
                answer.get_loop().call_soon_threadsafe(_answer, answer, told)

    def _end(self) -> None:
        try:
            for folder in self._touched:
                self._disk.fsync(self._open[folder])
            if "" in self._open and "" not in self._durable:
                self._sync_above(os.fstat(self._open[""]).st_dev)
            self._durable.update(self._open)
        finally:
            for opened in self._open.values():
                self._disk.close(opened)
            self._open.clear()
            self._touched.clear()

    def _sync_above(self, device: int) -> None:
        # None of our processes has made a directory that we may not read, or a file system.
        for path in self._root.parents:
            with suppress(PermissionError):
                opened = self._disk.open(path, _FOLDER)
                try:
                    if os.fstat(opened).st_dev != device:
                        return
                    self._disk.fsync(opened)
                finally:
                    self._disk.close(opened)


def network_type(mounts: str, path: PurePath) -> str | None:
    """Say on which kind of network file system a path is, if any, by the lines of ``/proc/self/mountinfo``."""
    longest, kind = 0, ""
    for line in filter(None, mounts.split("\n")):
        mount, _, rest = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mount.split(" ")[4])
        # Of two mounts on one point the later hides the earlier.
        if len(point) >= longest and path.is_relative_to(point):
            longest, kind = len(point), rest.split(" ")[0]
    return kind if _NETWORK.fullmatch(kind) else None


def _outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except OSError as error:
        return _told(error)
    except Exception as error:  # noqa: BLE001 - the caller is told, whatever it is; the thread goes on
        return error


def _told(error: OSError) -> PenstockError:
    facts = {"reason": error.strerror, "path": error.filename}
    if error.errno in _FULL:
        return Busy("the bucket is full, nothing was written", retry_after_s=_RETRY_FULL_S, **facts)
    if error.errno in _DENIED:
        return Denied("the directory of the bucket does not allow this", **facts)
    if error.errno in _FOREIGN:
        return Corrupt("something lies in the bucket that it has not put there", **facts)
    return Unavailable("the directory of the bucket failed", **facts)


def _answer(answer: Future[Any], outcome: object) -> None:
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _read(file: int) -> bytes:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(errno.EISDIR, "it is not a plain file")
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
                    yield Listed(key, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC))


def _walk_below(folder: str, above: int) -> Iterator[Listed]:
    opened = os.open(folder.rpartition("/")[2], _FOLDER, dir_fd=above)
    try:
        yield from _walk(folder, opened)
    finally:
        os.close(opened)
