"""What a command leads to: ``decide(tables, command)`` gives its events, or raises and nothing changes.

A decision reads the tables and changes nothing. It raises before its first event or not at all; its events are
applied one by one as they are taken, so a lease sees the line without the jobs it has already taken.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from penstock.domain import backoff, fingerprint, limits
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
    SettingKind,
    Update,
)
from penstock.domain.enqueue import enqueue, follow_ups
from penstock.domain.events import (
    Aged,
    AnyEvent,
    Cancelled,
    Died,
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
from penstock.domain.job import BYTES, Holding, Job, Reason, State, Verb
from penstock.domain.settings import Results, merged, queue_settings
from penstock.domain.tables import QueueTable, Tables, TenantTable
from penstock.errors import Conflict, LeaseLost, NotFound

Events = Iterable[AnyEvent]


def decide(tables: Tables, command: Command) -> Events:
    """The events this command leads to; none if it is a repeat or there is nothing to do."""
    return DECISIONS[type(command)](tables, command)


def heartbeat(tables: Tables, command: Heartbeat) -> Iterator[AnyEvent]:
    """Extend each lease that is still held; the others are answered, not refused."""
    for beat in command.beats:
        job = tables.find(command.tenant, beat.job_id)
        if job is not None and job.lease is not None and holding(job, beat.token) is Holding.HELD:
            changed = beat.progress is not None and beat.progress != job.progress
            yield Extended(
                **_attempt(job, command, rev=job.rev + changed), beats=job.lease.beats + 1, progress=beat.progress
            )


def ack(tables: Tables, command: Ack) -> Events:
    """The attempt worked: the job is finished, and its follow-ups are enqueued with it."""
    job = held(tables, command, Verb.ACK)
    if job is None:
        return ()
    result = kept = command.result
    if result is not None and tables.queue_settings(job.tenant, job.queue).results is Results.DISCARD:
        kept = None
    succeeded = Succeeded(
        tenant=job.tenant,
        actor=command.actor,
        call_id=command.call_id,
        id=job.id,
        queue=job.queue,
        kind=job.kind,
        rev=job.rev + 1,
        before=job.seq,
        attempt=job.attempt,
        lease_no=job.lease_no,
        worker=job.worker,
        result=kept,
        result_size=0 if result is None else len(result),
    )
    # Apart, since more than fifteen keywords make Python build a dict for the call, and most acks bring none of these.
    if command.ran_s is not None or command.usage is not None or command.output is not None:
        succeeded = replace(succeeded, ran_s=command.ran_s, usage=command.usage, output=command.output)
    return (succeeded, *follow_ups(tables, command, job)) if command.then else (succeeded,)


def nack(tables: Tables, command: Nack) -> Events:
    """The attempt failed: queue the next one, or declare the job dead after the last."""
    job = held(tables, command, Verb.NACK)
    if job is None:
        return ()
    told: dict[str, Any] = {
        "error": command.error or None,
        "error_fp": fingerprint.of_error(command.error) if command.error else None,
        "ran_s": command.ran_s,
        "usage": command.usage,
        "output": command.output,
    }
    return _failed(
        tables,
        command,
        job,
        verb=Verb.NACK,
        retry=command.retry,
        delay_s=command.delay_s,
        reason=command.reason,
        **told,
    )


def expire(tables: Tables, command: Expire) -> Events:
    """The holder went quiet: as nack. Void if a heartbeat or anything else came first."""
    job = tables.find(command.tenant, command.job_id)
    if job is None or job.lease is None or (job.lease_no, job.lease.beats) != (command.lease_no, command.beats):
        return ()
    error = f"the worker went quiet: no heartbeat for {job.lease.lease_s:g} s"
    return _failed(
        tables,
        command,
        job,
        verb=Verb.EXPIRE,
        reason=Reason.LEASE_EXPIRED,
        error=error,
        error_fp=fingerprint.of_error(error),
    )


def age(tables: Tables, command: Age) -> Events:
    """Less is left of a lease than the store says. Void if it was extended or has ended."""
    job = tables.find(command.tenant, command.job_id)
    if job is None or job.lease is None or (job.lease_no, job.lease.beats) != (command.lease_no, command.beats):
        return ()
    if command.left_s >= (job.lease.lease_s if job.lease.left_s is None else job.lease.left_s):
        return ()
    return (Aged(**_who(command), id=job.id, lease_no=job.lease_no, left_s=command.left_s),)


def _failed(
    tables: Tables,
    command: Command,
    job: Job,
    *,
    reason: Reason | None,
    retry: bool = True,
    delay_s: float | None = None,
    **told: Any,
) -> Events:
    late = job.deadline_at is not None and job.deadline_at <= tables.now
    if retry and not late and job.attempt < job.max_attempts:
        policy = job.backoff or tables.queue_settings(job.tenant, job.queue).backoff
        wait_s = backoff.wait_s(policy, job_id=job.id, attempt=job.attempt) if delay_s is None else delay_s
        return (Failed(**_attempt(job, command), run_at=_later(tables, wait_s), reason=reason, **told),)
    if reason is None:
        reason = Reason.NOT_RETRYABLE if not retry else Reason.DEADLINE if late else Reason.ATTEMPTS_EXHAUSTED
    return (Died(**_attempt(job, command), reason=reason, **told),)


def release(tables: Tables, command: Release) -> Events:
    """Give the job back without charging the attempt, unless that has happened too often."""
    job = held(tables, command, Verb.RELEASE)
    if job is None:
        return ()
    charged = job.releases >= limits.FREE_RELEASES
    if job.deadline_at is not None and job.deadline_at <= tables.now:
        return (Died(**_attempt(job, command), reason=Reason.DEADLINE, verb=Verb.RELEASE, ran_s=command.ran_s),)
    if charged and job.attempt >= job.max_attempts:
        return (
            Died(**_attempt(job, command), reason=Reason.ATTEMPTS_EXHAUSTED, verb=Verb.RELEASE, ran_s=command.ran_s),
        )
    run_at = _later(tables, command.delay_s) if command.delay_s else None
    return (Released(**_attempt(job, command), charged=charged, run_at=run_at, ran_s=command.ran_s),)


def lapse(tables: Tables, command: Lapse) -> Events:
    """Still queued at its deadline: dead. Void if it is not."""
    job = tables.find(command.tenant, command.job_id)
    if job is None or job.state is not State.QUEUED or job.deadline_at is None or job.deadline_at > tables.now:
        return ()
    return (_lapsed(job, command),)


def _lapsed(job: Job, command: Command) -> Died:
    return Died(**_attempt(job, command), reason=Reason.DEADLINE, verb=None)


def cancel(tables: Tables, command: Cancel) -> Events:
    """Nobody shall run it any more; a holder learns it at its next heartbeat."""
    job = found(tables, command.tenant, command.job_id)
    same_life(job, command.requeues)
    if job.state is State.CANCELLED:
        return ()
    if job.state.finished:
        raise Conflict("the job is finished already and cannot be cancelled", job_id=job.id, state=job.state)
    return (Cancelled(**_attempt(job, command), held=job.lease is not None),)


def requeue(tables: Tables, command: Requeue) -> Events:
    """Run a finished job again. The life it begins is the caller's plus one, so a repeat is known."""
    job = found(tables, command.tenant, command.job_id)
    if job.requeues == command.requeues + 1:
        return ()
    same_life(job, command.requeues)
    if not job.state.finished or (job.state is State.SUCCEEDED and not command.again):
        hint = (
            "say that it shall run again (again=True)"
            if job.state is State.SUCCEEDED
            else "only a finished job can be requeued"
        )
        raise Conflict(f"the job is {job.state}: {hint}", job_id=job.id, state=job.state)
    return (
        Requeued(
            **_change(job, command),
            requeues=job.requeues + 1,
            run_at=_later(tables, command.delay_s) if command.delay_s else None,
            payload=command.payload,
            content_type=None if command.payload is None else command.content_type or BYTES,
        ),
    )


