"""Memory stores with something wrong, for seeing what the broker makes of it."""

import asyncio
from collections.abc import Callable, Sequence

from penstock import MemoryStore
from penstock.clock import Clock
from penstock.domain.commands import Command
from penstock.domain.events import Record
from penstock.domain.outcome import Outcome


class SlowStore(MemoryStore):
    """Commits when it is told to, and keeps count of what it was given."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.go = asyncio.Event()
        self.batches: list[int] = []

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = lambda: True) -> list[Outcome]:
        self.batches.append(len(batch))
        await self.go.wait()
        return await super().commit(batch, awaited)


class FailingStore(MemoryStore):
    """Fails as often as it is told to; then it works again."""

    def __init__(self, clock: Clock, error: BaseException, *, times: int) -> None:
        super().__init__(clock)
        self.error = error
        self.times = times

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = lambda: True) -> list[Outcome]:
        if self.times > 0:
            self.times -= 1
            raise self.error.with_traceback(None)
        return await super().commit(batch, awaited)


class ForgetfulStore(MemoryStore):
    """Answers one command too few."""

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = lambda: True) -> list[Outcome]:
        return (await super().commit(batch, awaited))[:-1]


class SilentStore(MemoryStore):
    """Tells nobody of its records: every wake-up is lost."""

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        del hear
        return lambda: None
