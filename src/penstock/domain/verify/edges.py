"""What must hold when jobs come and go, when a lease ages, and when a setting changes; judged by the books alone."""

from collections.abc import Callable
from datetime import timedelta
from sys import intern
from typing import Any, Final

from penstock.domain.commands import SettingKind
from penstock.domain.events import Aged, AnyEvent, Enqueued, Purged, SettingDeleted, SettingPut
from penstock.domain.limits import KEY_KEPT_S, MAX_ATTEMPTS, REPEAT_S, fresh_id
from penstock.domain.verify.book import Book, Tenant
from penstock.domain.verify.seen import Seen
from penstock.errors import Invalid

_REPEAT: Final = timedelta(seconds=REPEAT_S)
_KEY_KEPT: Final = timedelta(seconds=KEY_KEPT_S)


def enqueued(book: Book, event: Enqueued) -> None:
    """A job begins: once, new, by its own names, with a key that nobody has."""
    tenant = book.tenant(event.tenant)
    known = tenant.jobs.get(event.id)
    if known is not None:
        book.say("first", event.id, "the job is enqueued a second time", before=known.seq)
        return
    _new(book, event)
    if event.parent is not None and (event.tenant, event.parent) not in book.acked:
        book.say("follow_up", event.id, "a follow-up without the ack of its parent in this record", parent=event.parent)
    if event.idempotency_key is not None:
        other = tenant.keys.setdefault(event.idempotency_key, event.id)
        if other != event.id:
            book.say("key", event.id, "this idempotency key names another job already", other=other)
    queue = tenant.queue(event.queue)
    queue.open += 1
    book.jobs += 1
    if queue.open > queue.max_depth and event.parent is None:
        book.say("depth", event.id, "the queue was full", max_depth=queue.max_depth)
    seen = tenant.jobs[event.id] = Seen(
        id=event.id,
        queue=intern(event.queue),
        kind=intern(event.kind),
        created_at=book.at,
        key=event.idempotency_key,
        payload=hash(event.payload),
        max_attempts=event.max_attempts,
        priority=event.priority,
        deadline_at=event.deadline_at,
        run_at=event.run_at,
        ready_at=event.run_at or book.log_time,
        order=book.next_order(),
        seq=book.seq,
    )
    tenant.stand(seen, book.at)


def _new(book: Book, event: Enqueued) -> None:
    if event.rev != 1 or event.before:
        book.say("first", event.id, "the first event of a job has rev 1 and none before it", rev=event.rev)
    if not 1 <= event.max_attempts <= MAX_ATTEMPTS:
        book.say("max_attempts", event.id, "out of range", max_attempts=event.max_attempts)
    if event.run_at is not None and event.run_at < book.at:
        book.say("time", event.id, "it was ready before it was enqueued", run_at=event.run_at)
    try:
        fresh_id(event.id, book.at.timestamp())
    except (Invalid, ValueError):
        book.say("id", event.id, "the time in the id is far from the record's", at=book.at)


def aged(book: Book, event: Aged) -> None:
    """Less is left of a lease that is held."""
    job = book.tenant(event.tenant).jobs.get(event.id)
    if job is None:
        book.say("unknown", event.id, "aged without being there: never enqueued, or purged")
    elif job.held is None or job.lease_no != event.lease_no:
        book.say("aged", event.id, "of a lease that is not current", lease_no=event.lease_no, current=job.lease_no)
    elif not 0 <= event.left_s < job.held.left_s:
        book.say("aged", event.id, "no less is left than before", left_s=event.left_s, before=job.held.left_s)
    else:
        job.held.left_s = event.left_s


def purged(book: Book, event: Purged) -> None:
    """Only finished jobs go, as many as it says, when they were kept long enough."""
    tenant = book.tenant(event.tenant)
    if event.finished_by is None or event.queue is None or event.state is None:
        gone = _named(book, tenant, event)
    else:
        shelf = tenant.queue(event.queue).shelves.get((event.state, event.keyed))
        gone = [] if shelf is None else list(shelf.take(event.finished_by))
    if len(gone) != event.count:
        book.say("purge", None, "not as many jobs as it says", count=event.count, found=len(gone))
    for job in gone:
        _outlived(book, job)
        tenant.forget(job)
    for name in {job.queue for job in gone}:
        tenant.tidy(name)


def _named(book: Book, tenant: Tenant, event: Purged) -> list[Seen]:
    gone = {}
    for job_id in event.job_ids:
        job = tenant.jobs.get(job_id)
        if job is None:
            book.say("unknown", job_id, "purged without being there: never enqueued, or purged before")
        else:
            gone[job_id] = job
    return list(gone.values())


def _outlived(book: Book, job: Seen) -> None:
    at = book.at
    if job.finished_at is None:
        book.say("purge", job.id, "purged while it was not finished", state=job.state)
    elif at - job.finished_at < _REPEAT:
        book.say("kept", job.id, "purged while a repeat could ask for it", finished_at=job.finished_at)
    elif job.key is not None and at - job.finished_at < _KEY_KEPT and at - job.created_at < _KEY_KEPT:
        book.say("kept", job.id, "purged while its key had to be kept", created_at=job.created_at)


def setting_put(book: Book, event: SettingPut) -> None:
    """A setting has the next rev and a value that can be used."""
    tenant, key = book.tenant(event.tenant), (event.kind, event.name)
    _setting_rev(book, tenant, event)
    tenant.settings[key] = event.value
    if event.kind is SettingKind.QUEUE:
        try:
            tenant.queue(event.name).set(event.value)
        except Invalid as error:
            book.say("setting", None, f"no queue can be set so ({error})", name=event.name)


def setting_deleted(book: Book, event: SettingDeleted) -> None:
    """A setting that is there goes back to its defaults, at the next rev."""
    tenant = book.tenant(event.tenant)
    _setting_rev(book, tenant, event)
    if tenant.settings.pop((event.kind, event.name), None) is None:
        book.say("setting", None, "deleted without being there", kind=event.kind, name=event.name)
    if event.kind is SettingKind.QUEUE:
        tenant.queue(event.name).set(None)


def _setting_rev(book: Book, tenant: Tenant, event: SettingPut | SettingDeleted) -> None:
    key = event.kind, event.name
    before = tenant.revs.get(key, 0)
    if event.rev != before + 1:
        book.say("setting", None, "revs rise by one", kind=event.kind, name=event.name, rev=event.rev, before=before)
    tenant.revs[key] = event.rev


EVENTS: Final[dict[type[AnyEvent], Callable[[Book, Any], None]]] = {
    Enqueued: enqueued,
    Aged: aged,
    Purged: purged,
    SettingPut: setting_put,
    SettingDeleted: setting_deleted,
}
