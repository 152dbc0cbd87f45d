"""The state machine in memory: a store of its own, and the model that every other store is compared with."""

from collections.abc import Callable, Sequence

from penstock.clock import Clock
from penstock.domain.batch import run
from penstock.domain.commands import Command
from penstock.domain.events import Record
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Answer, Query
from penstock.stores.kept import Kept


class MemoryStore:
    """Jobs in this process, gone when it ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept = Kept(clock)

    async def open(self) -> None:
        """There is nothing to get ready."""

    async def close(self) -> None:
        """There is nothing to let go of; the jobs stay as long as this object."""

    async def commit(self, batch: Sequence[Command]) -> list[Outcome]:
        """Apply the batch; nobody sees half of it, as nothing here waits."""
        tables = self._kept.tables
        tables.begin(self._clock.now())
        try:
            outcomes, events = run(tables, batch)
        except BaseException:
            tables.rollback()
            raise
        if events:
            self._kept.keep(Record(self._kept.seq + 1, tables.now, tuple(events)))
        return outcomes

    async def ask(self, query: Query) -> Answer:
        """Look at the tables as they are between two batches."""
        return self._kept.answer(query)

    async def overdue(self) -> Sequence[Command]:
        """Leases by the elapsed clock, deadlines by the wall clock."""
        return self._kept.overdue()

    async def outlived(self) -> Sequence[Command]:
        """Finished jobs past their queue's retention."""
        return self._kept.outlived()

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        """Pass every record on."""
        return self._kept.listen(hear)
