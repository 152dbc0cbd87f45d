"""Every question a caller can ask; nothing is written."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from penstock.domain.commands import SettingKind
from penstock.domain.events import (
    AnyEvent,
    AttemptEvent,
    Cancelled,
    Died,
    Entry,
    Extended,
    Failed,
    Leased,
    Released,
    Succeeded,
)
from penstock.domain.job import DEFAULT_TENANT, Job, Output, Reason, State, Usage, Verb
from penstock.domain.settings import QueueSettings, Setting
from penstock.domain.tables import QueueTable, Tables

# A question about many jobs looks at so many at a time, so that no caller waits for another's long list.
LOOKED_AT: Final = 10_000


class Query(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag_field="query", tag=str.lower):
    """What all questions say: whose jobs."""

    tenant: str = DEFAULT_TENANT


class Get(Query, frozen=True, gc=False, kw_only=True):
    """One job; ``wait_s`` is the broker's: how long to hold the call while the job is not finished."""

    job_id: str
    wait_s: float = 0.0


class ListJobs(Query, frozen=True, gc=False, kw_only=True, tag="list"):
    """Jobs, newest first. ``cursor`` is what the page before gave."""

    queue: str | None = None
    state: State | None = None
    kind: str | None = None
    reason: Reason | None = None
    limit: int = 100
    cursor: str | None = None


class Stats(Query, frozen=True, gc=False, kw_only=True):
    """How many jobs are in which state, by queue."""

    queue: str | None = None


class History(Query, frozen=True, gc=False, kw_only=True):
    """Every event of one job, in order."""

    job_id: str


class Settings(Query, frozen=True, gc=False, kw_only=True):
    """All settings of one kind, by name."""

    kind: SettingKind
    name: str | None = None


class Everything(Query, frozen=True, gc=False, kw_only=True, tag="snapshot"):
    """All jobs and settings of the tenant, as of one commit."""


AnyQuery = Get | ListJobs | Stats | History | Settings | Everything


class Page(Struct, frozen=True, gc=False):
    """Some jobs, and where to go on. A page can be short, even empty, while there is a cursor: go on."""

    jobs: tuple[Job, ...]
    cursor: str | None = None


class QueueStats(Struct, frozen=True, gc=False, kw_only=True):
    """One queue by numbers. Queued jobs are ready or scheduled; ``oldest_ready_at`` is since when the first waits."""

    queue: str
    settings: QueueSettings
    queued: int
    ready: int
    scheduled: int
    leased: int
    succeeded: int
    dead: int
    cancelled: int
    oldest_ready_at: datetime | None = None

    @property
    def paused(self) -> bool:
        """Whether nothing is leased from it."""
        return self.settings.paused


class Snapshot(Struct, frozen=True, gc=False):
    """A tenant's jobs by id and its settings, as they are together after commit ``seq``."""

    seq: int
    jobs: tuple[Job, ...]
    settings: tuple[Setting, ...]


class AttemptEnd(StrEnum):
    """How an attempt ended, if it has."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"
    RELEASED = "released"
    CANCELLED = "cancelled"


class Attempt(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One lease of a job and what came of it. Attempts are told apart by ``lease_no``: it never repeats."""

    lease_no: int
    attempt: int
    worker: str | None
    lease_s: float
    started_at: datetime
    ended_at: datetime | None = None
    end: AttemptEnd = AttemptEnd.RUNNING
    reason: Reason | None = None
    error: str | None = None
    error_fp: str | None = None
    progress: float | None = None
    heartbeats: int = 0
    ran_s: float | None = None
    usage: Usage | None = None
    output: Output | None = None


Answer = Job | Page | tuple[QueueStats, ...] | tuple[Entry, ...] | tuple[Setting, ...] | Snapshot


def page(tables: Tables, query: ListJobs) -> Page:
    """The next jobs that fit; the cursor is the last id looked at."""
    tenant = tables.tenants.get(query.tenant)
    if tenant is None:
        return Page(())
    looked_at = tuple(islice(tenant.newest_first(query.cursor), LOOKED_AT))
    fitting = tuple(islice((job for job in looked_at if _fits(job, query)), query.limit))
    if len(fitting) == query.limit:
        return Page(fitting, fitting[-1].id)
    return Page(fitting, looked_at[-1].id if len(looked_at) == LOOKED_AT else None)


