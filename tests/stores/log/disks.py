"""What the tests of the directory bucket share: calls that fail or wait, real small file systems, a bucket to look at."""

import os
import stat
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest

from penstock.clock import SystemClock
from penstock.errors import PenstockError
from penstock.stores.log.directory import DirectoryBucket, Disk

HUNG_S: Final = 10.0
LARGE: Final = bytes((1 << 20) + 1)


def is_folder(opened: int) -> bool:
    return stat.S_ISDIR(os.fstat(opened).st_mode)


def is_file(opened: int) -> bool:
    return not is_folder(opened)


class Fault:
    """A system call that fails with an error while ``on``, where the first argument is one of those it is to fail for."""

    def __init__(self, call: Callable[..., Any], code: int, among: Callable[[Any], bool] = lambda _: True) -> None:
        self.on = True
        self._call = call
        self._code = code
        self._among = among

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.on and self._among(args[0]):
            raise OSError(self._code, os.strerror(self._code), args[0])
        return self._call(*args, **named)


class Gate:
    """A sync that waits at the gate until it is opened."""

    def __init__(self) -> None:
        self.reached = Event()
        self.opened = Event()

    def fsync(self, opened: int) -> None:
        self.reached.set()
        assert self.opened.wait(HUNG_S)
        os.fsync(opened)


@contextmanager
def tmpfs(point: Path, options: str) -> Iterator[Path]:
    """A file system in memory, which is always unmounted."""
    point.mkdir()
    run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(point))
    try:
        yield point
    finally:
        run("umount", str(point))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own words
    if done.returncode != 0:
        pytest.fail(
            f"this test needs a real file system of its own, and root to mount it: {' '.join(command)}: {done.stderr}"
        )


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may do everything: be somebody else for a while, with all threads."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


@asynccontextmanager
async def opened(root: Path, disk: Disk | None = None) -> AsyncIterator[DirectoryBucket]:
    bucket = DirectoryBucket(root, SystemClock(), disk)
    try:
        yield bucket
    finally:
        await bucket.close()


def names(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.iterdir())


async def keys(bucket: DirectoryBucket, prefix: str = "") -> list[str]:
    return sorted(found.key for found in await bucket.list(prefix))


async def each_method_raises(kind: type[PenstockError], bucket: DirectoryBucket, key: str) -> None:
    for call in (bucket.get(key), bucket.put(key, b"mine"), bucket.delete(key), bucket.list("log/")):
        with pytest.raises(kind):
            await call
