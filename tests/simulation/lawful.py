"""What every log must be, whoever wrote it: the promises that can be seen in the records alone."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from penstock.domain.apply import apply
from penstock.domain.events import (
    AnyEvent,
    Cancelled,
    Died,
    Enqueued,
    Extended,
    Failed,
    JobEvent,
    Leased,
    Released,
    Requeued,
    Succeeded,
)
from penstock.domain.job import Job, State, Verb
from penstock.domain.tables import Tables
from tests.simulation.evidence import Commit, Evidence
from tests.simulation.ledger import Ledger, Life
from tests.simulation.swarm import Swarm

# An ``aged`` event tells milliseconds.
ROUNDED_S: Final = 0.01


def one_job_per_name(evidence: Evidence) -> Iterator[str]:
    """G3: no id and no key is accepted twice."""
    ids: set[str] = set()
    keys: set[str] = set()
    for commit in evidence.commits:
        for event in commit.events:
            if isinstance(event, Enqueued):
                if event.id in ids or event.idempotency_key in keys:
                    yield f"G3 seq={commit.seq} accepts {event.id} key={event.idempotency_key} a second time"
                ids.add(event.id)
                keys |= {event.idempotency_key} - {None}  # type: ignore[arg-type] # None is taken out


def revs_without_holes(evidence: Evidence) -> Iterator[str]:
    """Every event of a job follows the one before it: by rev, and by the seq it names."""
    last: dict[str, tuple[int, int]] = {}
    for commit in evidence.commits:
        for event in commit.events:
            if isinstance(event, JobEvent):
                rev, seq = last.get(event.id, (0, 0))
                if event.rev != rev + 1 and not (isinstance(event, Extended) and event.rev == rev):
                    yield f"G1 seq={commit.seq} {event.id} has rev {event.rev} after {rev}"
                if event.before != seq:
                    yield f"G1 seq={commit.seq} {event.id} follows seq {event.before} instead of {seq}"
                last[event.id] = (event.rev, commit.seq)


def lives_in_order(evidence: Evidence) -> Iterator[str]:
    """G4 to G7: one lease at a time, charged, ended once by its holder or by expiry; finished until requeued."""
    lives = _Lives()
    for commit in evidence.commits:
        for event in commit.events:
            for fault in lives.see(event):
                yield f"{fault}: seq={commit.seq} {event}"
    for moments in evidence.jobs.values():
        for moment in moments:
            if moment.job is not None and moment.job.attempt > moment.job.max_attempts:
                yield f"G4 more attempts than allowed: seq={moment.seq} {moment.job}"


class _Lives:
    """Where every job stands, by its events alone."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._lease_no: Counter[str] = Counter()
        self._attempt: Counter[str] = Counter()
        self._finished: set[str] = set()

    def see(self, event: AnyEvent) -> Iterator[str]:
        """Follow the event; say what it should not have done."""
        match event:
            case Leased():
                yield from self._leased(event)
            case Extended() if self._held.get(event.id) != event.lease_no:
                yield "G5 extended by a lease that does not hold it"
            case Cancelled(held=False) | Died(verb=None):
                if event.id in self._held or event.id in self._finished:
                    yield "G7 ended in the queue while held or finished"
                self._finished.add(event.id)
            case Succeeded() | Failed() | Died() | Released() | Cancelled():
                yield from self._ended(event)
            case Requeued():
                if event.id not in self._finished:
                    yield "G7 requeued while not finished"
                self._finished.discard(event.id)
                self._attempt[event.id] = 0
            case _:
                pass

    def _leased(self, event: Leased) -> Iterator[str]:
        if event.id in self._held or event.id in self._finished:
            yield "G5 leased while held or finished"
        self._lease_no[event.id] += 1
        self._attempt[event.id] += 1
        if (event.lease_no, event.attempt) != (self._lease_no[event.id], self._attempt[event.id]):
            yield "G4 lease_no and attempt do not go on by one"
        self._held[event.id] = self._lease_no[event.id] = event.lease_no
        self._attempt[event.id] = event.attempt

    def _ended(self, event: Succeeded | Failed | Died | Released | Cancelled) -> Iterator[str]:
        if self._held.pop(event.id, None) != event.lease_no:
            yield "G6 ended by a lease that does not hold it"
        if not isinstance(event, Failed | Released):
            self._finished.add(event.id)
        if isinstance(event, Released) and not event.charged:
            self._attempt[event.id] -= 1


