"""What every verb does in every state: the table of docs/protocol.md, found by running the state machine.

A *scene* is a job brought into a state by commands; a *cell* is a scene and the one command that follows. Its
outcome is a few words. Whoever has a store can play the same script on it and must come to the same words.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from penstock.domain import fingerprint
from penstock.domain.backoff import Backoff, Policy
from penstock.domain.batch import run
from penstock.domain.commands import (
    Ack,
    Age,
    Beat,
    Cancel,
    Command,
    Enqueue,
    Expire,
    Heartbeat,
    Lapse,
    LeaseJobs,
    Nack,
    Purge,
    Release,
    Requeue,
    Update,
)
from penstock.domain.job import DEFAULT_TENANT, Job, NewJob
from penstock.domain.limits import KEY_KEPT_S, REPEAT_S
from penstock.domain.outcome import Accepted, Count, Holdings, Leases, Outcome
from penstock.domain.tables import Tables
from penstock.errors import LeaseLost, PenstockError

# The time at which every script begins, and a job id made then.
BEGUN_AT: Final = datetime(2030, 1, 1, tzinfo=UTC)
JOB_ID: Final = "01b8dac5-b400-7000-8000-000000000000"

_QUEUE: Final = "mail"
_RETRY_S: Final = 60.0
_DEADLINE_S: Final = 10.0
_MINE: Final = "the-callers-lease-call"
_ANOTHERS: Final = "another-workers-lease-call"
_NOBODYS: Final = "a-call-that-leased-nothing"

# A command, or seconds that pass.
Step = Command | float
Script = tuple[Step, ...]


class Cell(NamedTuple):
    """What one verb does to a job in one state; the last step of the script is the verb."""

    scene: str
    verb: str
    script: Script
    outcome: str


def table() -> tuple[Cell, ...]:
    """Every cell, scene by scene."""
    return tuple(
        Cell(scene, verb, script, play(script))
        for scene, before in SCENES.items()
        for verb, steps in VERBS.items()
        for script in [(*before, *steps)]
    )


def play(script: Script) -> str:
    """Run the script on empty tables, and say what its last step did to the job."""
    tables = Tables()
    now = BEGUN_AT
    for step in script[:-1]:
        if isinstance(step, Command):
            _commit(tables, now, step)
        else:
            now += timedelta(seconds=step)
    last = script[-1]
    assert isinstance(last, Command)
    before = tables.find(DEFAULT_TENANT, JOB_ID)
    outcome = _commit(tables, now, last)
    return told(before, outcome, tables.find(DEFAULT_TENANT, JOB_ID))


def told(before: Job | None, outcome: Outcome, after: Job | None) -> str:
    """What a command did, in a few words: from the job before, the command's outcome and the job after."""
    match outcome:
        case LeaseLost() if "state" in outcome.facts:
            return f"LeaseLost ({outcome.facts['state']})"
        case PenstockError():
            return type(outcome).__name__
        case Holdings():
            return str(outcome.jobs[0])
        case _:
            return _change(before, after) or _repeat(outcome)


def _change(before: Job | None, after: Job | None) -> str:
    if after is None:
        return "" if before is None else "-> gone"
    if before is not None and before.state is after.state:
        if before.lease is not None and after.lease is not None and before.lease.left_s != after.lease.left_s:
            return "shorter lease"
        return "" if before.rev == after.rev else "changed"
    return f"-> {after.state}" if after.reason is None else f"-> {after.state} ({after.reason})"


