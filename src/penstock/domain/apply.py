"""What an event does to the tables. Nothing is decided here: every store and every replay ends in the same state."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from penstock.domain import fingerprint
from penstock.domain.events import (
    Aged,
    AnyEvent,
    AttemptEvent,
    Cancelled,
    Died,
    Enqueued,
    Extended,
    Failed,
    Leased,
    Purged,
    Released,
    Requeued,
    SettingDeleted,
    SettingPut,
    Succeeded,
    Updated,
)
from penstock.domain.job import Ended, Ending, Hold, Job, Reason, State, Verb
from penstock.domain.settings import Setting
from penstock.domain.tables import Tables


def apply(tables: Tables, event: AnyEvent) -> None:
    """Let the event happen, at the time of the record it belongs to."""
    CHANGES[type(event)](tables, event)


def enqueued(tables: Tables, event: Enqueued) -> None:
    """A job begins."""
    tables.order += 1
    now, run_at = tables.now, event.run_at
    job = Job(
        event.id,
        event.queue,
        event.kind,
        event.payload,
        event.max_attempts,
        now,
        run_at or tables.log_time,
        tables.order,
        now,
        tables.seq,
        event.tenant,
        event.content_type,
        event.headers,
        event.priority,
        event.backoff,
        event.deadline_at,
        event.idempotency_key,
        run_at,
    )
    tables.add(job)


def leased(tables: Tables, event: Leased) -> None:
    """A worker has it."""
    job = tables.tenants[event.tenant].jobs[event.id]
    now = tables.now
    tables.change(
        job,
        replace(
            job,
            state=State.LEASED,
            attempt=event.attempt,
            lease_no=event.lease_no,
            rev=event.rev,
            worker=event.worker,
            progress=None,
            started_at=now,
            heartbeat_at=now,
            updated_at=now,
            seq=tables.seq,
            lease=Hold(event.call, event.index, event.lease_s),
        ),
    )


def extended(tables: Tables, event: Extended) -> None:
    """Its holder is alive."""
    job = tables.tenants[event.tenant].jobs[event.id]
    assert job.lease is not None
    hold = replace(job.lease, beats=event.beats, left_s=None)
    progress = job.progress if event.progress is None else event.progress
    beaten_at = max(tables.now, job.heartbeat_at or tables.now)
    changes = {"lease": hold, "progress": progress, "heartbeat_at": beaten_at}
    tables.change(job, replace(job, rev=event.rev, seq=tables.seq, **changes))


def aged(tables: Tables, event: Aged) -> None:
    """Whoever watches its lease from now on watches a shorter one."""
    job = tables.tenants[event.tenant].jobs[event.id]
    assert job.lease is not None
    tables.change(job, replace(job, lease=replace(job.lease, left_s=event.left_s)))


def succeeded(tables: Tables, event: Succeeded) -> None:
    """It is finished, and well."""
    job = tables.tenants[event.tenant].jobs[event.id]
    assert job.lease is not None
    now = tables.now
    tables.order += 1
    answer = Ended(job.id, State.SUCCEEDED, event.rev, job.attempt)
    tables.change(
        job,
        replace(
            job,
            order=tables.order,
            updated_at=now,
            seq=tables.seq,
            state=State.SUCCEEDED,
            rev=event.rev,
            lease=None,
            ending=Ending(job.lease.call, job.lease.index, Verb.ACK, answer),
            finished_at=now,
            reason=None,
            result_bytes=event.result,
        ),
    )


def failed(tables: Tables, event: Failed) -> None:
    """The attempt is over; the next one waits for its time."""
    job = tables.tenants[event.tenant].jobs[event.id]
    ending = _ending(job, event, event.verb, State.QUEUED, reason=event.reason, run_at=event.run_at)
    tables.change(
        job,
        _queued(
            tables,
            job,
            event.rev,
            run_at=event.run_at,
            reason=event.reason,
            error=event.error,
            error_fp=event.error_fp,
            lease_lost=job.lease_lost + (event.verb is Verb.EXPIRE),
            lease=None,
            ending=ending,
        ),
    )


def died(tables: Tables, event: Died) -> None:
    """It is finished: no attempt is left, or none would help."""
    job = tables.tenants[event.tenant].jobs[event.id]
    ending = job.ending if event.verb is None else _ending(job, event, event.verb, State.DEAD, reason=event.reason)
    tables.change(
        job,
        _finished(
            tables,
            job,
            event.rev,
            state=State.DEAD,
            reason=event.reason,
            error=event.error if event.error is not None else job.error,
            error_fp=event.error_fp if event.error is not None else job.error_fp,
            lease_lost=job.lease_lost + (event.verb is Verb.EXPIRE),
            releases=job.releases + (event.verb is Verb.RELEASE),
            ending=ending,
        ),
    )


def released(tables: Tables, event: Released) -> None:
    """It is back in line, as if the attempt had not been, unless it is charged."""
    job = tables.tenants[event.tenant].jobs[event.id]
    attempt = job.attempt if event.charged else job.attempt - 1
    ending = _ending(job, event, Verb.RELEASE, State.QUEUED, attempt=attempt, run_at=event.run_at)
    tables.change(
        job,
        _queued(
            tables,
            job,
            event.rev,
            run_at=event.run_at,
            attempt=attempt,
            releases=job.releases + 1,
            lease=None,
            ending=ending,
        ),
    )


def cancelled(tables: Tables, event: Cancelled) -> None:
    """It is finished: somebody said so."""
    job = tables.tenants[event.tenant].jobs[event.id]
    ending = _ending(job, event, Verb.CANCEL, State.CANCELLED) if event.held else job.ending
    tables.change(job, _finished(tables, job, event.rev, state=State.CANCELLED, reason=None, ending=ending))


def requeued(tables: Tables, event: Requeued) -> None:
    """It lives again: attempts from the start, lease numbers go on."""
    job = tables.tenants[event.tenant].jobs[event.id]
    changes: dict[str, Any] = {}
    if event.payload is not None:
        original = job.fingerprint or fingerprint.of_job(job.queue, job.kind, job.payload_bytes)
        changes = {
            "payload_bytes": event.payload,
            "content_type": event.content_type or job.content_type,
            "fingerprint": original,
        }
    tables.change(
        job,
        _queued(
            tables,
            job,
            event.rev,
            run_at=event.run_at,
            attempt=0,
            requeues=event.requeues,
            releases=0,
            reason=None,
            error=None,
            error_fp=None,
            result_bytes=None,
            progress=None,
            finished_at=None,
            deadline_at=None,
            **changes,
        ),
    )


def updated(tables: Tables, event: Updated) -> None:
    """It stands elsewhere in line."""
    job = tables.tenants[event.tenant].jobs[event.id]
    changes = {"priority": event.priority, "max_attempts": event.max_attempts}
    if event.run_at == job.run_at:
        # Its time is as before, so is its place within the priority.
        tables.change(job, replace(job, rev=event.rev, updated_at=tables.now, seq=tables.seq, **changes))
    else:
        tables.change(job, _queued(tables, job, event.rev, run_at=event.run_at, **changes))


def purged(tables: Tables, event: Purged) -> None:
    """Finished jobs are gone from the store."""
    tenant = tables.tenant(event.tenant)
    if event.finished_by is None or event.queue is None or event.state is None:
        gone = [tenant.jobs[job_id] for job_id in event.job_ids]
    else:
        gone = list(tenant.queue(event.queue).finished[event.state, event.keyed].until(event.finished_by))
    for job in gone:
        tables.remove(job)
    for name in {job.queue for job in gone}:
        tables.tidy(event.tenant, name)


def setting_put(tables: Tables, event: SettingPut) -> None:
    """A setting has a new value."""
    key = (event.tenant, event.kind, event.name)
    setting = Setting(
        tenant=event.tenant, kind=event.kind, name=event.name, value=event.value, rev=event.rev, updated_at=tables.now
    )
    tables.put_setting(key, setting, event.rev)


def setting_deleted(tables: Tables, event: SettingDeleted) -> None:
    """A setting is back to its defaults."""
    tables.put_setting((event.tenant, event.kind, event.name), None, event.rev)


def _queued(tables: Tables, job: Job, rev: int, *, run_at: datetime | None, **changes: Any) -> Job:
    """The job back in line: at its time if it has one, else at the end of those that are ready now."""
    tables.order += 1
    return replace(
        job,
        state=State.QUEUED,
        rev=rev,
        run_at=run_at,
        ready_at=run_at or tables.log_time,
        order=tables.order,
        updated_at=tables.now,
        seq=tables.seq,
        **changes,
    )


def _finished(tables: Tables, job: Job, rev: int, **changes: Any) -> Job:
    now = tables.now
    tables.order += 1
    changes |= {"finished_at": now, "updated_at": now, "order": tables.order, "seq": tables.seq}
    return replace(job, rev=rev, lease=None, **changes)


def _ending(
    job: Job,
    event: AttemptEvent,
    verb: Verb,
    state: State,
    *,
    reason: Reason | None = None,
    run_at: datetime | None = None,
    attempt: int | None = None,
) -> Ending:
    """What the job remembers of the attempt that ends now."""
    assert job.lease is not None
    answer = Ended(job.id, state, event.rev, job.attempt if attempt is None else attempt, reason, run_at)
    return Ending(job.lease.call, job.lease.index, verb, answer)


CHANGES: Final[dict[type[AnyEvent], Callable[[Tables, Any], None]]] = {
    Enqueued: enqueued,
    Leased: leased,
    Extended: extended,
    Aged: aged,
    Succeeded: succeeded,
    Failed: failed,
    Died: died,
    Released: released,
    Cancelled: cancelled,
    Requeued: requeued,
    Updated: updated,
    Purged: purged,
    SettingPut: setting_put,
    SettingDeleted: setting_deleted,
}
