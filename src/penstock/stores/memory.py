"""The state machine in memory, as a store of its own: what every other store does too, without the log."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from math import ceil
from typing import Final, get_args

from msgspec import Struct

from penstock.clock import Clock
from penstock.domain.batch import run
from penstock.domain.commands import Command
from penstock.domain.decide import found
from penstock.domain.events import AnyEvent, Entry, JobEvent, Purged, Record
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Answer, History, Query
from penstock.stores.kept import Kept, link

_OF_ONE_JOB: Final = frozenset(event for event in get_args(AnyEvent) if issubclass(event, JobEvent))


class _Leaf(Struct, frozen=True, gc=False):
    """The events of one commit; in the place of one whose job is gone there may be None."""

    at: datetime
    events: tuple[AnyEvent | None, ...]


class MemoryStore:
    """Jobs in this process, gone when it ends. The history of a job is kept as long as the job, or a little longer."""

    look_s = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hearers: list[Callable[[Record], None]] = []
        self._kept = Kept(clock, self._hearers)
        # By seq; those looked at last stand last. Every event names the commit of its job's event before it.
        self._leaves: OrderedDict[int, _Leaf] = OrderedDict()

    async def open(self) -> None:
        """There is nothing to get ready."""

    async def close(self) -> None:
        """There is nothing to let go of; the jobs stay as long as this object."""

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = lambda: True) -> list[Outcome]:
        """Apply the batch; nobody sees half of it, as nothing here waits."""
        del awaited
        tables = self._kept.tables
        tables.begin(self._clock.now(), tables.seq + 1)
        try:
            outcomes, events = run(tables, batch)
        except BaseException:
            tables.rollback()
            raise
        if events:
            record = Record(tables.seq, tables.now, tuple(events))
            self._write_down(record)
            self._kept.keep(record)
        else:
            tables.rollback()
        return outcomes

    async def ask(self, query: Query) -> Answer:
        """Look at the tables as they are between two batches."""
        return self._history(query) if isinstance(query, History) else self._kept.answer(query)

    async def refresh(self) -> None:
        """Nobody else can commit here."""

    async def overdue(self) -> Sequence[Command]:
        """Leases by the elapsed clock, deadlines by the wall clock."""
        return self._kept.overdue()

    async def outlived(self) -> Sequence[Command]:
        """Finished jobs past their queue's retention."""
        return self._kept.outlived()

    async def parting(self) -> Sequence[Command]:
        """Nobody watches these leases after this process."""
        return ()

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        """Pass every record on."""
        self._hearers.append(hear)
        return lambda: self._hearers.remove(hear)

    def _write_down(self, record: Record) -> None:
        # All at once and by type: this is all that the history costs as long as nobody asks for it.
        kinds = set(map(type, record.events))
        if not kinds.isdisjoint(_OF_ONE_JOB):
            self._leaves[record.seq] = _Leaf(record.at, record.events)
        if Purged in kinds:
            self._sweep(sum(event.count for event in record.events if isinstance(event, Purged)))

    def _sweep(self, gone: int) -> None:
        """Forget events whose job is gone: of twice the share of the leaves that these jobs were of the jobs.

        So they are never much more than those of the jobs there are, and no commit waits for a look at all of them.
        """
        jobs = {name: tenant.jobs for name, tenant in self._kept.tables.tenants.items()}
        share = min(1.0, 2 * gone / (gone + sum(map(len, jobs.values()))))
        for _ in range(ceil(share * len(self._leaves))):
            seq, leaf = self._leaves.popitem(last=False)
            events = tuple(
                event if isinstance(event, JobEvent) and event.id in jobs[event.tenant] else None
                for event in leaf.events
            )
            if any(events):
                self._leaves[seq] = _Leaf(leaf.at, events)

    def _history(self, query: History) -> tuple[Entry, ...]:
        seq = found(self._kept.tables, query.tenant, query.job_id).seq
        entries: list[Entry] = []
        while seq:
            leaf = self._leaves[seq]
            seq, found_here = link(seq, leaf.at, leaf.events, query)
            entries += found_here
        return tuple(reversed(entries))
