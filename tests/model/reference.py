"""The reference model: the bare state machine, and what can be said of its state without any of its indexes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from penstock.clock import Clock
from penstock.domain import due, queries
from penstock.domain.batch import run
from penstock.domain.commands import Command, LeaseJobs
from penstock.domain.job import Job, State
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Everything, QueueStats, Snapshot, Stats
from penstock.domain.settings import queue_settings
from penstock.domain.tables import Tables
from penstock.errors import PenstockError


class Model:
    """What every store must be equal to."""

    def __init__(self, clock: Clock) -> None:
        self.tables = Tables()
        self._clock = clock
        self._watch = due.LeaseWatch()

    def commit(self, batch: Sequence[Command]) -> list[Outcome]:
        self.tables.begin(self._clock.now(), self.tables.seq + 1)
        outcomes, events = run(self.tables, batch)
        if not events:
            self.tables.rollback()
        self._watch.hear(events, self._clock.elapsed())
        return outcomes

    def reopen(self) -> None:
        """Begin to watch all leases anew, as a process does that has just opened a durable store."""
        self._watch = due.LeaseWatch()
        self._watch.begin(self.tables, self._clock.elapsed(), due.LeaseWatch())

    def take_back(self, batch: Sequence[Command]) -> None:
        """Have the batch done, and then not to have been."""
        self.tables.begin(self._clock.now(), self.tables.seq + 1)
        run(self.tables, batch)
        self.tables.rollback()

    def overdue(self) -> list[Command]:
        return [*self._watch.expired(self._clock.elapsed()), *due.lapsed(self.tables, self._clock.now())]

    def halfway(self) -> list[Command]:
        return [*self._watch.halfway(self._clock.elapsed())]

    def outlived(self) -> list[Command]:
        return [*due.outlived(self.tables, self._clock.now())]

    def snapshot(self, tenant: str) -> Snapshot:
        return queries.snapshot(self.tables, Everything(tenant=tenant), 0)

    def stats(self, tenant: str) -> tuple[QueueStats, ...]:
        return queries.stats(self.tables, Stats(tenant=tenant), self._clock.now())


def plain(value: object) -> Any:
    """The value as every store must give it: errors by kind and facts, jobs without the numbers of places and commits."""
    match value:
        case PenstockError():
            return (type(value).__name__, value.facts)
        case Job():
            return replace(value, order=0, seq=0)
        case tuple() | list():
            return tuple(plain(item) for item in value)
        case Struct():
            return (type(value).__name__, *(plain(getattr(value, name)) for name in value.__struct_fields__))
        case _:
            return value


def in_line(snapshot: Snapshot, command: LeaseJobs, clock: Clock) -> list[str]:
    """The jobs that a new lease call must get: looked for one by one, and sorted."""
    paused = {setting.name for setting in snapshot.settings if queue_settings(setting.value).paused}
    now = clock.now()
    ids: list[str] = []
    for queue in dict.fromkeys(command.queues):
        waiting = [
            job
            for job in snapshot.jobs
            if job.state is State.QUEUED
            and job.queue == queue
            and queue not in paused
            and (command.kinds is None or job.kind in command.kinds)
            and (job.run_at is None or job.run_at <= now)
            and (job.deadline_at is None or job.deadline_at > now)
        ]
        ids += [job.id for job in sorted(waiting, key=lambda job: (job.priority, job.ready_at, job.order))]
    return ids[: command.limit]


def sound(job: Job) -> bool:
    """Whether this can be a job at all: what no sequence of commands may ever break."""
    return (
        (job.state is State.LEASED) == (job.lease is not None)
        and job.state.finished == (job.finished_at is not None)
        and (job.state is State.DEAD) <= (job.reason is not None)
        and 0 <= job.attempt <= job.max_attempts
        and job.attempt <= job.lease_no
        and job.rev > job.lease_no
        and (job.run_at is None or job.ready_at == job.run_at or job.state is not State.QUEUED)
        and job.created_at <= job.updated_at
    )


def counted(jobs: Iterable[Job], clock: Clock) -> dict[str, Counter[str]]:
    """The numbers of every queue that has a job, counted job by job."""
    counts: dict[str, Counter[str]] = {}
    now = clock.now()
    for job in jobs:
        count = counts.setdefault(job.queue, Counter())
        count[job.state] += 1
        if job.state is State.QUEUED:
            count["ready" if job.run_at is None or job.run_at <= now else "scheduled"] += 1
    return counts


def numbers(stats: Iterable[QueueStats]) -> dict[str, Counter[str]]:
    """The same numbers as a store tells them, without the queues that are empty."""
    told = {
        one.queue: Counter(
            {name: getattr(one, name) for name in (*State, "ready", "scheduled") if getattr(one, name) != 0}
        )
        for one in stats
    }
    return {queue: count for queue, count in told.items() if count}