def _fits(job: Job, query: ListJobs) -> bool:
    return (
        (query.state is None or job.state is query.state)
        and (query.queue is None or job.queue == query.queue)
        and (query.kind is None or job.kind == query.kind)
        and (query.reason is None or job.reason is query.reason)
    )


def stats(tables: Tables, query: Stats, now: datetime) -> tuple[QueueStats, ...]:
    """The queues by name; a queue nobody has used or set is not among them."""
    tenant = tables.tenants.get(query.tenant)
    if tenant is None:
        return ()
    names = sorted(tenant.queues) if query.queue is None else [query.queue] if query.queue in tenant.queues else []
    return tuple(_queue_stats(name, tenant.queues[name], now) for name in names)


def _queue_stats(name: str, queue: QueueTable, now: datetime) -> QueueStats:
    oldest = [at for at in (line.oldest_ready_at(now) for line in queue.lines.values()) if at is not None]
    return QueueStats(
        queue=name,
        settings=queue.settings,
        ready=sum(line.ready for line in queue.lines.values()),
        scheduled=sum(line.later for line in queue.lines.values()),
        oldest_ready_at=min(oldest, default=None),
        **{str(state): count for state, count in queue.counts.items()},
    )


def settings(tables: Tables, query: Settings) -> tuple[Setting, ...]:
    """The settings of the kind, by name."""
    wanted = (
        setting
        for (tenant, kind, name), setting in tables.settings.items()
        if tenant == query.tenant and kind is query.kind and query.name in {None, name}
    )
    return tuple(sorted(wanted, key=lambda setting: setting.name))


def snapshot(tables: Tables, query: Everything, seq: int) -> Snapshot:
    """All there is of the tenant."""
    tenant = tables.tenants.get(query.tenant)
    jobs = () if tenant is None else tuple(sorted(tenant.jobs.values(), key=lambda job: job.id))
    return Snapshot(
        seq, jobs, tuple(setting for key, setting in sorted(tables.settings.items()) if key[0] == query.tenant)
    )


def attempts(history: Sequence[Entry]) -> tuple[Attempt, ...]:
    """A job's attempts, folded from its events."""
    made: dict[int, Attempt] = {}
    for entry in history:
        event = entry.event
        if isinstance(event, Leased):
            made[event.lease_no] = Attempt(
                lease_no=event.lease_no,
                attempt=event.attempt,
                worker=event.worker,
                lease_s=event.lease_s,
                started_at=entry.at,
            )
        elif isinstance(event, AttemptEvent) and event.lease_no in made:
            # Of a lease that is older than the log nothing is told.
            _fold(made, entry, event)
    return tuple(made.values())


def _fold(made: dict[int, Attempt], entry: Entry, event: AnyEvent) -> None:
    match event:
        case Extended():
            before = made[event.lease_no]
            progress = before.progress if event.progress is None else event.progress
            made[event.lease_no] = replace(before, progress=progress, heartbeats=event.beats)
        case Succeeded():
            made[event.lease_no] = replace(
                made[event.lease_no],
                end=AttemptEnd.SUCCEEDED,
                ended_at=entry.at,
                ran_s=event.ran_s,
                usage=event.usage,
                output=event.output,
            )
        case Failed() | Died() if event.verb is not None:
            made[event.lease_no] = replace(
                made[event.lease_no],
                end=_ENDS[event.verb],
                ended_at=entry.at,
                reason=event.reason,
                error=event.error,
                error_fp=event.error_fp,
                ran_s=event.ran_s,
                usage=event.usage,
                output=event.output,
            )
        case Released():
            made[event.lease_no] = replace(
                made[event.lease_no], end=AttemptEnd.RELEASED, ended_at=entry.at, ran_s=event.ran_s
            )
        case Cancelled(held=True):
            made[event.lease_no] = replace(made[event.lease_no], end=AttemptEnd.CANCELLED, ended_at=entry.at)
        case _:
            pass


_ENDS: Final = {Verb.NACK: AttemptEnd.FAILED, Verb.EXPIRE: AttemptEnd.EXPIRED, Verb.RELEASE: AttemptEnd.RELEASED}