def _repeat(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return "same job"
        case Leases():
            return "same leases" if outcome.leases else "nothing"
        case Count() | None:
            return "nothing"
        case _:
            return "same answer"


def _commit(tables: Tables, now: datetime, command: Command) -> Outcome:
    tables.begin(now, tables.seq + 1)
    [outcome], _ = run(tables, [command])
    return outcome


def _new(tenant: str = DEFAULT_TENANT, payload: object = 1, **options: Any) -> Enqueue:
    backoff = Backoff(Policy.FIXED, _RETRY_S, _RETRY_S)
    return Enqueue(tenant=tenant, jobs=(NewJob(_QUEUE, payload, id=JOB_ID, backoff=backoff, **options),))


def _lease(call: str, tenant: str = DEFAULT_TENANT) -> LeaseJobs:
    return LeaseJobs(tenant=tenant, queues=(_QUEUE,), request_id=call)


def _beat(call: str) -> Heartbeat:
    return Heartbeat(beats=(Beat(JOB_ID, fingerprint.token(call, 0), 0.5),))


def _held(verb: Callable[..., Command], call: str, **fields: Any) -> Command:
    return verb(job_id=JOB_ID, token=fingerprint.token(call, 0), **fields)


_LEASED: Final = (_new(), _lease(_MINE))
_EXPIRED: Final = (*_LEASED, Expire(job_id=JOB_ID, lease_no=1, beats=0))
_DEAD: Final = (*_LEASED, _held(Nack, _MINE, retry=False))
_CANCEL: Final = Cancel(job_id=JOB_ID, requeues=0)
_REQUEUE: Final = Requeue(job_id=JOB_ID, requeues=0)

# The caller of the verbs is the worker that made the first lease call, if the scene has one, and it saw life 0.
SCENES: Final[dict[str, Script]] = {
    "absent": (),
    "another tenant's": (_new("other"), _lease(_MINE, "other")),
    "queued": (_new(),),
    "scheduled": (_new(delay_s=3600.0),),
    "queued, past its deadline": (_new(deadline_s=_DEADLINE_S), _DEADLINE_S),
    "leased": _LEASED,
    "leased, last attempt": (_new(max_attempts=1), _lease(_MINE)),
    "leased, past its deadline": (_new(deadline_s=_DEADLINE_S), _lease(_MINE), _DEADLINE_S),
    "leased by another": (*_EXPIRED, _RETRY_S, _lease(_ANOTHERS)),
    "queued after a nack": (*_LEASED, _held(Nack, _MINE)),
    "queued after a release": (*_LEASED, _held(Release, _MINE)),
    "queued after an expiry": _EXPIRED,
    "succeeded": (*_LEASED, _held(Ack, _MINE)),
    "succeeded, keyed": (_new(idempotency_key="k"), _lease(_MINE), _held(Ack, _MINE)),
    "dead": _DEAD,
    "cancelled in line": (_new(), _CANCEL),
    "cancelled while leased": (*_LEASED, _CANCEL),
    "requeued": (*_DEAD, _REQUEUE),
}

VERBS: Final[dict[str, Script]] = {
    "enqueue": (_new(),),
    "enqueue, other payload": (_new(payload=2),),
    "lease": (_lease(_NOBODYS),),
    "lease, repeated": (_lease(_MINE),),
    "heartbeat": (_beat(_MINE),),
    "heartbeat, stale": (_beat(_NOBODYS),),
    "ack": (_held(Ack, _MINE),),
    "ack, stale": (_held(Ack, _NOBODYS),),
    "nack": (_held(Nack, _MINE),),
    "nack, no retry": (_held(Nack, _MINE, retry=False),),
    "nack, stale": (_held(Nack, _NOBODYS),),
    "release": (_held(Release, _MINE),),
    "release, stale": (_held(Release, _NOBODYS),),
    "expire": (Expire(job_id=JOB_ID, lease_no=1, beats=0),),
    "expire, after a heartbeat": (_beat(_MINE), Expire(job_id=JOB_ID, lease_no=1, beats=0)),
    "age": (Age(job_id=JOB_ID, lease_no=1, beats=0, left_s=9.0),),
    "age, after a heartbeat": (_beat(_MINE), Age(job_id=JOB_ID, lease_no=1, beats=0, left_s=9.0)),
    "lapse": (Lapse(job_id=JOB_ID),),
    "cancel": (_CANCEL,),
    "requeue": (_REQUEUE,),
    "requeue, again": (Requeue(job_id=JOB_ID, requeues=0, again=True),),
    "update": (Update(job_id=JOB_ID, requeues=0, priority=7),),
    "purge": (Purge(job_ids=(JOB_ID,)),),
    "purge, 15 min later": (REPEAT_S, Purge(job_ids=(JOB_ID,))),
    "purge, a day later": (KEY_KEPT_S, Purge(job_ids=(JOB_ID,))),
}
