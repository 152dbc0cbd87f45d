"""Buckets in memory with something wrong, or with an eye on what is asked of them."""

import builtins
from collections import Counter
from collections.abc import Sequence

from penstock.clock import Clock
from penstock.errors import Busy, Unavailable
from penstock.stores.log.bucket import Listed, Taken
from penstock.testing.bucket import MemoryBucket


class Shared(MemoryBucket):
    """One bucket for several stores; closing one closes nothing. It counts what is asked of it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.asked: Counter[str] = Counter()
        # What goes wrong at the next puts of records, one after the other: "before", "after", "full".
        self.faults: builtins.list[str] = []

    async def put(self, key: str, data: bytes | bytearray) -> None:
        self.asked["put"] += 1
        fault = self.faults.pop(0) if self.faults and key.startswith("log/") else ""
        if fault == "before":
            raise Unavailable("no answer, and nothing was done")
        if fault == "full":
            raise Busy("full", retry_after_s=1.0)
        await super().put(key, data)
        if fault == "after":
            raise Unavailable("it was done, but the answer was lost")

    async def get(self, key: str) -> bytes:
        self.asked["get"] += 1
        return await super().get(key)

    async def list(self, prefix: str) -> Sequence[Listed]:
        self.asked["list"] += 1
        return await super().list(prefix)

    async def close(self) -> None:
        """Others use it too."""

    def keys(self, prefix: str) -> builtins.list[str]:
        """What is there, for a test's own eyes."""
        return sorted(key for key in self._objects if key.startswith(prefix))

    def damage(self, key: str, data: bytes) -> None:
        """Put other bytes where an object was, which no bucket does."""
        self._objects[key] = (data, self._clock.now())

    def bytes_of(self, key: str) -> bytes:
        """An object as it is."""
        return self._objects[key][0]

    def lose(self, key: str) -> None:
        """Take an object away, which only ``clean`` may."""
        del self._objects[key]


class LastPutWins(MemoryBucket):
    """Ignores the condition of a create-only put, as some stores do."""

    async def put(self, key: str, data: bytes | bytearray) -> None:
        self._objects.pop(key, None)
        await super().put(key, data)


class Forgetful(MemoryBucket):
    """Says that a key is taken, but does not show what was put."""

    async def list(self, prefix: str) -> Sequence[Listed]:
        return [listed for listed in await super().list(prefix) if not listed.key.startswith("probe/")]


class Silent(MemoryBucket):
    """Says that every key is taken, so nothing is ever there."""

    async def put(self, key: str, data: bytes | bytearray) -> None:
        del data
        raise Taken(key)