def update(tables: Tables, command: Update) -> Events:
    """Change a queued job's time, priority or attempts; nothing happens when it is so already."""
    job = found(tables, command.tenant, command.job_id)
    same_life(job, command.requeues)
    if job.state is not State.QUEUED:
        raise Conflict("only a queued job can be updated", job_id=job.id, state=job.state)
    run_at = _moved(tables, job, command)
    priority = job.priority if command.priority is None else command.priority
    max_attempts = job.max_attempts if command.max_attempts is None else command.max_attempts
    if max_attempts <= job.attempt:
        raise Conflict("max_attempts must be above the attempts made", job_id=job.id, attempt=job.attempt)
    if (run_at, priority, max_attempts) == (job.run_at, job.priority, job.max_attempts):
        return ()
    return (Updated(**_change(job, command), run_at=run_at, priority=priority, max_attempts=max_attempts),)


def _moved(tables: Tables, job: Job, command: Update) -> datetime | None:
    """When the job shall run. A time that has come is now, and a job that is due keeps its place."""
    if command.run_at is not None and command.run_at > tables.now:
        return limits.soon("run_at", command.run_at, tables.now)
    wanted_now = command.now or command.run_at is not None
    return None if wanted_now and job.run_at is not None and job.run_at > tables.now else job.run_at


