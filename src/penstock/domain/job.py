"""The job and its parts: what is stored, and what every reader of a job sees."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypedDict

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from penstock.domain.backoff import Backoff
from penstock.errors import Invalid

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
DEFAULT_TENANT: Final = "default"


class _NoHeaders(dict[str, str]):
    """The headers of a job that has none, shared by all of them, so nobody may add to it."""

    def __setitem__(self, key: str, value: str) -> None:
        raise TypeError("headers are set when a job is enqueued")


NO_HEADERS: Final[Mapping[str, str]] = _NoHeaders()


class State(StrEnum):
    """The five stored states. Scheduled and retrying jobs are queued with a later ``run_at``."""

    QUEUED = "queued"
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"

    # Enum hashes in Python code; counting jobs by state is on the hot path.
    __hash__ = str.__hash__

    @property
    def finished(self) -> bool:
        """Whether nothing more happens to the job unless an operator requeues it."""
        return self is not State.QUEUED and self is not State.LEASED


class Reason(StrEnum):
    """Why an attempt failed, and so why a job is dead: the cause of its last attempt."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    NOT_RETRYABLE = "not_retryable"
    LEASE_EXPIRED = "lease_expired"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_PAYLOAD = "bad_payload"
    NO_VERDICT = "no_verdict"
    DEADLINE = "deadline"
    PARENT_FAILED = "parent_failed"


class Verb(StrEnum):
    """The ways an attempt can end."""

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    EXPIRE = "expire"
    CANCEL = "cancel"


class Holding(StrEnum):
    """What a heartbeat learns of a job."""

    HELD = "held"
    CANCELLED = "cancelled"
    LOST = "lost"


class Usage(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What an attempt used, and how its process ended, as the worker measured it."""

    cpu_s: float | None = None
    memory_bytes: int | None = None
    exit_code: int | None = None
    signal: int | None = None


class Output(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The last part of what an attempt wrote to its standard streams."""

    stdout: str = ""
    stderr: str = ""


class JobOptions(TypedDict, total=False):
    """What a producer may say of a job beside its queue and payload; the fields of NewJob by keyword."""

    kind: str | None
    content_type: str
    headers: Mapping[str, str]
    priority: int
    run_at: datetime | None
    delay_s: float | None
    deadline_s: float | None
    idempotency_key: str | None
    max_attempts: int | None
    backoff: Backoff | None
    id: str | None


class NewJob(Struct, frozen=True, gc=False, omit_defaults=True):
    """A job to be: what a producer says of it.

    The payload is encoded here, once: bytes stay as they are, anything else becomes JSON.
    """

    queue: str
    payload: Any = None
    id: str | None = None
    kind: str | None = None
    content_type: str = ""
    headers: Mapping[str, str] = NO_HEADERS
    priority: int = 0
    run_at: datetime | None = None
    delay_s: float | None = None
    deadline_s: float | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        if self.headers is not NO_HEADERS and isinstance(self.headers, Mapping):
            # A copy: what the producer does to its own later is not the job's business.
            force_setattr(self, "headers", dict(self.headers) or NO_HEADERS)
        if type(self.payload) is not bytes:
            if self.content_type and self.content_type != JSON:
                raise Invalid("a payload of this content type must be bytes", content_type=self.content_type)
            force_setattr(self, "payload", encode(self.payload))
            force_setattr(self, "content_type", JSON)
        elif not self.content_type:
            force_setattr(self, "content_type", BYTES)
        elif self.content_type == JSON:
            well_formed(self.payload)


class Ended(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the end of an attempt made of its job: the answer to ack, nack and release."""

    job_id: str
    state: State
    rev: int
    attempt: int
    reason: Reason | None = None
    run_at: datetime | None = None


class Hold(Struct, frozen=True, gc=False, omit_defaults=True):
    """A lease as it is stored. ``call`` is the SHA-256 of the lease request id, so no reader can make a token.

    ``left_s`` is what is left of ``lease_s`` for a process that begins to watch it now; None: all of it (rule 10).
    """

    call: str
    index: int
    lease_s: float
    beats: int = 0
    left_s: float | None = None


class Ending(Struct, frozen=True, gc=False, omit_defaults=True):
    """The attempt that ended last, kept so that the same call gets the same answer."""

    call: str
    index: int
    verb: Verb
    answer: Ended


class Job(Struct, frozen=True, gc=False, omit_defaults=True):
    """One durable piece of work, as it is after one commit. Every change makes a new one."""

    # What every job has. Given by place where jobs are made, as are the next ones: by name costs five times as much.
    id: str
    queue: str
    kind: str
    payload_bytes: bytes
    max_attempts: int
    created_at: datetime
    # Where it stands in line: not before run_at, then by (ready_at, order).
    ready_at: datetime
    order: int
    # The last that happened to it, in commit ``seq``.
    updated_at: datetime
    seq: int
    # What the producer may have said; left out of a snapshot's line if it did not.
    tenant: str = DEFAULT_TENANT
    content_type: str = JSON
    headers: Mapping[str, str] = NO_HEADERS
    priority: int = 0
    backoff: Backoff | None = None
    deadline_at: datetime | None = None
    idempotency_key: str | None = None
    run_at: datetime | None = None
    # What happened since.
    state: State = State.QUEUED
    rev: int = 1
    lease: Hold | None = None
    ending: Ending | None = None
    attempt: int = 0
    lease_no: int = 0
    worker: str | None = None
    progress: float | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    finished_at: datetime | None = None
    reason: Reason | None = None
    error: str | None = None
    error_fp: str | None = None
    result_bytes: bytes | None = None
    lease_lost: int = 0
    releases: int = 0
    requeues: int = 0
    # Of the payload it was enqueued with, once that is no longer here to be compared.
    fingerprint: str | None = None

    def __lt__(self, other: object) -> bool:
        # Two values of one job can stand at one place of a line; which comes first does not matter, as one counts.
        return False

    @property
    def payload(self) -> Any:
        """What the producer gave: the value for JSON, the bytes for any other content type."""
        return decode(self.payload_bytes) if self.content_type == JSON else self.payload_bytes

    @property
    def result(self) -> Any:
        """What the handler returned; None when there is no result."""
        return None if self.result_bytes is None else decode(self.result_bytes)


class Lease(Struct, frozen=True, gc=False):
    """The right to run a job: the answer to a lease call, and the only place a token appears.

    ``waited_s`` is how long the call was held before it was decided. ``ends_at`` is the holder's own: the reading of
    its elapsed clock at which the lease ends if nothing extends it, counted from before the call was sent.
    """

    job: Job
    token: str
    expires_in_s: float
    waited_s: float = 0.0
    ends_at: float = 0.0


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_syntax = msgspec.json.Decoder(msgspec.Raw)


def encode(value: object) -> bytes:
    """The JSON of a payload or result."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Invalid(f"this value cannot be written as JSON ({error}); pass bytes, or plain values") from error


def well_formed(data: bytes) -> None:
    """Refuse bytes that are said to be JSON and are not: their reader could not read them."""
    try:
        _syntax.decode(data)
    except msgspec.DecodeError as error:
        raise Invalid(f"the payload is no JSON ({error}); mend it, or give its true content type") from error


def decode(data: bytes) -> Any:
    """The value of a JSON payload or result."""
    return _decoder.decode(data)
