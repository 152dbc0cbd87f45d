"""The state machine in memory: a store of its own, and the model that every other store is compared with."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, get_args

from msgspec import Struct

from penstock.clock import Clock
from penstock.domain.batch import run
from penstock.domain.commands import Command
from penstock.domain.decide import found
from penstock.domain.events import AnyEvent, Entry, JobEvent, Purged, Record
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Answer, History, Query
from penstock.stores.kept import Kept

_OF_ONE_JOB: Final = frozenset(event for event in get_args(AnyEvent) if issubclass(event, JobEvent))


class _Page(Struct, frozen=True, gc=False):
    """One event of a job's history, and the page before it."""

    seq: int
    line: int
    at: datetime
    event: AnyEvent
    before: "_Page | None"


class MemoryStore:
    """Jobs in this process, gone when it ends. The history of a job is kept as long as the job."""

    look_s = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hearers: list[Callable[[Record], None]] = []
        self._kept = Kept(clock, self._hearers)
        self._histories: defaultdict[str, dict[str, _Page]] = defaultdict(dict)

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
        seq, at, histories = record.seq, record.at, self._histories
        event: Any
        for line, event in enumerate(record.events, 1):
            # By type: whether a struct is of a base class is a question to its metaclass, and this is asked of each.
            if type(event) in _OF_ONE_JOB:
                pages = histories[event.tenant]
                pages[event.id] = _Page(seq, line, at, event, pages.get(event.id))
            elif type(event) is Purged:
                for job in self._kept.tables.gone():
                    histories[job.tenant].pop(job.id, None)

    def _history(self, query: History) -> tuple[Entry, ...]:
        found(self._kept.tables, query.tenant, query.job_id)
        page: _Page | None = self._histories[query.tenant][query.job_id]
        entries = []
        while page is not None:
            entries.append(Entry(page.seq, page.line, page.at, page.event))
            page = page.before
        return tuple(reversed(entries))
