"""The stores that must pass the contract suite, and be equal to the model. A new store is one line here."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from msgspec.structs import replace

from penstock import MemoryStore
from penstock.clock import Clock
from penstock.stores.log.bucket import Listed
from penstock.stores.log.directory import DirectoryBucket
from penstock.stores.log.store import DIRECTORY, LogOptions, LogStore
from penstock.stores.port import Store
from penstock.testing import FakeClock
from penstock.testing.bucket import MemoryBucket

T = TypeVar("T")

# Each commit is followed by a snapshot soon, so that reopening reads one and some records.
SNAPSHOTS = LogOptions(listing_s=600.0, snapshot_bytes=4096, snapshot_records=5)


class Maker(NamedTuple):
    """How a test opens a store in a directory of its own; one that is durable can be opened there again."""

    make: Callable[[Clock, Path], Store]
    durable: bool


class Begun(LogStore):
    """A log that exists: looking at one that does not is NotFound, which is a test of its own."""

    async def open(self) -> None:
        await super().open()
        await self.commit([])


class Shared(MemoryBucket):
    """One bucket for all stores that a test opens, one after the other."""

    async def close(self) -> None:
        """The next store uses it too."""


class AtOnce(ThreadPoolExecutor):
    """Works in the caller's own thread, so that nobody waits for anything but the clock."""

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(work(*arguments, **named))
        return done


class Stamped(DirectoryBucket):
    """A directory in the time of the test, which is not the time of the file system."""

    def __init__(self, root: Path, clock: Clock) -> None:
        super().__init__(root, clock)
        self._now = clock.now
        self._small._thread = self._large._thread = AtOnce(1)

    async def list(self, prefix: str) -> Sequence[Listed]:
        return [replace(listed, stamped_at=self._now()) for listed in await super().list(prefix)]


_SHARED: dict[Path, Shared] = {}


def _in_memory(clock: Clock, path: Path) -> Store:
    return Begun(_SHARED.setdefault(path, Shared(clock)), clock, SNAPSHOTS)


STORES = {
    "memory": Maker(lambda clock, _: MemoryStore(clock), durable=False),
    "log": Maker(_in_memory, durable=True),
    "directory": Maker(lambda clock, path: Begun(Stamped(path, clock), clock, DIRECTORY), durable=True),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Store:
    """Each store in turn."""
    maker = STORES[request.param]
    return maker.make(clock, tmp_path)