def purge(tables: Tables, command: Purge) -> Events:
    """Take finished jobs out: those named, or those of one queue and state that finished early enough."""
    if command.finished_by is None:
        known = [job for job in (tables.find(command.tenant, job_id) for job_id in command.job_ids) if job is not None]
        for job in known:
            if not job.state.finished:
                raise Conflict("only a finished job can be purged; cancel it first", job_id=job.id, state=job.state)
            if kept_until(job) > tables.now:
                raise Conflict(
                    "the job is too young to be purged: a repeated call may still ask for it",
                    job_id=job.id,
                    until=kept_until(job),
                )
        ids = tuple(dict.fromkeys(job.id for job in known))
        return (Purged(**_who(command), job_ids=ids, count=len(ids)),) if ids else ()
    return _outlived(tables, command)


def kept_until(job: Job) -> datetime:
    """Until when a finished job stays, whoever wants it gone: repeated calls are safe for a stated time (rule 5)."""
    assert job.finished_at is not None
    kept = job.finished_at + timedelta(seconds=limits.REPEAT_S)
    return kept if job.idempotency_key is None else max(kept, job.created_at + timedelta(seconds=limits.KEY_KEPT_S))


def _outlived(tables: Tables, command: Purge) -> Events:
    # The bound is drawn so that one commit takes a slice, and everything up to it: no count decides what is purged.
    assert command.queue is not None
    assert command.state is not None
    assert command.finished_by is not None
    queue = tables.queue(command.tenant, command.queue)
    shelf = None if queue is None else queue.finished.get((command.state, command.keyed))
    if shelf is None:
        return ()
    kept_s = limits.KEY_KEPT_S if command.keyed else limits.REPEAT_S
    latest = min(command.finished_by, tables.now - timedelta(seconds=kept_s))
    slice_ = list(islice(shelf.until(latest), limits.PURGE_SLICE))
    if not slice_:
        return ()
    bound = slice_[-1].finished_at
    assert bound is not None
    event = Purged(
        **_who(command),
        queue=command.queue,
        state=command.state,
        keyed=command.keyed,
        finished_by=bound,
        count=sum(1 for _ in shelf.until(bound)),
    )
    return (event,)


def put_setting(tables: Tables, command: PutSetting) -> Events:
    """Merge the patch; nothing happens when the setting is so already."""
    key = (command.tenant, command.kind, command.name)
    present = tables.settings.get(key)
    value = merged({} if present is None else present.value, msgspec.to_builtins(command.patch))
    if command.kind is SettingKind.QUEUE:
        queue_settings(value)
    if value == ({} if present is None else present.value):
        return ()
    rev = tables.setting_revs.get(key, 0) + 1
    return (SettingPut(**_who(command), kind=command.kind, name=command.name, rev=rev, value=value),)


def delete_setting(tables: Tables, command: DeleteSetting) -> Events:
    """Back to the defaults; nothing happens when there is no such setting."""
    key = (command.tenant, command.kind, command.name)
    if key not in tables.settings:
        return ()
    return (SettingDeleted(**_who(command), kind=command.kind, name=command.name, rev=tables.setting_revs[key] + 1),)


def lease(tables: Tables, command: LeaseJobs) -> Events:
    """Hand over the first ready jobs of the queues, in order of preference; a repeated call takes nothing new."""
    tenant = tables.tenants.get(command.tenant)
    call = fingerprint.of_call(command.request_id)
    if tenant is None or call in tenant.calls:
        return ()
    # What nearly every call is: one job, and the queue it would like best has one.
    queue = tenant.queues.get(command.queues[0])
    if command.limit == 1 and queue is not None and not queue.settings.paused:
        job = first(queue, command.kinds, tables.now)
        if job is not None and job.deadline_at is None:
            return (_leased(job, command, call, 0),)
    return _lease_one_by_one(tables, tenant, command, call)


def _lease_one_by_one(tables: Tables, tenant: TenantTable, command: LeaseJobs, call: str) -> Iterator[AnyEvent]:
    index = 0
    for name in command.queues:
        queue = tenant.queues.get(name)
        if queue is None or queue.settings.paused:
            continue
        while index < command.limit:
            job = first(queue, command.kinds, tables.now)
            if job is None:
                break
            if job.deadline_at is not None and job.deadline_at <= tables.now:
                yield _lapsed(job, command)
                continue
            yield _leased(job, command, call, index)
            index += 1


