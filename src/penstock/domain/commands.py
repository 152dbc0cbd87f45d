"""Every wish a caller can have: one frozen value per verb, passed whole from client to store."""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from msgspec import Struct

from penstock.domain.job import DEFAULT_TENANT, NewJob, Output, Reason, State, Usage


class Command(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag_field="verb", tag=str.lower):
    """What all commands say: whose jobs, who asks, and the transport's own id of the call."""

    tenant: str = DEFAULT_TENANT
    actor: str | None = None
    call_id: str | None = None

    # The place of the verb in a batch: the commands of one batch are concurrent, and all stores apply one order.
    turn: ClassVar[int]


class Beat(Struct, frozen=True, gc=False, omit_defaults=True):
    """One job's part of a heartbeat."""

    job_id: str
    token: str
    progress: float | None = None


class Heartbeat(Command, frozen=True, gc=False, kw_only=True):
    """The worker is alive: extend the leases of these jobs. Answered job by job.

    ``ride_s`` is the broker's: how long it may wait for a commit to ride in before it causes one.
    """

    beats: tuple[Beat, ...]
    ride_s: float = 0.0
    turn = 0


class Ack(Command, frozen=True, gc=False, kw_only=True):
    """The attempt worked. Follow-up jobs are enqueued in the same commit; the same token again gets the same answer."""

    job_id: str
    token: str
    result: bytes | None = None
    then: tuple[NewJob, ...] = ()
    ran_s: float | None = None
    usage: Usage | None = None
    output: Output | None = None
    turn = 1


class Nack(Command, frozen=True, gc=False, kw_only=True):
    """The attempt failed: queue the next one, or declare the job dead after the last."""

    job_id: str
    token: str
    error: str = ""
    retry: bool = True
    delay_s: float | None = None
    reason: Reason | None = None
    ran_s: float | None = None
    usage: Usage | None = None
    output: Output | None = None
    turn = 2


class Release(Command, frozen=True, gc=False, kw_only=True):
    """The worker gives the job back unfinished; the attempt is not charged (until the hundredth time)."""

    job_id: str
    token: str
    delay_s: float | None = None
    ran_s: float | None = None
    turn = 3


class Cancel(Command, frozen=True, gc=False, kw_only=True):
    """Nobody shall run this job any more. ``requeues`` is the life of the job that the caller saw."""

    job_id: str
    requeues: int
    turn = 4


class Expire(Command, frozen=True, gc=False, kw_only=True):
    """The holder of a lease went quiet. Void if the lease has changed since it was watched."""

    job_id: str
    lease_no: int
    beats: int
    turn = 5


class Age(Command, frozen=True, gc=False, kw_only=True):
    """A process has watched a lease for a while without a sign of life; so much is left. Void if it has changed since."""

    job_id: str
    lease_no: int
    beats: int
    left_s: float
    turn = 5


class Lapse(Command, frozen=True, gc=False, kw_only=True):
    """The job is still queued at its deadline. Void if it is not."""

    job_id: str
    turn = 5


class Sweep(Command, frozen=True, gc=False, kw_only=True):
    """Expire what is overdue, of all tenants, without waiting for the timer. The broker's; no store sees it."""

    turn = 5


class Requeue(Command, frozen=True, gc=False, kw_only=True):
    """Run a finished job again, from attempt 1. A succeeded one only when ``again`` says so."""

    job_id: str
    requeues: int
    again: bool = False
    payload: bytes | None = None
    content_type: str | None = None
    delay_s: float | None = None
    turn = 6


class Update(Command, frozen=True, gc=False, kw_only=True):
    """Change when and how a queued job runs. ``now`` drops its ``run_at``; None leaves a field as it is."""

    job_id: str
    requeues: int
    run_at: datetime | None = None
    now: bool = False
    priority: int | None = None
    max_attempts: int | None = None
    turn = 7


class Purge(Command, frozen=True, gc=False, kw_only=True):
    """Take finished jobs out of the store; their history stays.

    Either these jobs, or all of one queue and state that finished no later than a time.
    """

    job_ids: tuple[str, ...] = ()
    queue: str | None = None
    state: State | None = None
    keyed: bool = False
    finished_by: datetime | None = None
    turn = 8


class SettingKind(StrEnum):
    """What a setting can be of."""

    QUEUE = "queue"
    SCHEDULE = "schedule"
    TENANT = "tenant"
    TOKEN = "token"  # noqa: S105 the name of a kind, not a secret
    BROKER = "broker"


class PutSetting(Command, frozen=True, gc=False, kw_only=True):
    """Change a setting by JSON merge patch: fields named here change, null resets one, others stay."""

    kind: SettingKind
    name: str
    patch: dict[str, Any]
    turn = 9


class DeleteSetting(Command, frozen=True, gc=False, kw_only=True):
    """Forget a setting: back to the defaults."""

    kind: SettingKind
    name: str
    turn = 9


class Enqueue(Command, frozen=True, gc=False, kw_only=True):
    """Accept these jobs, all or none. A job that is known already, by id or key, is answered as it is."""

    jobs: tuple[NewJob, ...]
    turn = 10


class LeaseJobs(Command, frozen=True, gc=False, kw_only=True, tag="lease"):
    """Hand over the first ready jobs. ``request_id`` is the caller's secret: the same one again gets the same leases.

    ``queues`` are in order of preference; ``kinds`` None takes every kind. ``wait_s`` is the broker's: how long to
    hold the call while there is no job.
    """

    queues: tuple[str, ...]
    request_id: str
    kinds: tuple[str, ...] | None = None
    limit: int = 1
    lease_s: float = 30.0
    worker: str = ""
    wait_s: float = 0.0
    turn = 11


AnyCommand = (
    Heartbeat
    | Ack
    | Nack
    | Release
    | Cancel
    | Expire
    | Age
    | Lapse
    | Sweep
    | Requeue
    | Update
    | Purge
    | PutSetting
    | DeleteSetting
    | Enqueue
    | LeaseJobs
)
