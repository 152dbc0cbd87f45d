"""Which new jobs are accepted: known by id or key, refused, or made."""

from collections import Counter
from datetime import datetime, timedelta

from msgspec.structs import replace

from penstock.domain import fingerprint, limits
from penstock.domain.commands import Ack, Enqueue
from penstock.domain.events import Enqueued
from penstock.domain.job import Job, NewJob, State
from penstock.domain.settings import DEFAULTS
from penstock.domain.tables import Tables, TenantTable
from penstock.errors import Busy, Conflict


def enqueue(tables: Tables, command: Enqueue) -> tuple[Enqueued, ...]:
    """Accept all of these jobs, or none: a refusal of one is a refusal of the call."""
    if len(command.jobs) == 1:
        event = _accept(tables, command, command.jobs[0], None)
        if event is None:
            return ()
        _room(tables, command.tenant, event.queue, 1)
        return (event,)
    events = _accept_all(tables, command, command.jobs, None)
    for name, wanted in Counter(event.queue for event in events).items():
        _room(tables, command.tenant, name, wanted)
    return events


def follow_ups(tables: Tables, command: Ack, job: Job) -> tuple[Enqueued, ...]:
    """Accept the follow-up jobs of an ack; depth limits do not hold them up."""
    return _accept_all(tables, command, command.then, job.id)


def _accept_all(
    tables: Tables, command: Enqueue | Ack, jobs: tuple[NewJob, ...], parent: str | None
) -> tuple[Enqueued, ...]:
    made: dict[str, Enqueued] = {}
    keys: dict[str, str] = {}
    for new in jobs:
        twin = made.get(keys.get(new.idempotency_key or "", new.id or ""))
        if twin is not None:
            if not _like(twin.queue, twin.kind, twin.payload, new) or twin.idempotency_key != new.idempotency_key:
                raise _taken(twin.id, new)
            continue
        event = _accept(tables, command, new, parent)
        if event is not None:
            made[event.id] = event
            if new.idempotency_key is not None:
                keys[new.idempotency_key] = event.id
    return tuple(made.values())


def _accept(tables: Tables, command: Enqueue | Ack, new: NewJob, parent: str | None) -> Enqueued | None:
    """The event that makes the job, or None if there is such a job."""
    assert new.id is not None
    tenant = tables.tenants.get(command.tenant)
    if tenant is not None and (new.id in tenant.jobs or new.idempotency_key is not None):
        known = known_job(tenant, new)
        if known is not None:
            _same(known, new)
            return None
    oldest, newest = tables.fresh_ids
    if not oldest < new.id < newest:
        limits.fresh_id(new.id, tables.now_s)
    queue = None if tenant is None else tenant.queues.get(new.queue)
    settings = DEFAULTS if queue is None else queue.settings
    event = Enqueued(
        tenant=command.tenant,
        actor=command.actor,
        call_id=command.call_id,
        id=new.id,
        queue=new.queue,
        kind=new.kind or new.queue,
        rev=1,
        payload=new.payload,
        content_type=new.content_type,
        headers=new.headers,
        priority=new.priority,
        max_attempts=new.max_attempts or settings.max_attempts,
        idempotency_key=new.idempotency_key,
        parent=parent,
    )
    if new.run_at is None and new.delay_s is None and new.deadline_s is None and new.backoff is None:
        return event
    # Apart, as they are rare: a call with more than fifteen keywords costs CPython a dictionary.
    return replace(event, backoff=new.backoff, **_when(tables, new))


def _when(tables: Tables, new: NewJob) -> dict[str, datetime | None]:
    now = tables.now
    run_at = None
    if new.run_at is not None and new.run_at > now:
        run_at = limits.soon("run_at", new.run_at, now)
    elif new.delay_s:
        run_at = now + timedelta(seconds=new.delay_s)
    deadline_at = None if new.deadline_s is None else now + timedelta(seconds=new.deadline_s)
    return {"run_at": run_at, "deadline_at": deadline_at}


def known_job(tenant: TenantTable, new: NewJob) -> Job | None:
    """The job in the store that this one is a repeat of: by its key if it has one, else by its id."""
    if new.idempotency_key is not None:
        first_id = tenant.keys.get(new.idempotency_key)
        if first_id is not None:
            return tenant.jobs[first_id]
    return tenant.jobs.get(new.id or "")


def _same(known: Job, new: NewJob) -> None:
    """Refuse another job under a name that is taken. Delay, priority and the like may differ: a repeat counts anew."""
    if known.fingerprint is None:
        same = _like(known.queue, known.kind, known.payload_bytes, new)
    else:
        same = known.fingerprint == fingerprint.of_job(new.queue, new.kind or new.queue, new.payload)
    if not same or known.idempotency_key != new.idempotency_key:
        raise _taken(known.id, new)


def _like(queue: str, kind: str, payload: bytes, new: NewJob) -> bool:
    return (queue, kind, payload) == (new.queue, new.kind or new.queue, new.payload)


def _taken(job_id: str, new: NewJob) -> Conflict:
    what = "id" if job_id == new.id else "idempotency key"
    return Conflict(
        f"this {what} is taken by a job with another queue, kind, payload or key; use a new one", job_id=job_id
    )


def _room(tables: Tables, tenant: str, name: str, wanted: int) -> None:
    table = tables.tenants.get(tenant)
    queue = None if table is None else table.queues.get(name)
    if queue is None:
        return
    most = queue.settings.max_depth
    if most < queue.counts[State.QUEUED] + queue.counts[State.LEASED] + wanted:
        raise Busy("the queue is full; wait until jobs have finished", retry_after_s=1.0, queue=name, most=most)
