"""Which new jobs are accepted: known by id or key, refused, or made."""

from collections import Counter
from datetime import timedelta
from typing import NamedTuple

from penstock.domain import fingerprint, limits
from penstock.domain.commands import Ack, Enqueue
from penstock.domain.events import Enqueued
from penstock.domain.job import Job, NewJob
from penstock.domain.tables import Tables, TenantTable
from penstock.errors import Busy, Conflict


class _Wish(NamedTuple):
    """New jobs with who asks for them, as an enqueue and an ack's follow-ups have in common."""

    tenant: str
    actor: str | None
    call_id: str | None
    parent: str | None


def enqueue(tables: Tables, command: Enqueue) -> tuple[Enqueued, ...]:
    """Accept all of these jobs, or none: a refusal of one is a refusal of the call."""
    wish = _Wish(command.tenant, command.actor, command.call_id, None)
    if len(command.jobs) == 1:
        event = _accept(tables, wish, command.jobs[0], tables.order + 1)
        events: tuple[Enqueued, ...] = () if event is None else (event,)
    else:
        events = _accept_all(tables, wish, command.jobs)
    if events:
        _room(tables, command.tenant, events)
    return events


def follow_ups(tables: Tables, command: Ack, job: Job) -> tuple[Enqueued, ...]:
    """Accept the follow-up jobs of an ack; depth limits do not hold them up."""
    return _accept_all(tables, _Wish(command.tenant, command.actor, command.call_id, job.id), command.then)


def _accept_all(tables: Tables, wish: _Wish, jobs: tuple[NewJob, ...]) -> tuple[Enqueued, ...]:
    made: dict[str, Enqueued] = {}
    keys: dict[str, str] = {}
    for new in jobs:
        twin = made.get(keys.get(new.idempotency_key or "", new.id or ""))
        if twin is not None:
            _same(twin.job, new)
            continue
        event = _accept(tables, wish, new, tables.order + 1 + len(made))
        if event is not None:
            made[event.job.id] = event
            if new.idempotency_key is not None:
                keys[new.idempotency_key] = event.job.id
    return tuple(made.values())


def _accept(tables: Tables, wish: _Wish, new: NewJob, order: int) -> Enqueued | None:
    """The event that makes the job, or None if there is such a job."""
    assert new.id is not None
    tenant = tables.tenants.get(wish.tenant)
    if tenant is not None:
        known = known_job(tenant, new)
        if known is not None:
            _same(known, new)
            return None
    limits.fresh_id(new.id, tables.now)
    job = _made(tables, wish.tenant, new, order)
    return Enqueued(tenant=wish.tenant, actor=wish.actor, call_id=wish.call_id, job=job, parent=wish.parent)


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


def _made(tables: Tables, tenant: str, new: NewJob, order: int) -> Job:
    now = tables.now
    settings = tables.queue_settings(tenant, new.queue)
    run_at = new.run_at if new.delay_s is None else now + timedelta(seconds=new.delay_s)
    if run_at is not None and run_at <= now:
        run_at = None
    deadline_at = None if new.deadline_s is None else now + timedelta(seconds=new.deadline_s)
    return Job(
        id=new.id or "",
        tenant=tenant,
        queue=new.queue,
        kind=new.kind or new.queue,
        payload_bytes=new.payload,
        content_type=new.content_type,
        headers=new.headers,
        priority=new.priority,
        max_attempts=new.max_attempts or settings.max_attempts,
        backoff=new.backoff,
        run_at=run_at,
        deadline_at=deadline_at,
        created_at=now,
        updated_at=now,
        ready_at=run_at or tables.log_time,
        order=order,
        idempotency_key=new.idempotency_key,
    )


def _room(tables: Tables, tenant: str, events: tuple[Enqueued, ...]) -> None:
    for name, wanted in Counter(event.job.queue for event in events).items():
        queue = tables.queue(tenant, name)
        if queue is not None and queue.depth + wanted > queue.settings.max_depth:
            raise Busy(
                "the queue is full; wait until jobs have finished", retry_after_s=1.0, queue=name, depth=queue.depth
            )
