"""Reads a log record by record, and says what is wrong with each and with the end of it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from penstock.domain.commands import SettingKind
from penstock.domain.events import Extended, JobEvent, Record
from penstock.domain.job import Job, State
from penstock.domain.settings import Setting
from penstock.domain.verify.book import Book, Finding
from penstock.domain.verify.compare import Live, compare
from penstock.domain.verify.edges import EVENTS
from penstock.domain.verify.lives import CHANGES, Judge
from penstock.domain.verify.seen import Seen

RULES: Final[Mapping[str, str]] = {
    "corrupt": "every object is as it was written",
    "seq": "records are numbered without a gap",
    "time": "a record has a time with an offset, and what it makes has that time or a later one",
    "rev": "the events of a job are numbered without a hole, and no number is used twice",
    "before": "an event names the record of the job's event before it",
    "first": "a job begins with one enqueue, at rev 1",
    "unknown": "no event of a job that was never enqueued, or was purged",
    "names": "an event names the job's own queue and kind",
    "id": "the time in a new id is near the record's",
    "key": "an idempotency key names one job as long as it is kept",
    "follow_up": "a follow-up is in the record of its parent's ack",
    "depth": "no job is accepted into a full queue",
    "lease": "only a queued job is leased, or dies in the queue",
    "lease_no": "lease numbers rise by one with each lease",
    "attempt": "attempts rise by one with each lease, and fall only at a free release or a requeue",
    "max_attempts": "no attempt is beyond max_attempts",
    "order": "first in, first out within queue and priority, among jobs that the call could have taken",
    "early": "no job is leased before its time",
    "deadline": "after its deadline a job is not leased or queued again, and it does not die of it before",
    "paused": "no job is leased while its queue is paused",
    "call": "a lease call takes its jobs at once, counted from 0",
    "ending": "only a lease that is held is extended or ended",
    "stale": "only the current lease of a job is extended or ended",
    "completion": "one completion is accepted between two requeues",
    "finished": "finished stays finished, unless requeued",
    "retry": "no job is queued again after its last attempt",
    "expiry": "only a held lease expires, that is an attempt, and only the last one is the job's death",
    "release": "a hundred releases are free, and no more",
    "reason": "a dead job has a reason",
    "requeue": "only a finished job is requeued, and its lives are counted",
    "update": "only a queued job is updated",
    "beats": "the heartbeats of a lease are counted",
    "aged": "a lease that is watched grows shorter",
    "purge": "only finished jobs are purged, and as many as it says",
    "kept": "a finished job stays 15 minutes, and one with a key a day",
    "setting": "the changes of a setting are numbered without a hole, and the store holds the last",
    "lost": "every job of the log that was not purged is in the store",
    "extra": "every job in the store is in the log",
    "state": "a job in the store is as the log has it",
    "counters": "the numbers of a queue equal a recount",
}


class Base(Struct, frozen=True):
    """The state after commit ``seq``, to begin with where older records are gone. ``revs`` are of all settings ever."""

    seq: int
    log_time: datetime
    jobs: Iterable[Job]
    settings: Iterable[Setting]
    revs: Mapping[tuple[str, SettingKind, str], int]


class Verifier:
    """Reads a log record by record. Memory is bounded by the jobs that are not purged."""

    def __init__(self, base: Base | None = None) -> None:
        self.events = 0
        self._book = Book()
        if base is not None:
            _begin(self._book, base)

    @property
    def seq(self) -> int:
        """The last record read."""
        return self._book.seq

    @property
    def tenants(self) -> Sequence[str]:
        """Every tenant that was spoken of."""
        return tuple(self._book.tenants)

    @property
    def jobs(self) -> int:
        """How many jobs there were, purged ones too."""
        return self._book.jobs

    @property
    def finished(self) -> int:
        """How many of them are finished, purged ones too."""
        queues = (queue for tenant in self._book.tenants.values() for queue in tenant.queues.values())
        return self._book.jobs - sum(queue.open for queue in queues)

    def check(self, record: Record) -> Sequence[Finding]:
        """Read the next record, and say what is wrong with it."""
        book = self._book
        book.found = []
        _begin_record(book, record)
        for line, event in enumerate(record.events, 1):
            book.line = line
            try:
                rules = CHANGES.get(type(event))  # type: ignore[arg-type] # the others have none
                if rules is None:
                    EVENTS[type(event)](book, event)
                else:
                    _changed(book, event, *rules)  # type: ignore[arg-type] # of a job, or it had no rules
            except TypeError as error:
                book.say("time", getattr(event, "id", None), f"a time in this event cannot be compared ({error})")
        self.events += len(record.events)
        return book.found

    def finish(self, live: Live | None) -> Sequence[Finding]:
        """After the last record: say what is wrong with the live state as of that record, if there is one to look at."""
        book = self._book
        book.found, book.line = [], 0
        if live is not None:
            compare(book, live)
        return book.found


def _begin(book: Book, base: Base) -> None:
    book.seq, book.log_time = base.seq, base.log_time
    for job in base.jobs:
        tenant = book.tenant(job.tenant)
        seen = tenant.jobs[job.id] = Seen.of(job)
        book.order = max(book.order, job.order)
        book.jobs += 1
        if seen.key is not None:
            tenant.keys[seen.key] = seen.id
        tenant.queue(seen.queue).open += 1
        if seen.held is not None:
            seen.order = 0
            tenant.hold(seen, seen.held)
        elif seen.state is State.QUEUED:
            tenant.stand(seen, base.log_time)
        else:
            tenant.shelve(seen)
    for (name, kind, setting), rev in base.revs.items():
        book.tenant(name).revs[kind, setting] = rev
    for one in base.settings:
        tenant = book.tenant(one.tenant)
        tenant.settings[one.kind, one.name] = one.value
        if one.kind is SettingKind.QUEUE:
            tenant.queue(one.name).set(one.value)


def _begin_record(book: Book, record: Record) -> None:
    expected = book.seq + 1
    book.seq, book.line, book.at, book.events = record.seq, 0, record.at, record.events
    book.call = ""
    book.acked.clear()
    if record.seq != expected:
        book.say("seq", None, "the records are not numbered one by one", expected=expected)
    if record.at.tzinfo is None:
        book.say("time", None, "the record's time has no offset", at=record.at)
        book.at = record.at.replace(tzinfo=UTC)
    book.log_time = max(book.log_time, book.at)


def _changed(book: Book, event: JobEvent, judge: Judge, happen: Judge) -> None:
    """An event of a job that must be known. After a hole in its revs it is not judged: what it follows is not there."""
    tenant = book.tenants.get(event.tenant)
    job = None if tenant is None else tenant.jobs.get(event.id)
    if tenant is None or job is None:
        name = event.__struct_config__.tag
        book.say("unknown", event.id, f"{name} without being there: never enqueued, or purged", rev=event.rev)
        return
    rev = job.rev + 1 if type(event) is not Extended else job.rev + _progressed(job, event)
    if event.rev != rev:
        book.say("rev", job.id, "the job's revs do not go on one by one", rev=event.rev, expected=rev)
    if event.rev <= rev:
        judge(book, tenant, job, event)
        if event.before != job.seq:
            book.say("before", job.id, "it names another record as the one before", before=event.before, was=job.seq)
    if event.queue != job.queue or event.kind != job.kind:
        book.say("names", job.id, "of another queue or kind than the job", queue=event.queue, kind=event.kind)
    happen(book, tenant, job, event)
    job.rev, job.seq = event.rev, book.seq


def _progressed(job: Seen, event: Extended) -> bool:
    return event.progress is not None and (job.held is None or event.progress != job.held.progress)
