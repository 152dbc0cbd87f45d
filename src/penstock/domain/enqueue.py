"""Which new jobs are accepted: known by id or key, refused, or made."""

from collections import Counter
from datetime import timedelta

from penstock.domain import fingerprint, limits
from penstock.domain.commands import Ack, Enqueue
from penstock.domain.events import Enqueued
from penstock.domain.job import Job, NewJob, State
from penstock.domain.settings import DEFAULTS, QueueSettings
from penstock.domain.tables import Tables, TenantTable
from penstock.errors import Busy, Conflict


def enqueue(tables: Tables, command: Enqueue) -> tuple[Enqueued, ...]:
    """Accept all of these jobs, or none: a refusal of one is a refusal of the call."""
    events = _accept_all(tables, command, command.jobs, None)
    if len(events) == 1:
        _room(tables, command.tenant, events[0].queue, 1)
    else:
        for name, wanted in Counter(event.queue for event in events).items():
            _room(tables, command.tenant, name, wanted)
    return events


def follow_ups(tables: Tables, command: Ack, job: Job) -> tuple[Enqueued, ...]:
    """Accept the follow-up jobs of an ack; depth limits do not hold them up."""
    return _accept_all(tables, command, command.then, job.id)


def _accept_all(
    tables: Tables, command: Enqueue | Ack, jobs: tuple[NewJob, ...], parent: str | None
) -> tuple[Enqueued, ...]:
    if len(jobs) == 1:
        event = _accept(tables, command, jobs[0], tables.order + 1, parent)
        return () if event is None else (event,)
    made: dict[str, Enqueued] = {}
    keys: dict[str, str] = {}
    for new in jobs:
        twin = made.get(keys.get(new.idempotency_key or "", new.id or ""))
        if twin is not None:
            _same(twin.job, new)
            continue
        event = _accept(tables, command, new, tables.order + 1 + len(made), parent)
        if event is not None:
            made[event.job.id] = event
            if new.idempotency_key is not None:
                keys[new.idempotency_key] = event.job.id
    return tuple(made.values())


def _accept(tables: Tables, command: Enqueue | Ack, new: NewJob, order: int, parent: str | None) -> Enqueued | None:
    """The event that makes the job, or None if there is such a job."""
    assert new.id is not None
    tenant = tables.tenants.get(command.tenant)
    if tenant is not None:
        known = known_job(tenant, new)
        if known is not None:
            _same(known, new)
            return None
    oldest, newest = tables.fresh_ids
    if not oldest < new.id < newest:
        limits.fresh_id(new.id, tables.now_s)
    queue = None if tenant is None else tenant.queues.get(new.queue)
    job = _made(tables, command.tenant, new, order, DEFAULTS if queue is None else queue.settings)
    return Enqueued(
        tenant=job.tenant,
        actor=command.actor,
        call_id=command.call_id,
        id=job.id,
        queue=job.queue,
        kind=job.kind,
        rev=job.rev,
        job=job,
        parent=parent,
    )


def known_job(tenant: TenantTable, new: NewJob) -> Job | None:
    """The job in the store that this one is a repeat of: by its key if it has one, else by its id."""
    if new.idempotency_key is not None:
        first_id = tenant.keys.get(new.idempotency_key)
        if first_id is not None:
            return tenant.jobs[first_id]
    return tenant.jobs.get(new.id or "")


def _same(known: Job, new: NewJob) -> None:
    """Refuse another job under a name that is taken. Delay, priority and the like may differ: a repeat counts anew."""
    kind = new.kind or new.queue
    if known.fingerprint is None:
        same = (known.queue, known.kind, known.payload_bytes) == (new.queue, kind, new.payload)
    else:
        same = known.fingerprint == fingerprint.of_job(new.queue, kind, new.payload)
    if not same or known.idempotency_key != new.idempotency_key:
        what = "id" if known.id == new.id else "idempotency key"
        raise Conflict(
            f"this {what} is taken by a job with another queue, kind, payload or key; use a new one", job_id=known.id
        )


def _made(tables: Tables, tenant: str, new: NewJob, order: int, settings: QueueSettings) -> Job:
    now = tables.now
    run_at = None
    if new.run_at is not None and new.run_at > now:
        run_at = limits.soon("run_at", new.run_at, now)
    elif new.delay_s:
        run_at = now + timedelta(seconds=new.delay_s)
    deadline_at = None if new.deadline_s is None else now + timedelta(seconds=new.deadline_s)
    return Job(
        new.id or "",
        tenant,
        new.queue,
        new.kind or new.queue,
        new.payload,
        new.content_type,
        new.headers,
        new.priority,
        new.max_attempts or settings.max_attempts,
        new.backoff,
        deadline_at,
        new.idempotency_key,
        now,
        run_at,
        run_at or tables.log_time,
        order,
        now,
        tables.seq,
    )


def _room(tables: Tables, tenant: str, name: str, wanted: int) -> None:
    queue = tables.queue(tenant, name)
    if queue is None:
        return
    most = queue.settings.max_depth
    if most < queue.counts[State.QUEUED] + queue.counts[State.LEASED] + wanted:
        raise Busy("the queue is full; wait until jobs have finished", retry_after_s=1.0, queue=name, most=most)
