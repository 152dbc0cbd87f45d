"""What a checker of a log remembers of it: its own books, so that a fault of the tables cannot hide itself.

A purged job leaves nothing behind. A finished one leaves its numbers, its times and hashes of its bytes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush
from typing import Any, Final

from msgspec import Struct

from penstock.domain.commands import SettingKind
from penstock.domain.events import AnyEvent
from penstock.domain.job import Job, Reason, State
from penstock.domain.settings import DEFAULTS, queue_settings

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SLACK: Final = 64


class Finding(Struct, frozen=True, gc=False):
    """One violation: which rule, by which event, of which job, and what is wrong. Line 0: found after the last event."""

    rule: str
    seq: int
    line: int
    job_id: str | None
    message: str


class Held(Struct, gc=False):
    """A lease that has not ended."""

    call: str
    left_s: float
    beats: int = 0
    progress: float | None = None


class Seen(Struct, gc=False, kw_only=True):
    """One job, as the log has it so far.

    ``order`` is its place: in line while it is queued, among the finished when it is; 0 while it is leased. Payload and
    result are hashes.
    """

    id: str
    queue: str
    kind: str
    created_at: datetime
    key: str | None
    payload: int
    max_attempts: int
    priority: int
    deadline_at: datetime | None
    run_at: datetime | None
    ready_at: datetime
    order: int = 0
    seq: int = 0
    state: State = State.QUEUED
    rev: int = 1
    attempt: int = 0
    lease_no: int = 0
    held: Held | None = None
    releases: int = 0
    requeues: int = 0
    lease_lost: int = 0
    reason: Reason | None = None
    result: int = 0
    finished_at: datetime | None = None

    @classmethod
    def of(cls, job: Job) -> "Seen":
        """The job as a snapshot has it."""
        names = set(cls.__struct_fields__) - {"key", "payload", "result", "held"}
        hold = job.lease
        return cls(
            **{name: getattr(job, name) for name in names},
            key=job.idempotency_key,
            payload=hash(job.payload_bytes),
            result=_hashed(job.result_bytes),
            held=None if hold is None else Held(hold.call, _left_s(job), hold.beats, job.progress),
        )

    @property
    def place(self) -> tuple[int, datetime, int]:
        """Where it stands in line."""
        return self.priority, self.ready_at, self.order


def _hashed(data: bytes | None) -> int:
    return 0 if data is None else hash(data)


def _left_s(job: Job) -> float:
    assert job.lease is not None
    return job.lease.lease_s if job.lease.left_s is None else job.lease.left_s


_Ready = tuple[int, datetime, int, Seen]
_Timed = tuple[datetime, int, Seen]


class Line:
    """The queued jobs of one queue and kind. An entry counts while its job still stands at that place."""

    __slots__ = ("_later", "_ready", "live")

    def __init__(self) -> None:
        self.live = 0
        self._ready: list[_Ready] = []
        self._later: list[_Timed] = []

    def enter(self, job: Seen, at: datetime) -> None:
        """Let a job stand in line."""
        if job.run_at is not None and job.run_at > at:
            heappush(self._later, (job.run_at, job.order, job))
        else:
            heappush(self._ready, (job.priority, job.ready_at, job.order, job))
        if len(self._ready) + len(self._later) > 2 * self.live + _SLACK:
            self._ready = [entry for entry in self._ready if _counts(entry)]
            self._later = [entry for entry in self._later if entry[2].order == entry[1]]
            heapify(self._ready)
            heapify(self._later)

    def first(self, at: datetime) -> Seen | None:
        """The job to run first of those that are ready."""
        later, ready = self._later, self._ready
        while later and later[0][0] <= at:
            _, order, job = heappop(later)
            if job.order == order:
                heappush(ready, (job.priority, job.ready_at, order, job))
        while ready and not _counts(ready[0]):
            heappop(ready)
        if not ready:
            return None
        job = ready[0][3]
        # It was ready once; but a wall clock may go back.
        return job if job.run_at is None or job.run_at <= at else self._first_of_all(at)

    def _first_of_all(self, at: datetime) -> Seen | None:
        here = (entry[3] for entry in self._ready if _counts(entry))
        return min((job for job in here if job.run_at is None or job.run_at <= at), key=_place, default=None)


def _counts(entry: _Ready) -> bool:
    priority, _, order, job = entry
    return job.order == order and job.priority == priority


def _place(job: Seen) -> tuple[int, datetime, int]:
    return job.place


class Shelf:
    """The finished jobs of one queue, state and keyedness, by when they finished."""

    __slots__ = ("_jobs", "live")

    def __init__(self) -> None:
        self.live = 0
        self._jobs: list[_Timed] = []

    def enter(self, job: Seen) -> None:
        """Put a job there."""
        assert job.finished_at is not None
        heappush(self._jobs, (job.finished_at, job.order, job))
        if len(self._jobs) > 2 * self.live + _SLACK:
            self._jobs = [entry for entry in self._jobs if entry[2].order == entry[1]]
            heapify(self._jobs)

    def take(self, finished_by: datetime) -> Iterator[Seen]:
        """Take out all that finished by then."""
        while self._jobs and self._jobs[0][0] <= finished_by:
            _, order, job = heappop(self._jobs)
            if job.order == order:
                yield job


class Queue:
    """One queue: its lines by kind, its finished jobs, and how many are not finished."""

    __slots__ = ("lines", "max_depth", "open", "paused", "shelves")

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.shelves: dict[tuple[State, bool], Shelf] = {}
        self.open = 0
        self.set(None)

    def set(self, value: dict[str, Any] | None) -> None:
        """Let it behave so; raises Invalid if no queue can."""
        settings = DEFAULTS if value is None else queue_settings(value)
        self.paused, self.max_depth = settings.paused, settings.max_depth

    def tidy(self) -> None:
        """Forget lines and shelves without a job."""
        self.lines = {kind: line for kind, line in self.lines.items() if line.live}
        self.shelves = {key: shelf for key, shelf in self.shelves.items() if shelf.live}


class Tenant:
    """One tenant's jobs, by id and by key; its queues, and how many jobs each lease call still holds."""

    __slots__ = ("calls", "jobs", "keys", "queues", "revs", "settings")

    def __init__(self) -> None:
        self.jobs: dict[str, Seen] = {}
        self.keys: dict[str, str] = {}
        self.calls: dict[str, int] = {}
        self.queues: dict[str, Queue] = {}
        self.settings: dict[tuple[SettingKind, str], dict[str, Any]] = {}
        self.revs: dict[tuple[SettingKind, str], int] = {}

    def queue(self, name: str) -> Queue:
        """The queue of this name, made when it is new."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue()
        return queue

    def leave(self, job: Seen) -> None:
        """Take a job from where it is: its line, its lease, or the finished."""
        queue = self.queues[job.queue]
        held = job.held
        if held is not None:
            job.held = None
            left = self.calls[held.call] - 1
            if left:
                self.calls[held.call] = left
            else:
                del self.calls[held.call]
        elif job.state is State.QUEUED:
            queue.lines[job.kind].live -= 1
        else:
            queue.shelves[job.state, job.key is not None].live -= 1
            queue.open += 1
        job.order = 0

    def stand(self, job: Seen, at: datetime) -> None:
        """Let a queued job stand in line, at its place."""
        queue = self.queue(job.queue)
        line = queue.lines.get(job.kind)
        if line is None:
            line = queue.lines[job.kind] = Line()
        line.live += 1
        line.enter(job, at)

    def hold(self, job: Seen, held: Held) -> None:
        """Let a job be leased."""
        job.state = State.LEASED
        job.held = held
        self.calls[held.call] = self.calls.get(held.call, 0) + 1

    def shelve(self, job: Seen) -> None:
        """Put a finished job among the finished."""
        queue = self.queue(job.queue)
        queue.open -= 1
        key = job.state, job.key is not None
        shelf = queue.shelves.get(key)
        if shelf is None:
            shelf = queue.shelves[key] = Shelf()
        shelf.live += 1
        shelf.enter(job)

    def forget(self, job: Seen) -> None:
        """Remember nothing of a job that is gone."""
        self.leave(job)
        queue = self.queues[job.queue]
        queue.open -= 1
        del self.jobs[job.id]
        if job.key is not None and self.keys.get(job.key) == job.id:
            del self.keys[job.key]
        job.order = -1


class Book:
    """All tenants, the record that is being read, and what was found in it."""

    def __init__(self) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.found: list[Finding] = []
        self.order = 0
        self.seq = 0
        self.line = 0
        self.at = EPOCH
        # The latest time of any record: when a job without a time of its own became ready (rule 8).
        self.log_time = EPOCH
        self.events: tuple[AnyEvent, ...] = ()
        # Of this record: whose acks it holds, the lease call that is being read, its kinds, and its next index.
        self.acked: set[tuple[str, str]] = set()
        self.call = ""
        self.kinds: tuple[str, ...] = ()
        self.index = 0

    def tenant(self, name: str) -> Tenant:
        """The tenant of this name, made when it is new."""
        tenant = self.tenants.get(name)
        if tenant is None:
            tenant = self.tenants[name] = Tenant()
        return tenant

    def next_order(self) -> int:
        """The next place: those that come later are behind."""
        self.order += 1
        return self.order

    def say(self, rule: str, job_id: str | None, message: str, **facts: object) -> None:
        """Take down what the event on this line violates."""
        told = " ".join(f"{name}={value}" for name, value in facts.items())
        self.found.append(Finding(rule, self.seq, self.line, job_id, f"{message}: {told}" if told else message))
