"""Records what is done to a directory, and makes the directories that a crash in the middle of it may leave.

The worst that POSIX allows is assumed. Of a file only what was synced is sure: what was written since may be lost, cut
at a block, or be zeros. Of a directory only the names as of its last sync are sure: each later change of a name may
have come through or not, whatever became of its neighbours. Syncing a file says nothing about its name, and syncing a
directory nothing about the name of that.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from penstock.stores.log.directory import Disk
from penstock.testing import FakeClock

BLOCK: Final = 512


class Wrote(NamedTuple):
    node: int
    data: bytes


class Synced(NamedTuple):
    node: int


class Named(NamedTuple):
    """From now on the name means this file or folder; None is no more."""

    folder: int
    name: str
    node: int | None


class Claimed(NamedTuple):
    """What a caller has begun or been told: from now on the key has one of these objects; None is no object."""

    key: str
    objects: frozenset[bytes | None]


Operation = Wrote | Synced | Named | Claimed


class Recorder:
    """Disks that work on a real directory below ``base`` and write down what they do."""

    BASE: Final = 0

    def __init__(self, base: Path, *, most_in_write: int = 1 << 30) -> None:
        self.operations: list[Operation] = []
        self.folders = {self.BASE}
        self._base = base
        self.most_in_write = most_in_write
        self._lock = Lock()
        self._nodes = 1
        self._open: dict[int, int] = {}
        self._names: dict[tuple[int, str], int] = {}

    def disk(self, sync: Callable[[int], bool] = lambda _: True) -> Disk:
        """A disk that records; ``sync`` is asked whether a sync of that file or folder is to be made at all."""

        def fsync(opened: int) -> None:
            node = self._open.get(opened)
            if node is not None and sync(node):
                with self._lock:
                    self.operations.append(Synced(node))

        return Disk(
            open=self._record_open,
            write=self._record_write,
            fsync=fsync,
            close=self._record_close,
            mkdir=self._record_mkdir,
            link=self._record_link,
            unlink=self._record_unlink,
            mounts=str,
        )

    def is_root(self, node: int) -> bool:
        """Whether this is the folder of the bucket."""
        return self._names.get((self.BASE, "bucket")) == node

    def claim(self, key: str, *objects: bytes | None) -> None:
        self.operations.append(Claimed(key, frozenset(objects)))

    def _record_open(self, path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        with self._lock:
            opened = os.open(path, flags, mode, dir_fd=dir_fd)
            place = self._place(path, dir_fd)
            if flags & os.O_CREAT and place:
                self._name(place, self._new())
            node = self.BASE if path == self._base else place and self._names.get(place)
            if node is not None:
                self._open[opened] = node
            return opened

    def _record_write(self, opened: int, data: memoryview) -> int:
        with self._lock:
            count = os.write(opened, data[: self.most_in_write])
            self.operations.append(Wrote(self._open[opened], bytes(data[:count])))
            return count

    def _record_close(self, opened: int) -> None:
        with self._lock:
            self._open.pop(opened, None)
            os.close(opened)

    def _record_mkdir(self, path: str | Path, *, dir_fd: int | None = None) -> None:
        with self._lock:
            os.mkdir(path, dir_fd=dir_fd)
            place, node = self._place(path, dir_fd), self._new()
            assert place is not None, "a directory was made outside of the base"
            self.folders.add(node)
            self._name(place, node)

    def _record_link(self, draft: str, name: str, *, src_dir_fd: int, dst_dir_fd: int, follow_symlinks: bool) -> None:
        with self._lock:
            os.link(draft, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)
            self._name((self._open[dst_dir_fd], name), self._names[self._open[src_dir_fd], draft])

    def _record_unlink(self, name: str, *, dir_fd: int) -> None:
        with self._lock:
            os.unlink(name, dir_fd=dir_fd)
            self._name((self._open[dir_fd], name), None)

    def _place(self, path: str | Path, dir_fd: int | None) -> tuple[int, str] | None:
        if dir_fd is not None:
            return self._open[dir_fd], str(path)
        above = Path(path).parent
        return (self.BASE, Path(path).name) if above == self._base else None

    def _new(self) -> int:
        self._nodes += 1
        return self._nodes

    def _name(self, place: tuple[int, str], node: int | None) -> None:
        self.operations.append(Named(*place, node))
        if node is None:
            del self._names[place]
        else:
            self._names[place] = node


class Crash:
    """What may be left when the machine stops after these operations."""

    def __init__(self, operations: Sequence[Operation], folders: set[int]) -> None:
        self.claims: dict[str, frozenset[bytes | None]] = {}
        self._folders = folders
        # What a name may mean and a file may hold: the first for certain, those after it since the last sync.
        self._names: dict[tuple[int, str], list[int | None]] = {}
        self._data: dict[int, tuple[bytes, bytes]] = {}
        for operation in operations:
            self._apply(operation)

    def _apply(self, operation: Operation) -> None:
        match operation:
            case Wrote(node, data):
                sure, all_of_it = self._data.get(node, (b"", b""))
                self._data[node] = sure, all_of_it + data
            case Synced(node):
                _, all_of_it = self._data.get(node, (b"", b""))
                self._data[node] = all_of_it, all_of_it
                self._names.update({place: [was[-1]] for place, was in self._names.items() if place[0] == node})
            case Named(folder, name, node):
                self._names.setdefault((folder, name), [None]).append(node)
            case Claimed(key, objects):
                self.claims[key] = objects

    def trees(self, seeds: int) -> Iterator[dict[str, bytes]]:
        """Path -> bytes of what is left: all that is unsure lost, all of it kept, then mixtures drawn by seed."""
        yield self._tree(lambda _: 0)
        yield self._tree(lambda choices: choices - 1)
        for seed in range(seeds):
            yield self._tree(_drawn(FakeClock(seed=seed)))

    def _tree(self, choose: Callable[[int], int]) -> dict[str, bytes]:
        names = {place: was[choose(len(was))] for place, was in self._names.items()}
        data = {node: _left(*held, choose) for node, held in self._data.items()}
        tree: dict[str, bytes] = {}
        self._grow(tree, (Recorder.BASE, ""), names, data)
        return tree

    def _grow(
        self,
        tree: dict[str, bytes],
        below: tuple[int, str],
        names: dict[tuple[int, str], int | None],
        data: dict[int, bytes],
    ) -> None:
        for (folder, name), node in names.items():
            if folder != below[0] or node is None:
                continue
            path = f"{below[1]}{name}"
            if node in self._folders:
                tree[f"{path}/"] = b""
                self._grow(tree, (node, f"{path}/"), names, data)
            else:
                tree[path] = data.get(node, b"")


def _drawn(clock: FakeClock) -> Callable[[int], int]:
    return lambda choices: int(clock.secret(), 16) % choices


def _left(sure: bytes, all_of_it: bytes, choose: Callable[[int], int]) -> bytes:
    if sure == all_of_it:
        return sure
    cuts = range(len(sure), len(all_of_it), BLOCK)
    choice = choose(len(cuts) + 2)
    if choice < len(cuts):
        return all_of_it[: cuts[choice]]
    zeros = sure.ljust(len(all_of_it), b"\0")
    return zeros if choice == len(cuts) else all_of_it


def build(tree: dict[str, bytes], base: Path) -> None:
    """Make the directory that a crash has left; a folder comes before what is in it."""
    for path, data in tree.items():
        if path.endswith("/"):
            (base / path).mkdir()
        else:
            (base / path).write_bytes(data)
