"""What a checker remembers of jobs, in its own way, so that a fault of the tables cannot hide itself.

A purged job leaves nothing behind. A finished one leaves its numbers, its times and hashes of its bytes.
"""

from collections.abc import Iterator
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct

from penstock.domain.job import Hold, Job, Reason, State

_SLACK: Final = 64


class Held(Struct, gc=False):
    """A lease that has not ended."""

    call: str
    lease_s: float
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
            result=hashed(job.result_bytes),
            held=None if hold is None else _held(hold, job.progress),
        )

    @property
    def place(self) -> tuple[int, datetime, int]:
        """Where it stands in line."""
        return self.priority, self.ready_at, self.order


def hashed(data: bytes | None) -> int:
    """What is kept of a result to compare it with; 0 when there is none."""
    return 0 if data is None else hash(data)


def _held(hold: Hold, progress: float | None) -> Held:
    left_s = hold.lease_s if hold.left_s is None else hold.left_s
    return Held(hold.call, hold.lease_s, left_s, hold.beats, progress)


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