def _leased(job: Job, command: LeaseJobs, call: str, index: int) -> Leased:
    return Leased(
        tenant=job.tenant,
        actor=command.actor,
        call_id=command.call_id,
        id=job.id,
        queue=job.queue,
        kind=job.kind,
        rev=job.rev + 1,
        before=job.seq,
        attempt=job.attempt + 1,
        lease_no=job.lease_no + 1,
        worker=command.worker,
        lease_s=command.lease_s,
        call=call,
        index=index,
    )


def first(queue: QueueTable, kinds: tuple[str, ...] | None, now: datetime) -> Job | None:
    """The job of the queue to run next, of the wanted kinds: the lines are merged by their heads."""
    lines = queue.lines
    best: Job | None = None
    for kind in lines if kinds is None else kinds:
        line = lines.get(kind)
        job = None if line is None else line.head(now)
        if job is not None and (best is None or _place(job) < _place(best)):
            best = job
    return best


def _place(job: Job) -> tuple[int, datetime, int]:
    return job.priority, job.ready_at, job.order


def found(tables: Tables, tenant: str, job_id: str) -> Job:
    """The job, or NotFound, which looks the same for a job of another tenant."""
    job = tables.find(tenant, job_id)
    if job is None:
        raise NotFound("there is no such job", job_id=job_id)
    return job


def held(tables: Tables, command: Ack | Nack | Release, verb: Verb) -> Job | None:
    """The job that the command's token holds; None if this very command ended the attempt already.

    No clock is asked: a token is good until an expiry was committed. Any other token, and any unknown or foreign
    job, is LeaseLost, and they all look the same.
    """
    tenant = tables.tenants.get(command.tenant)
    job = None if tenant is None else tenant.jobs.get(command.job_id)
    if job is not None:
        token = fingerprint.token_parts(command.token)
        lease, ending = job.lease, job.ending
        if lease is not None and (lease.call, lease.index) == token:
            return job
        if ending is not None and (ending.call, ending.index) == token:
            if ending.verb is verb:
                return None
            if ending.verb is Verb.CANCEL:
                raise LeaseLost(
                    "the job was cancelled while it ran: stop working on it", job_id=job.id, state=State.CANCELLED
                )
    raise LeaseLost("this token does not hold the job: stop working on it", job_id=command.job_id)


def holding(job: Job | None, token: str) -> Holding:
    """What the token is to the job now: what a heartbeat with it is answered."""
    if job is not None:
        parts = fingerprint.token_parts(token)
        if job.lease is not None and (job.lease.call, job.lease.index) == parts:
            return Holding.HELD
        if job.ending is not None and job.ending.verb is Verb.CANCEL and (job.ending.call, job.ending.index) == parts:
            return Holding.CANCELLED
    return Holding.LOST


def same_life(job: Job, requeues: int) -> None:
    """Refuse a command that was meant for an earlier life of the job."""
    if job.requeues != requeues:
        raise Conflict(
            "the job has been requeued since you looked; look again",
            job_id=job.id,
            state=job.state,
            requeues=job.requeues,
        )


def _later(tables: Tables, delay_s: float) -> datetime:
    return tables.now + timedelta(seconds=delay_s)


def _who(command: Command) -> dict[str, Any]:
    return {"tenant": command.tenant, "actor": command.actor, "call_id": command.call_id}


def _change(job: Job, command: Command) -> dict[str, Any]:
    return {**_who(command), "id": job.id, "queue": job.queue, "kind": job.kind, "rev": job.rev + 1, "before": job.seq}


def _attempt(job: Job, command: Command, *, rev: int = 0) -> dict[str, Any]:
    return {
        "tenant": job.tenant,
        "actor": command.actor,
        "call_id": command.call_id,
        "id": job.id,
        "queue": job.queue,
        "kind": job.kind,
        "rev": rev or job.rev + 1,
        "before": job.seq,
        "attempt": job.attempt,
        "lease_no": job.lease_no,
        "worker": job.worker,
    }


DECISIONS: Final[dict[type[Command], Callable[[Tables, Any], Events]]] = {
    Heartbeat: heartbeat,
    Ack: ack,
    Nack: nack,
    Release: release,
    Cancel: cancel,
    Expire: expire,
    Age: age,
    Lapse: lapse,
    Requeue: requeue,
    Update: update,
    Purge: purge,
    PutSetting: put_setting,
    DeleteSetting: delete_setting,
    Enqueue: enqueue,
    LeaseJobs: lease,
}
