"""What every answer must be: in the log when it was given, and true at some moment between the call and the answer."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from penstock.domain import fingerprint
from penstock.domain.commands import Ack, Cancel, Enqueue, Heartbeat, LeaseJobs, Nack, Release, Requeue, Update
from penstock.domain.events import Died, Enqueued, Extended, Failed, JobEvent, Leased, Released, Succeeded
from penstock.domain.job import Ended, Holding, Job, State
from penstock.domain.outcome import Accepted, Holdings, Leases
from penstock.domain.queries import Get, Page
from penstock.errors import Conflict, LeaseLost, NotFound, PenstockError, Unavailable
from tests.simulation.clock import BEGUN_AT, FARTHEST_S
from tests.simulation.evidence import Commit, Evidence
from tests.simulation.ledger import Ledger, Told
from tests.simulation.swarm import Swarm

_ENDS: Final[dict[type, tuple[type, ...]]] = {Ack: (Succeeded,), Nack: (Failed, Died), Release: (Released, Died)}


class Truth:
    """The log, arranged to look up what an answer claims."""

    def __init__(self, evidence: Evidence, swarm: Swarm) -> None:
        self.evidence = evidence
        exact = not (swarm.skew_s or swarm.drift or swarm.jump_every_s)
        # Two wall clocks may differ by so much, so when a delay is over is known only to that.
        self.off_s = 0.001 if exact else 2 * FARTHEST_S
        self.accepted: dict[str, Commit] = {}
        # By what the log knows of the token, and the job: a call that was forgotten may be decided anew (rule 15).
        self.leased: dict[tuple[str, int, str], tuple[Commit, Leased]] = {}
        self.calls: set[str] = set()
        self.changes: dict[tuple[str, int], tuple[Commit, JobEvent]] = {}
        self.extended: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        for commit in evidence.commits:
            for event in commit.events:
                if isinstance(event, Extended):
                    self.extended[event.id, event.lease_no].append(commit.at_s)
                elif isinstance(event, JobEvent):
                    self.changes[event.id, event.rev] = (commit, event)
                if isinstance(event, Enqueued):
                    self.accepted[event.id] = commit
                elif isinstance(event, Leased):
                    self.leased[event.call, event.index, event.id] = (commit, event)
                    self.calls.add(event.call)


def answers_are_true(truth: Truth, ledger: Ledger) -> Iterator[str]:
    """G1, G2: every answer by itself."""
    for told in ledger.told:
        for fault in _faults(truth, told):
            yield f"{fault}: told by {told.process} at {told.ended_s:.3f} s to {told.asked}, asked at {told.began_s:.3f} s"


def _faults(truth: Truth, told: Told) -> Iterator[str]:
    if isinstance(told.answer, PenstockError):
        yield from _refused(truth, told)
    match told.asked, told.answer:
        case Enqueue(), Accepted():
            yield from _accepted(truth, told, told.answer)
        case LeaseJobs(), Leases():
            yield from (_leased(truth, told) if told.answer.leases else _empty(truth, told, told.asked))
        case Heartbeat(), Holdings():
            yield from _beaten(truth, told, told.asked)
        case ((Ack() | Nack() | Release()), Ended()):
            yield from _ended(truth, told, told.asked)
        case _, Job():
            yield from _durable(truth, told, told.answer)
        case _, Page():
            for job in told.answer.jobs:
                yield from _durable(truth, told, job)
        case _:
            pass


def _refused(truth: Truth, told: Told) -> Iterator[str]:
    match told.asked, told.answer:
        case ((Ack() | Nack() | Release()), LeaseLost()):
            if _current(truth, told, told.asked.job_id, told.asked.token):
                yield "G2 the token was current all the time, and was refused"
        case ((Get() | Cancel() | Requeue() | Update()), NotFound()):
            if None not in truth.evidence.during(told.asked.job_id, told.began_s, told.ended_s):
                yield "G2 the job was there all the time, and was not found"
        case _:
            pass


def _accepted(truth: Truth, told: Told, answer: Accepted) -> Iterator[str]:
    commits = set()
    for job, new in zip(answer.jobs, answer.new, strict=True):
        commit = truth.accepted.get(job.id)
        if commit is None or commit.at_s > told.ended_s:
            yield f"G1 {job.id} was accepted, and was not durable then"
        elif new:
            commits.add(commit.seq)
        yield from _durable(truth, told, job)
    if len(commits) > 1:
        yield f"G10 accepted together, committed apart: {sorted(commits)}"


def _leased(truth: Truth, told: Told) -> Iterator[str]:
    for lease in told.answer.leases:
        commit, _ = truth.leased.get((*fingerprint.token_parts(lease.token), lease.job.id), (None, None))
        if commit is None or commit.at_s > told.ended_s:
            yield f"G1 {lease.job.id} was handed over, and that was not durable then"
        yield from _durable(truth, told, lease.job)


def _empty(truth: Truth, told: Told, asked: LeaseJobs) -> Iterator[str]:
    if fingerprint.of_call(asked.request_id) in truth.calls:
        # A repeated call takes nothing new.
        return
    settled_at = BEGUN_AT + timedelta(seconds=told.began_s - truth.off_s)
    for job_id, moments in truth.evidence.jobs.items():
        if moments[0].at_s >= told.began_s:
            continue
        values = truth.evidence.during(job_id, told.began_s, told.ended_s)
        if all(job is not None and _takeable(job, asked, settled_at) for job in values) and not truth.evidence.paused(
            _queue(values), told.began_s, told.ended_s
        ):
            yield f"G2 {job_id} was ready all the time, and no job was found"


def _takeable(job: Job, asked: LeaseJobs, settled_at: Any) -> bool:
    return (
        job.state is State.QUEUED
        and job.deadline_at is None
        and job.queue in asked.queues
        and (asked.kinds is None or job.kind in asked.kinds)
        and (job.run_at is None or job.run_at <= settled_at)
    )


def _queue(values: list[Job | None]) -> str:
    return next(job.queue for job in values if job is not None)


def _beaten(truth: Truth, told: Told, asked: Heartbeat) -> Iterator[str]:
    for beat, holding in zip(asked.beats, told.answer.jobs, strict=True):
        if holding is Holding.HELD:
            _, event = truth.leased.get((*fingerprint.token_parts(beat.token), beat.job_id), (None, None))
            signs = [] if event is None else truth.extended[event.id, event.lease_no]
            if not any(told.began_s <= at_s <= told.ended_s for at_s in signs):
                yield f"G1 the lease of {beat.job_id} was extended, and that was not durable then"
        elif holding is Holding.LOST and _current(truth, told, beat.job_id, beat.token):
            yield f"G2 the token of {beat.job_id} was current all the time, and was said to be lost"


def _ended(truth: Truth, told: Told, asked: Ack | Nack | Release) -> Iterator[str]:
    commit, event = truth.changes.get((asked.job_id, told.answer.rev), (None, None))
    _, leased = truth.leased.get((*fingerprint.token_parts(asked.token), asked.job_id), (None, None))
    if commit is None or event is None or commit.at_s > told.ended_s or not isinstance(event, _ENDS[type(asked)]):
        yield f"G1 the end of {asked.job_id} was not durable when it was told"
    elif leased is None or getattr(event, "lease_no", 0) != leased.lease_no:
        yield f"G6 {asked.job_id} was ended by a token that did not hold it"
    elif isinstance(asked, Ack) and asked.then:
        made = {one.idempotency_key or one.id for one in asked.then}
        with_it = {e.idempotency_key or e.id for e in commit.events if isinstance(e, Enqueued) and e.parent == event.id}
        if isinstance(event, Succeeded) and len(with_it) != len(made):
            yield f"G10 {asked.job_id} succeeded without all of its follow-ups"


def _current(truth: Truth, told: Told, job_id: str, token: str) -> bool:
    call = fingerprint.token_parts(token)
    return all(
        job is not None and job.lease is not None and (job.lease.call, job.lease.index) == call
        for job in truth.evidence.during(job_id, told.began_s, told.ended_s)
    )


def _durable(truth: Truth, told: Told, job: Job) -> Iterator[str]:
    """Nobody reads what is not durable: a job that was shown is one that the log had led to by then."""
    moments = truth.evidence.jobs.get(job.id, ())
    if not any(moment.job == job for moment in moments if moment.at_s <= told.ended_s):
        yield f"G1 shown before it was durable: {job}"


def no_older_than_told(ledger: Ledger) -> Iterator[str]:
    """A process never shows a job older than what it told of it before."""
    seen: dict[tuple[str, str], tuple[float, int]] = {}
    for told in sorted(ledger.told, key=lambda told: told.ended_s):
        answer = told.answer
        if isinstance(told.asked, Get) and isinstance(answer, Job):
            at_s, rev = seen.get((told.process, answer.id), (0.0, 0))
            if at_s < told.began_s and answer.rev < rev:
                yield f"G1 {told.process} shows {answer.id} at rev {answer.rev}, having told of rev {rev} before"
        if isinstance(answer, Ended | Job):
            job_id = answer.job_id if isinstance(answer, Ended) else answer.id
            if answer.rev > seen.get((told.process, job_id), (0.0, 0))[1]:
                seen[told.process, job_id] = (told.ended_s, answer.rev)


def wishes_come_true_once(evidence: Evidence, ledger: Ledger) -> Iterator[str]:
    """G1, G3, G10: what was accepted is there, once; what was not is there once at most; nothing is there in part."""
    made: Counter[tuple[int, int]] = Counter()
    seqs: defaultdict[int, set[int]] = defaultdict(set)
    for commit in evidence.commits:
        for event in commit.events:
            if isinstance(event, Enqueued):
                wanted = json.loads(event.payload)
                made[wanted["wish"], wanted["part"]] += 1
                seqs[wanted["wish"]].add(commit.seq)
    for wish in ledger.wishes:
        counts = {made[wish.number, part] for part in range(len(wish.jobs))}
        if max(counts) > 1:
            yield f"G3 wish {wish.number} has led to more than one job"
        if len(counts) > 1 or len(seqs[wish.number]) > 1:
            yield f"G10 wish {wish.number} was committed in parts: {sorted(seqs[wish.number])}"
        if wish.accepted is not None and counts != {1}:
            yield f"G1 wish {wish.number} was accepted and is not there"


def refused_is_not_there(truth: Truth, ledger: Ledger) -> Iterator[str]:
    """G2: a command that was refused each time it was sent has changed nothing."""
    outcomes: defaultdict[str, list[Any]] = defaultdict(list)
    for told in ledger.told:
        if isinstance(told.asked, Enqueue):
            for job in told.asked.jobs:
                outcomes[job.id or ""].append(told.answer)
    for job_id, answers in outcomes.items():
        refused = all(isinstance(answer, PenstockError) and not isinstance(answer, Unavailable) for answer in answers)
        known_before = any(isinstance(answer, Conflict) for answer in answers)
        if refused and not known_before and job_id in truth.accepted and not ledger.unanswered(job_id):
            yield f"G2 {job_id} was refused, and is there: {answers}"


def nothing_doubles(truth: Truth, ledger: Ledger) -> Iterator[str]:
    """G2: a heartbeat extends a lease once, however often its put was sent.

    Where there are snapshots an answer can be void, and what is decided again then may extend it again (rule 2).
    """
    if truth.evidence.snapshots:
        return
    for token, (_, event) in truth.leased.items():
        signs = len(truth.extended[event.id, event.lease_no])
        if signs > ledger.beats[token]:
            yield f"G2 lease {event.lease_no} of {event.id} was extended {signs} times by {ledger.beats[token]} heartbeats"


def a_call_takes_jobs_once(truth: Truth, ledger: Ledger) -> Iterator[str]:
    """G2: a lease call that was sent again, or came again late, takes nothing more (rule 15).

    As long as a job is there that was last leased by it; and it takes nothing at all once its caller has been answered.
    """
    answered: dict[str, float] = {}
    for told in ledger.told:
        if isinstance(told.asked, LeaseJobs) and isinstance(told.answer, Leases) and told.answer.leases:
            answered.setdefault(fingerprint.of_call(told.asked.request_id), told.ended_s)
    last: dict[str, tuple[str, int]] = {}
    for commit in truth.evidence.commits:
        for event in commit.events:
            if isinstance(event, Leased):
                known = any(call == event.call and seq < commit.seq for call, seq in last.values())
                if known or answered.get(event.call, commit.at_s) < commit.at_s:
                    yield f"G2 seq={commit.seq} {event.id} is leased by a call that has taken its jobs before"
                last[event.id] = (event.call, commit.seq)
