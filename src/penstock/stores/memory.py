"""The state machine in memory: a store of its own, and the model that every other store is compared with."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from penstock.clock import Clock
from penstock.domain import due, queries
from penstock.domain.batch import run
from penstock.domain.commands import Command
from penstock.domain.decide import found
from penstock.domain.events import AnyEvent, Entry, JobEvent, Purged, Record
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Answer, Everything, Get, History, ListJobs, Query, Settings, Stats
from penstock.domain.tables import Tables
from penstock.errors import NotFound


class _Page(Struct, frozen=True, gc=False):
    """One event of a job's history, and the page before it."""

    seq: int
    line: int
    at: datetime
    event: AnyEvent
    before: "_Page | None"


class MemoryStore:
    """Jobs in this process, gone when it ends. The history of a job is kept as long as the job."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tables = Tables()
        self._watch = due.LeaseWatch()
        self._histories: defaultdict[str, dict[str, _Page]] = defaultdict(dict)
        self._hearers: list[Callable[[Record], None]] = []
        self._seq = 0

    async def open(self) -> None:
        """There is nothing to get ready."""

    async def close(self) -> None:
        """There is nothing to let go of; the jobs stay as long as this object."""

    async def commit(self, batch: Sequence[Command]) -> list[Outcome]:
        """Apply the batch; nobody sees half of it, as nothing here waits."""
        self._tables.begin(self._clock.now())
        try:
            outcomes, events = run(self._tables, batch)
        except BaseException:
            self._tables.rollback()
            raise
        if events:
            self._seq += 1
            self._keep(Record(self._seq, self._tables.now, tuple(events)))
        return outcomes

    async def ask(self, query: Query) -> Answer:
        """Look at the tables as they are between two batches."""
        match query:
            case Get():
                return found(self._tables, query.tenant, query.job_id)
            case ListJobs():
                return queries.page(self._tables, query)
            case Stats():
                return queries.stats(self._tables, query, self._clock.now())
            case History():
                return self._history(query)
            case Settings():
                return queries.settings(self._tables, query)
            case Everything():
                return queries.snapshot(self._tables, query, self._seq)
            case _:
                raise TypeError(query)

    async def overdue(self) -> Sequence[Command]:
        """Leases by the elapsed clock, deadlines by the wall clock."""
        return [*self._watch.expired(self._clock.elapsed()), *due.lapsed(self._tables, self._clock.now())]

    async def outlived(self) -> Sequence[Command]:
        """Finished jobs past their queue's retention."""
        return due.outlived(self._tables, self._clock.now())

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        """Pass every record on."""
        self._hearers.append(hear)
        return lambda: self._hearers.remove(hear)

    def _keep(self, record: Record) -> None:
        seq, at, histories = record.seq, record.at, self._histories
        for line, event in enumerate(record.events, 1):
            if isinstance(event, JobEvent):
                pages = histories[event.tenant]
                pages[event.id] = _Page(seq, line, at, event, pages.get(event.id))
            elif isinstance(event, Purged):
                for job in self._tables.gone():
                    histories[job.tenant].pop(job.id, None)
        self._watch.hear(record.events, self._clock.elapsed())
        for hear in self._hearers:
            hear(record)

    def _history(self, query: History) -> tuple[Entry, ...]:
        page = self._histories.get(query.tenant, {}).get(query.job_id)
        if page is None:
            raise NotFound("there is no such job", job_id=query.job_id)
        entries = []
        while page is not None:
            entries.append(Entry(page.seq, page.line, page.at, page.event))
            page = page.before
        return tuple(reversed(entries))
