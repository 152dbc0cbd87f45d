"""What a command led to, read from the tables after its events: a repeated command is answered alike."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from penstock.domain import fingerprint
from penstock.domain.commands import (
    Ack,
    Age,
    Cancel,
    Command,
    DeleteSetting,
    Enqueue,
    Expire,
    Heartbeat,
    Lapse,
    LeaseJobs,
    Nack,
    Purge,
    PutSetting,
    Release,
    Requeue,
    Update,
)
from penstock.domain.decide import found, holding
from penstock.domain.enqueue import known_job
from penstock.domain.events import AnyEvent, Enqueued, Leased, Purged
from penstock.domain.job import Ended, Holding, Job, Lease
from penstock.domain.settings import Setting
from penstock.domain.tables import Tables, TenantTable
from penstock.errors import PenstockError


class Accepted(Struct, frozen=True, gc=False):
    """The jobs of an enqueue, as they are now, and whether each is new."""

    jobs: tuple[Job, ...]
    new: tuple[bool, ...]


class Leases(Struct, frozen=True, gc=False):
    """The jobs handed over. If none: in how long the next one is due, if one is scheduled."""

    leases: tuple[Lease, ...]
    due_in_s: float | None = None


class Holdings(Struct, frozen=True, gc=False):
    """The answer to a heartbeat, job by job, in the order asked."""

    jobs: tuple[Holding, ...]


class Count(Struct, frozen=True, gc=False):
    """How many jobs a command changed."""

    count: int


Result = Accepted | Leases | Holdings | Ended | Job | Count | Setting | None
Outcome = Result | PenstockError


def _accepted(tables: Tables, command: Enqueue, events: Sequence[AnyEvent]) -> Accepted:
    if len(events) == 1 == len(command.jobs):
        event = events[0]
        assert isinstance(event, Enqueued)
        return Accepted((tables.tenants[event.tenant].jobs[event.id],), (True,))
    tenant = tables.tenant(command.tenant)
    new = {event.id for event in events if isinstance(event, Enqueued)}
    jobs, fresh = [], []
    for wanted in command.jobs:
        job = known_job(tenant, wanted)
        assert job is not None
        jobs.append(job)
        fresh.append(job.id in new)
        new.discard(job.id)
    return Accepted(tuple(jobs), tuple(fresh))


def _leases(tables: Tables, command: LeaseJobs, events: Sequence[AnyEvent]) -> Leases:
    """What was taken now, or by the same call earlier and is still held under it."""
    tenant = tables.tenants.get(command.tenant)
    if tenant is None:
        return Leases(())
    if len(events) == 1 and type(event := events[0]) is Leased:
        return Leases(
            (Lease(tenant.jobs[event.id], fingerprint.token(command.request_id, event.index), event.lease_s),)
        )
    taken = [(event.index, event.lease_s, tenant.jobs[event.id]) for event in events if isinstance(event, Leased)]
    leases = [
        Lease(job, fingerprint.token(command.request_id, index), lease_s)
        for index, lease_s, job in taken or _taken_before(tenant, command)
    ]
    return Leases(tuple(leases), None if leases else _due_in_s(tables, command))


def _taken_before(tenant: TenantTable, command: LeaseJobs) -> list[tuple[int, float, Job]]:
    call = fingerprint.of_call(command.request_id)
    jobs = (tenant.jobs[job_id] for job_id in tenant.calls.get(call, ()))
    held = ((job.lease, job) for job in jobs if job.lease is not None)
    return sorted((hold.index, hold.lease_s, job) for hold, job in held if hold.call == call)


def _due_in_s(tables: Tables, command: LeaseJobs) -> float | None:
    due = []
    for name in command.queues:
        queue = tables.queue(command.tenant, name)
        if queue is not None and not queue.settings.paused:
            kinds = queue.lines if command.kinds is None else (kind for kind in command.kinds if kind in queue.lines)
            due += [at for at in (queue.lines[kind].due_at() for kind in kinds) if at is not None]
    return max(0.0, (min(due) - tables.now).total_seconds()) if due else None


def _holdings(tables: Tables, command: Heartbeat, _: Sequence[AnyEvent]) -> Holdings:
    return Holdings(tuple(holding(tables.find(command.tenant, beat.job_id), beat.token) for beat in command.beats))


def _ended(tables: Tables, command: Ack | Nack | Release, _: Sequence[AnyEvent]) -> Ended:
    ending = tables.tenants[command.tenant].jobs[command.job_id].ending
    assert ending is not None
    return ending.answer


def _job(tables: Tables, command: Cancel | Requeue | Update, _: Sequence[AnyEvent]) -> Job:
    return found(tables, command.tenant, command.job_id)


def _changed(_: Tables, __: Command, events: Sequence[AnyEvent]) -> Count:
    return Count(len(events))


def _nothing(_: Tables, __: Command, ___: Sequence[AnyEvent]) -> None:
    return None


def _purged(_: Tables, __: Purge, events: Sequence[AnyEvent]) -> Count:
    return Count(sum(event.count for event in events if isinstance(event, Purged)))


def _setting(tables: Tables, command: PutSetting | DeleteSetting, _: Sequence[AnyEvent]) -> Setting | None:
    return tables.settings.get((command.tenant, command.kind, command.name))


ANSWERS: Final[dict[type[Command], Callable[[Tables, Any, Sequence[AnyEvent]], Result]]] = {
    Enqueue: _accepted,
    LeaseJobs: _leases,
    Heartbeat: _holdings,
    Ack: _ended,
    Nack: _ended,
    Release: _ended,
    Cancel: _job,
    Requeue: _job,
    Update: _job,
    Expire: _changed,
    Age: _nothing,
    Lapse: _changed,
    Purge: _purged,
    PutSetting: _setting,
    DeleteSetting: _setting,
}
