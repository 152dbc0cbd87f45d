"""What each event of a known job must fulfil, judged by the books alone, and what it leaves in them.

An event is judged when its rev follows; then it is taken as it is, right or wrong, so that one fault is one finding
and not a hundred. The order of a job's events is the order of ``rev``: only ``_its_turn`` looks beyond the job.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from penstock.domain.events import (
    AttemptEvent,
    Cancelled,
    Died,
    Extended,
    Failed,
    JobEvent,
    Leased,
    Released,
    Requeued,
    Succeeded,
    Updated,
)
from penstock.domain.job import Reason, State, Verb
from penstock.domain.limits import FREE_RELEASES, MAX_ATTEMPTS
from penstock.domain.verify.book import Book, Queue, Tenant
from penstock.domain.verify.seen import Held, Seen

# Two readings of the wall clocks that commit can differ by so much: each may be half of it off (rule 8).
_CLOCKS: Final = timedelta(seconds=60)


def lease(book: Book, tenant: Tenant, job: Seen, event: Leased) -> None:
    """The first ready job of a queue that is not paused, the next lease, the next attempt."""
    if job.state is State.LEASED:
        book.say("lease", job.id, "leased while another lease holds it", held=job.lease_no)
    elif job.state is not State.QUEUED:
        book.say("finished", job.id, "leased after it finished", state=job.state)
    if event.lease_no != job.lease_no + 1:
        book.say("lease_no", job.id, "lease numbers rise by one", lease_no=event.lease_no, before=job.lease_no)
    if event.attempt != job.attempt + 1:
        book.say("attempt", job.id, "a lease is one attempt more", attempt=event.attempt, before=job.attempt)
    if event.attempt > job.max_attempts:
        book.say("max_attempts", job.id, "no attempt was left", attempt=event.attempt, max_attempts=job.max_attempts)
    if event.call != book.call:
        _begin_call(book, tenant, event)
    if event.index != book.index:
        book.say("call", job.id, "the leases of a call count from 0", index=event.index, expected=book.index)
    if job.state is State.QUEUED:
        _its_turn(book, tenant.queues[job.queue], job)


def _its_turn(book: Book, queue: Queue, job: Seen) -> None:
    at = book.at
    if job.run_at is not None and job.run_at > at and job.run_at - at > _CLOCKS:
        book.say("early", job.id, "leased before its time", run_at=job.run_at)
    if job.deadline_at is not None and job.deadline_at <= at:
        book.say("deadline", job.id, "leased after its deadline", deadline_at=job.deadline_at)
    if queue.paused:
        book.say("paused", job.id, "leased while its queue was paused", queue=job.queue)
        return
    for kind in book.kinds:
        line = queue.lines.get(kind)
        first = None if line is None else line.first(at)
        if first is not None and first is not job and first.place < job.place:
            book.say("order", job.id, "leased before a job that was ahead of it", ahead=first.id)


def _begin_call(book: Book, tenant: Tenant, event: Leased) -> None:
    """Look which kinds the call takes: of these it must take the first, whatever else its filter left out."""
    if event.call in tenant.calls:
        book.say("call", event.id, "a lease call that holds jobs took more", held=tenant.calls[event.call])
    kinds = {event.kind: None}
    for place in range(book.line, len(book.events)):
        other = book.events[place]
        if type(other) is Leased and other.call == event.call:
            kinds[other.kind] = None
        elif type(other) is not Died:
            break
    book.call, book.kinds, book.index = event.call, tuple(kinds), 0


def leased(book: Book, tenant: Tenant, job: Seen, event: Leased) -> None:
    """A worker has it."""
    tenant.leave(job)
    job.attempt, job.lease_no = event.attempt, event.lease_no
    book.index = event.index + 1
    tenant.hold(job, Held(event.call, event.lease_s, event.lease_s))


def current(book: Book, job: Seen, event: AttemptEvent) -> bool:
    """Whether the lease that the event speaks of holds the job."""
    if event.lease_no != job.lease_no or event.attempt != job.attempt:
        book.say(
            "stale", job.id, "of a lease that is not current", lease_no=event.lease_no, attempt=event.attempt,
            current=job.lease_no, current_attempt=job.attempt,
        )  # fmt: skip
    if job.held is not None:
        return True
    if job.state is State.SUCCEEDED and type(event) is Succeeded:
        book.say("completion", job.id, "a second completion was accepted", lease_no=event.lease_no)
    elif job.state is State.QUEUED:
        rule = "expiry" if getattr(event, "verb", None) is Verb.EXPIRE else "ending"
        book.say(rule, job.id, f"{_name(event)} while nobody holds it", lease_no=event.lease_no)
    else:
        book.say("finished", job.id, f"{_name(event)} after it finished", state=job.state)
    return False


def _name(event: JobEvent) -> str:
    return str(event.__struct_config__.tag)


def extend(book: Book, tenant: Tenant, job: Seen, event: Extended) -> None:
    """By the holder; heartbeats are counted."""
    del tenant
    held = job.held
    if current(book, job, event) and held is not None and event.beats != held.beats + 1:
        book.say("beats", job.id, "heartbeats rise by one", beats=event.beats, before=held.beats)


def extended(book: Book, tenant: Tenant, job: Seen, event: Extended) -> None:
    """Its holder is alive."""
    del book, tenant
    if job.held is not None:
        job.held.beats = event.beats
        job.held.left_s = job.held.lease_s
        if event.progress is not None:
            job.held.progress = event.progress


def succeed(book: Book, tenant: Tenant, job: Seen, event: Succeeded) -> None:
    """By the holder."""
    del tenant
    current(book, job, event)


def succeeded(book: Book, tenant: Tenant, job: Seen, event: Succeeded) -> None:
    """It is finished, and well."""
    book.acked.add((event.tenant, job.id))
    job.result = 0 if event.result is None else hash(event.result)
    _finished(book, tenant, job, State.SUCCEEDED, None)


def fail(book: Book, tenant: Tenant, job: Seen, event: Failed) -> None:
    """By the holder or by expiry, while attempts and time are left."""
    del tenant
    current(book, job, event)
    if event.attempt >= job.max_attempts:
        book.say("retry", job.id, "queued again after its last attempt", attempt=event.attempt)
    if event.verb is Verb.EXPIRE and event.reason is not Reason.LEASE_EXPIRED:
        book.say("expiry", job.id, "an expiry has its own reason", reason=event.reason)
    if event.run_at < book.at:
        book.say("time", job.id, "the next attempt is before this one ended", run_at=event.run_at)
    _in_time(book, job, event)


def failed(book: Book, tenant: Tenant, job: Seen, event: Failed) -> None:
    """The next attempt waits for its time."""
    job.attempt, job.lease_no, job.reason = event.attempt, event.lease_no, event.reason
    job.lease_lost += event.verb is Verb.EXPIRE
    _queued(book, tenant, job, event.run_at)


def _in_time(book: Book, job: Seen, event: JobEvent) -> None:
    if job.deadline_at is not None and job.deadline_at <= book.at:
        book.say("deadline", job.id, f"{_name(event)} after its deadline", deadline_at=job.deadline_at)


def die(book: Book, tenant: Tenant, job: Seen, event: Died) -> None:
    """With a reason; of its deadline while queued, else by the holder or by expiry, when nothing else was left."""
    del tenant
    late = job.deadline_at is not None and job.deadline_at <= book.at
    if event.reason is None:
        book.say("reason", job.id, "dead without a reason")
    if event.verb is None:
        if job.state is not State.QUEUED:
            rule = "finished" if job.state.finished else "lease"
            book.say(rule, job.id, "it died in the queue and was not there", state=job.state)
        if not late or event.reason is not Reason.DEADLINE:
            book.say("deadline", job.id, "it died before its deadline", deadline_at=job.deadline_at)
        return
    current(book, job, event)
    last = job.attempt >= job.max_attempts
    if event.verb is Verb.EXPIRE and (not (last or late) or event.reason is not Reason.LEASE_EXPIRED):
        book.say("expiry", job.id, "it died of an expiry", attempt=job.attempt, reason=event.reason)
    if event.verb is Verb.RELEASE and not late and not (last and job.releases >= FREE_RELEASES):
        book.say("release", job.id, "it died of a release", attempt=job.attempt, releases=job.releases)


def died(book: Book, tenant: Tenant, job: Seen, event: Died) -> None:
    """It is finished: no attempt is left, or none would help."""
    job.attempt, job.lease_no = event.attempt, event.lease_no
    job.lease_lost += event.verb is Verb.EXPIRE
    job.releases += event.verb is Verb.RELEASE
    _finished(book, tenant, job, State.DEAD, event.reason)


def release(book: Book, tenant: Tenant, job: Seen, event: Released) -> None:
    """By the holder, in time, and free only so often."""
    del tenant
    current(book, job, event)
    if event.charged is not (job.releases >= FREE_RELEASES):
        book.say("release", job.id, f"only {FREE_RELEASES} are free", releases=job.releases, charged=event.charged)
    if event.charged and event.attempt >= job.max_attempts:
        book.say("retry", job.id, "queued again after its last attempt", attempt=event.attempt)
    if event.run_at is not None and event.run_at < book.at:
        book.say("time", job.id, "it was ready before it was released", run_at=event.run_at)
    _in_time(book, job, event)


def released(book: Book, tenant: Tenant, job: Seen, event: Released) -> None:
    """It is back in line; the attempt is given back unless it is charged."""
    job.attempt = event.attempt if event.charged else event.attempt - 1
    job.lease_no = event.lease_no
    job.releases += 1
    _queued(book, tenant, job, event.run_at)


def cancel(book: Book, tenant: Tenant, job: Seen, event: Cancelled) -> None:
    """Not when it is finished; and it says truly whether somebody holds it."""
    del tenant
    if job.state.finished:
        book.say("finished", job.id, "cancelled after it finished", state=job.state)
    elif event.held is not (job.held is not None):
        book.say("ending", job.id, "cancelled as if it were elsewhere", held=event.held, state=job.state)
    if event.lease_no != job.lease_no or event.attempt != job.attempt:
        book.say("stale", job.id, "of a lease that is not current", lease_no=event.lease_no, current=job.lease_no)


def cancelled(book: Book, tenant: Tenant, job: Seen, event: Cancelled) -> None:
    """It is finished: somebody said so."""
    job.attempt, job.lease_no = event.attempt, event.lease_no
    _finished(book, tenant, job, State.CANCELLED, None)


def requeue(book: Book, tenant: Tenant, job: Seen, event: Requeued) -> None:
    """Only of a finished job, and its lives are counted."""
    del tenant
    if not job.state.finished:
        book.say("requeue", job.id, "requeued while it was not finished", state=job.state)
    if event.requeues != job.requeues + 1:
        book.say("requeue", job.id, "lives rise by one", requeues=event.requeues, before=job.requeues)
    if event.run_at is not None and event.run_at < book.at:
        book.say("time", job.id, "it was ready before it was requeued", run_at=event.run_at)


def requeued(book: Book, tenant: Tenant, job: Seen, event: Requeued) -> None:
    """It lives again: attempts from the start, lease numbers go on."""
    if event.payload is not None:
        job.payload = hash(event.payload)
    job.attempt, job.releases, job.requeues, job.reason, job.result = 0, 0, event.requeues, None, 0
    job.finished_at = job.deadline_at = None
    _queued(book, tenant, job, event.run_at)


def update(book: Book, tenant: Tenant, job: Seen, event: Updated) -> None:
    """Only of a queued job, with attempts left, to a time that is still to come."""
    del tenant
    if job.state is not State.QUEUED:
        rule = "finished" if job.state.finished else "update"
        book.say(rule, job.id, "updated while it was not queued", state=job.state)
    if not job.attempt < event.max_attempts <= MAX_ATTEMPTS:
        book.say("max_attempts", job.id, "as many are made", attempt=job.attempt, max_attempts=event.max_attempts)
    if event.run_at not in {None, job.run_at} and event.run_at < book.at:
        book.say("time", job.id, "moved to a time that was over", run_at=event.run_at)


def updated(book: Book, tenant: Tenant, job: Seen, event: Updated) -> None:
    """It stands elsewhere in line; within the priority only if its time has changed."""
    job.priority, job.max_attempts = event.priority, event.max_attempts
    if event.run_at != job.run_at or job.state is not State.QUEUED:
        _queued(book, tenant, job, event.run_at)
    else:
        order = job.order
        tenant.leave(job)
        job.order = order
        tenant.stand(job, book.at)


def _queued(book: Book, tenant: Tenant, job: Seen, run_at: datetime | None) -> None:
    tenant.leave(job)
    job.state = State.QUEUED
    job.run_at, job.ready_at, job.order = run_at, run_at or book.log_time, book.next_order()
    tenant.stand(job, book.at)


def _finished(book: Book, tenant: Tenant, job: Seen, state: State, reason: Reason | None) -> None:
    tenant.leave(job)
    job.state, job.reason, job.finished_at, job.order = state, reason, book.at, book.next_order()
    tenant.shelve(job)


Judge = Callable[[Book, Tenant, Seen, Any], None]

# What must hold before, and what the event makes of the job.
CHANGES: Final[dict[type[JobEvent], tuple[Judge, Judge]]] = {
    Leased: (lease, leased),
    Extended: (extend, extended),
    Succeeded: (succeed, succeeded),
    Failed: (fail, failed),
    Died: (die, died),
    Released: (release, released),
    Cancelled: (cancel, cancelled),
    Requeued: (requeue, requeued),
    Updated: (update, updated),
}
