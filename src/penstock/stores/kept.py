"""What a store keeps in memory: the tables, the history of every job in them, and the leases it watches."""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from penstock.clock import Clock
from penstock.domain import due, queries
from penstock.domain.commands import Command
from penstock.domain.decide import found
from penstock.domain.events import AnyEvent, Entry, JobEvent, Purged, Record
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


class Kept:
    """The state as of commit ``seq``. The history of a job is kept as long as the job."""

    def __init__(self, clock: Clock) -> None:
        self.tables = Tables()
        self.seq = 0
        self._clock = clock
        self._watch = due.LeaseWatch()
        self._histories: defaultdict[str, dict[str, _Page]] = defaultdict(dict)
        self._hearers: list[Callable[[Record], None]] = []

    def keep(self, record: Record) -> None:
        """Take note of a record that is durable and whose events have been applied, and pass it on."""
        self.seq = seq = record.seq
        at, histories = record.at, self._histories
        for line, event in enumerate(record.events, 1):
            if isinstance(event, JobEvent):
                pages = histories[event.tenant]
                pages[event.id] = _Page(seq, line, at, event, pages.get(event.id))
            elif isinstance(event, Purged):
                for job in self.tables.gone():
                    histories[job.tenant].pop(job.id, None)
        self._watch.hear(record.events, self._clock.elapsed())
        for hear in self._hearers:
            hear(record)

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        """Pass every record on; answers how to stop that."""
        self._hearers.append(hear)
        return lambda: self._hearers.remove(hear)

    def answer(self, query: Query) -> Answer:
        """Look at the tables as they are between two batches."""
        match query:
            case Get():
                return found(self.tables, query.tenant, query.job_id)
            case ListJobs():
                return queries.page(self.tables, query)
            case Stats():
                return queries.stats(self.tables, query, self._clock.now())
            case History():
                return self._history(query)
            case Settings():
                return queries.settings(self.tables, query)
            case Everything():
                return queries.snapshot(self.tables, query, self.seq)
            case _:
                raise TypeError(query)

    def overdue(self) -> list[Command]:
        """Leases by the elapsed clock, deadlines by the wall clock."""
        return [*self._watch.expired(self._clock.elapsed()), *due.lapsed(self.tables, self._clock.now())]

    def outlived(self) -> list[Command]:
        """Finished jobs past their queue's retention."""
        return [*due.outlived(self.tables, self._clock.now())]

    def _history(self, query: History) -> tuple[Entry, ...]:
        page = self._histories[query.tenant].get(query.job_id)
        if page is None:
            raise NotFound("there is no such job", job_id=query.job_id)
        entries = []
        while page is not None:
            entries.append(Entry(page.seq, page.line, page.at, page.event))
            page = page.before
        return tuple(reversed(entries))
