"""Every change there is, as one event per change: the log, the history and the pipeline are made of these.

Data model. An event belongs to a record: one commit, with ``seq`` (1, 2, 3, ... without a gap), ``at`` (the
committer's wall clock, the time of all its events) and its events in order, ``line`` counting from 1. So
``(log, seq, line)`` names an event for ever. Events that change a job carry ``rev``, the job's own change number:
1, 2, 3, ... A hole in ``rev`` is a lost event, and the order of a job's events is the order of ``rev``.
Fields at their default are left out when written; readers keep fields they do not know.

An example, as one line of a record::

    {"event":"leased","id":"0193...","queue":"mail","kind":"mail","rev":2,"attempt":1,"lease_no":1,
     "worker":"w1","lease_s":30.0,"call":"9f86d0...","index":0}
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from penstock.domain.backoff import Backoff
from penstock.domain.commands import SettingKind
from penstock.domain.job import DEFAULT_TENANT, JSON, NO_HEADERS, Output, Reason, State, Usage, Verb

VERSION = 1


class Event(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag_field="event", tag=str.lower):
    """What all events say: whose, by whom, and the transport's own id of the call that led to it."""

    tenant: str = DEFAULT_TENANT
    actor: str | None = None
    call_id: str | None = None


class JobEvent(Event, frozen=True, gc=False, kw_only=True):
    """A change of one job. ``before`` is the commit of the job's event before this one: its history is a chain."""

    id: str
    queue: str
    kind: str
    rev: int
    before: int = 0


class AttemptEvent(JobEvent, frozen=True, gc=False, kw_only=True):
    """A change that belongs to one attempt: the lease ``lease_no`` of a job, held by ``worker``."""

    attempt: int
    lease_no: int
    worker: str | None = None


class Enqueued(JobEvent, frozen=True, gc=False, kw_only=True):
    """A job was accepted: all that was said of it, with delays turned into times and its queue's defaults filled in.

    It begins queued, at the time of the record. ``parent`` is the job whose ack made it.
    """

    payload: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = NO_HEADERS
    priority: int = 0
    max_attempts: int
    backoff: Backoff | None = None
    run_at: datetime | None = None
    deadline_at: datetime | None = None
    idempotency_key: str | None = None
    parent: str | None = None


class Leased(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """A worker got the job. ``call`` is the SHA-256 of its request id, ``index`` the job's place in the answer."""

    lease_s: float
    call: str
    index: int


class Extended(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """The holder is alive: its lease runs anew. ``rev`` rises only when ``progress`` changed."""

    beats: int
    progress: float | None = None


class Aged(Event, frozen=True, gc=False, kw_only=True):
    """A lease was watched without a sign of life; so much of it is left for whoever watches from now on (rule 10)."""

    id: str
    lease_no: int
    left_s: float


class Succeeded(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """The attempt worked and the job is finished. ``result_size`` is the size given, also when the queue discards it."""

    result: bytes | None = None
    result_size: int = 0
    ran_s: float | None = None
    usage: Usage | None = None
    output: Output | None = None


class Failed(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """The attempt failed and the job waits for the next one. Verb ``expire``: the holder went quiet."""

    run_at: datetime
    verb: Verb = Verb.NACK
    reason: Reason | None = None
    error: str | None = None
    error_fp: str | None = None
    ran_s: float | None = None
    usage: Usage | None = None
    output: Output | None = None


class Died(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """The job is dead. ``verb`` is how its last attempt ended with it; without one it died in the queue, of its deadline."""

    reason: Reason
    verb: Verb | None = Verb.NACK
    error: str | None = None
    error_fp: str | None = None
    ran_s: float | None = None
    usage: Usage | None = None
    output: Output | None = None


class Released(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """The worker gave the job back; ``charged`` says whether the attempt counts all the same."""

    charged: bool = False
    run_at: datetime | None = None
    ran_s: float | None = None


class Cancelled(AttemptEvent, frozen=True, gc=False, kw_only=True):
    """The job is cancelled. ``held``: an attempt was running, and its holder learns of it at its next heartbeat."""

    held: bool = False


class Requeued(JobEvent, frozen=True, gc=False, kw_only=True):
    """An operator runs a finished job again: life number ``requeues``. The payload is here when it was changed."""

    requeues: int
    run_at: datetime | None = None
    payload: bytes | None = None
    content_type: str | None = None


class Updated(JobEvent, frozen=True, gc=False, kw_only=True):
    """An operator changed when or how a queued job runs: the values after the change."""

    run_at: datetime | None = None
    priority: int = 0
    max_attempts: int = 5


class Purged(Event, frozen=True, gc=False, kw_only=True):
    """Finished jobs left the store: these, or all of one queue, state and keyedness finished by a time."""

    job_ids: tuple[str, ...] = ()
    queue: str | None = None
    state: State | None = None
    keyed: bool = False
    finished_by: datetime | None = None
    count: int = 0


class SettingPut(Event, frozen=True, gc=False, kw_only=True, tag="setting_put"):
    """A setting has this value now, whole."""

    kind: SettingKind
    name: str
    rev: int
    value: dict[str, Any]


class SettingDeleted(Event, frozen=True, gc=False, kw_only=True, tag="setting_deleted"):
    """A setting is back to its defaults."""

    kind: SettingKind
    name: str
    rev: int


AnyEvent = (
    Enqueued
    | Leased
    | Extended
    | Aged
    | Succeeded
    | Failed
    | Died
    | Released
    | Cancelled
    | Requeued
    | Updated
    | Purged
    | SettingPut
    | SettingDeleted
)


class Record(Struct, frozen=True, gc=False):
    """One commit: its number, its time and its events."""

    seq: int
    at: datetime
    events: tuple[AnyEvent, ...]


class Entry(Struct, frozen=True, gc=False):
    """One event with its place in the log: a line of a job's history."""

    seq: int
    line: int
    at: datetime
    event: AnyEvent
