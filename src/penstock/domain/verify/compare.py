"""What a store says it holds must be what its log leads to: no job lost, none more, all as the log has them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from penstock.domain.job import Job, State
from penstock.domain.queries import QueueStats, Snapshot
from penstock.domain.verify.book import Book, Tenant
from penstock.domain.verify.seen import Seen, hashed

_COMPARED: Final = (
    *("state", "rev", "attempt", "lease_no", "seq", "queue", "kind", "priority", "max_attempts", "run_at", "reason"),
    *("created_at", "finished_at", "deadline_at", "releases", "requeues", "lease_lost"),
)
_NOBODY: Final = Tenant()


class Live(Struct, frozen=True):
    """What a store says it holds after commit ``seq``: by tenant, all jobs and settings, and the numbers of its queues."""

    seq: int
    tenants: Mapping[str, tuple[Snapshot, Sequence[QueueStats]]]


def compare(book: Book, live: Live) -> None:
    """Take down every difference between the books and the store."""
    if live.seq != book.seq:
        book.say("seq", None, "the log and the store do not end at the same record", store=live.seq)
    nothing = Snapshot(live.seq, (), ())
    for name in dict.fromkeys(chain(book.tenants, live.tenants)):
        tenant = book.tenants.get(name, _NOBODY)
        snapshot, stats = live.tenants.get(name, (nothing, ()))
        _jobs(book, tenant, snapshot)
        _settings(book, tenant, snapshot)
        _counters(book, tenant, stats)


def _jobs(book: Book, tenant: Tenant, snapshot: Snapshot) -> None:
    there = set()
    for job in snapshot.jobs:
        seen = tenant.jobs.get(job.id)
        there.add(job.id)
        if seen is None:
            book.say("extra", job.id, "in the store, and the log has no such job", state=job.state, rev=job.rev)
        elif told := " ".join(_differences(seen, job)):
            book.say_of(seen, "state", f"the store has it otherwise: {told}")
    for job_id, seen in tenant.jobs.items():
        if job_id not in there:
            book.say_of(seen, "lost", f"the store does not have it: state={seen.state} rev={seen.rev}")


def _differences(seen: Seen, job: Job) -> Iterator[str]:
    for name in _COMPARED:
        log, store = getattr(seen, name), getattr(job, name)
        if log != store:
            yield f"{name}={store} log_{name}={log}"
    if seen.state is State.QUEUED and seen.ready_at != job.ready_at:
        yield f"ready_at={job.ready_at} log_ready_at={seen.ready_at}"
    if (seen.held and seen.held.call) != (job.lease and job.lease.call):
        yield "lease"
    if seen.key != job.idempotency_key:
        yield "idempotency_key"
    if seen.payload != hash(job.payload_bytes):
        yield "payload"
    if seen.result != hashed(job.result_bytes):
        yield "result"


def _settings(book: Book, tenant: Tenant, snapshot: Snapshot) -> None:
    store = {(one.kind, one.name): (one.value, one.rev) for one in snapshot.settings}
    log = {key: (value, tenant.revs[key]) for key, value in tenant.settings.items()}
    for key in dict.fromkeys(chain(log, store)):
        if log.get(key) != store.get(key):
            book.say("setting", None, "the store has it otherwise", kind=key[0], name=key[1])


def _counters(book: Book, tenant: Tenant, stats: Sequence[QueueStats]) -> None:
    recount = Counter((job.queue, str(job.state)) for job in tenant.jobs.values())
    told = Counter({(one.queue, str(state)): getattr(one, state) for one in stats for state in State})
    for queue, state in sorted((+recount).keys() | (+told).keys()):
        if recount[queue, state] != told[queue, state]:
            facts = {"queue": queue, "state": state, "counter": told[queue, state], "jobs": recount[queue, state]}
            book.say("counters", None, "a counter is wrong", **facts)
    for one in stats:
        if one.ready + one.scheduled != one.queued:
            facts = {"queue": one.queue, "ready": one.ready, "scheduled": one.scheduled, "queued": one.queued}
            book.say("counters", None, "a queued job is ready or scheduled", **facts)
