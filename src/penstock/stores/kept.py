"""What a store keeps in memory: the tables as of one commit, the leases it watches, and who wants to hear of records."""

from collections.abc import Callable, Sequence
from datetime import datetime

from penstock.clock import Clock
from penstock.domain import due, queries
from penstock.domain.commands import Command
from penstock.domain.decide import found
from penstock.domain.events import AnyEvent, Entry, JobEvent, Record
from penstock.domain.queries import Answer, Everything, Get, History, ListJobs, Query, Settings, Stats
from penstock.domain.tables import Tables


class Kept:
    """The state as of commit ``tables.seq``."""

    def __init__(self, clock: Clock, hearers: list[Callable[[Record], None]]) -> None:
        self.tables = Tables()
        self.watch = due.LeaseWatch()
        self._clock = clock
        self._hearers = hearers

    def keep(self, record: Record) -> None:
        """Take note of a record that is durable and whose events have been applied, and pass it on."""
        self.watch.hear(record.events, self._clock.elapsed())
        for hear in self._hearers:
            hear(record)

    def answer(self, query: Query) -> Answer:
        """Look at the tables as they are between two batches."""
        match query:
            case Get():
                return found(self.tables, query.tenant, query.job_id)
            case ListJobs():
                return queries.page(self.tables, query)
            case Stats():
                return queries.stats(self.tables, query, self._clock.now())
            case Settings():
                return queries.settings(self.tables, query)
            case Everything():
                return queries.snapshot(self.tables, query, self.tables.seq)
            case _:
                raise TypeError(query)

    def overdue(self) -> list[Command]:
        """Leases by the elapsed clock, deadlines by the wall clock."""
        return [*self.watch.expired(self._clock.elapsed()), *due.lapsed(self.tables, self._clock.now())]

    def outlived(self) -> list[Command]:
        """Finished jobs past their queue's retention."""
        return [*due.outlived(self.tables, self._clock.now())]


def link(seq: int, at: datetime, events: Sequence[AnyEvent | None], query: History) -> tuple[int, list[Entry]]:
    """One link of a job's chain: its events in this commit, the last one first, and the commit to look at next."""
    of_job = [
        (line, event)
        for line, event in enumerate(events, 1)
        if isinstance(event, JobEvent) and event.id == query.job_id and event.tenant == query.tenant
    ]
    return of_job[0][1].before, [Entry(seq, line, at, event) for line, event in reversed(of_job)]