def first_in_first_out(evidence: Evidence, ledger: Ledger) -> Iterator[str]:
    """G9: a lease takes the first ready job of its kinds, by priority, then by when it was ready."""
    kinds = ledger.kinds_by_call()
    tables = Tables()
    for commit in evidence.commits:
        tables.begin(commit.at, commit.seq)
        for event in commit.events:
            if isinstance(event, Leased):
                yield from _first(tables, commit, event, kinds.get(event.call))
            apply(tables, event)


def _first(tables: Tables, commit: Commit, event: Leased, kinds: tuple[str, ...] | None) -> Iterator[str]:
    jobs = tables.tenants[event.tenant].jobs
    place = _place(jobs[event.id])
    for job in jobs.values():
        if job.state is State.QUEUED and job.queue == event.queue and _place(job) < place:
            ready = job.run_at is None or job.run_at <= commit.at
            if ready and (kinds is None or job.kind in kinds):
                yield f"G9 seq={commit.seq} {event.id} was leased before {job.id}"


def _place(job: Job) -> tuple[int, object, int]:
    return job.priority, job.ready_at, job.order


def expired_in_time(evidence: Evidence, ledger: Ledger, swarm: Swarm) -> Iterator[str]:
    """G5 and G16: no lease is expired before its length has passed, nor long after, on the true time line."""
    signs: dict[str, tuple[float, float]] = {}
    for commit in evidence.commits:
        for event in commit.events:
            match event:
                case Leased():
                    signs[event.id] = (commit.at_s, event.lease_s)
                case Extended():
                    signs[event.id] = (commit.at_s, signs[event.id][1])
                case Failed(verb=Verb.EXPIRE) | Died(verb=Verb.EXPIRE):
                    sign_s, lease_s = signs[event.id]
                    lived_s = commit.at_s - sign_s
                    where = f"seq={commit.seq} {event.id} expired {lived_s:.3f} s after its last sign of life"
                    if lived_s < lease_s - ROUNDED_S:
                        yield f"G5 {where}, of {lease_s:g} s"
                    most_s = _most_s(ledger.lives, sign_s, commit.at_s, lease_s, swarm)
                    if lived_s > most_s:
                        yield f"G16 {where}, instead of {most_s:.3f} s at most"
                case _:
                    pass


def _most_s(lives: list[Life], sign_s: float, end_s: float, lease_s: float, swarm: Swarm) -> float:
    """How long a lease may live without a sign: rule 13, by when processes were up; no bound while calls fail."""
    if not swarm.calm or swarm.pause_every:
        return float("inf")
    sweep_s, trip_s = swarm.sweep_s, 2 * swarm.latency_s
    slack_s = 2 * sweep_s + swarm.look_s + 10 * trip_s
    present = sorted(
        (life for life in lives if life.up_s < end_s and life.ended_s > sign_s), key=lambda life: life.up_s
    )
    if any(life.up_s <= sign_s and life.ended_s >= end_s for life in present):
        return lease_s + slack_s
    # Who stops says how long it has watched; who crashes has said so at the half, a sweep late. Nobody watches in between.
    unwatched_s, until_s = 0.0, sign_s
    for life in present:
        unwatched_s += max(0.0, life.up_s - until_s) + 5 * trip_s
        unwatched_s += lease_s / 2 + sweep_s if life.crashed else 0.0
        until_s = max(until_s, min(end_s, life.ended_s))
    return lease_s + unwatched_s + max(0.0, end_s - until_s) + slack_s
