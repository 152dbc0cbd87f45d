"""The books of a checker: every tenant's jobs and queues as the log has them so far, and what was found wrong."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from penstock.domain.commands import SettingKind
from penstock.domain.events import AnyEvent
from penstock.domain.job import State
from penstock.domain.settings import DEFAULTS, queue_settings
from penstock.domain.verify.seen import Held, Line, Seen, Shelf

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Finding(Struct, frozen=True, gc=False):
    """One violation: which rule, by which event, of which job, and what is wrong. Line 0: found after the last event."""

    rule: str
    seq: int
    line: int
    job_id: str | None
    message: str


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

    def tidy(self) -> bool:
        """Forget lines and shelves without a job; say whether the queue is empty."""
        self.lines = {kind: line for kind, line in self.lines.items() if line.live}
        self.shelves = {key: shelf for key, shelf in self.shelves.items() if shelf.live}
        return not self.open and not self.shelves


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

    def tidy(self, name: str) -> None:
        """Forget what a queue no longer needs, and the queue itself if it is empty and nobody has set it."""
        if self.queues[name].tidy() and (SettingKind.QUEUE, name) not in self.settings:
            del self.queues[name]


class Book:
    """All tenants, the record that is being read, and what was found in it."""

    def __init__(self) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.found: list[Finding] = []
        self.jobs = 0
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

    def say_of(self, job: Seen, rule: str, message: str) -> None:
        """Take down what is wrong with a job in the end; the place is its last event's record."""
        self.found.append(Finding(rule, job.seq, 0, job.id, message))

    def say(self, rule: str, job_id: str | None, message: str, **facts: object) -> None:
        """Take down what the event on this line violates."""
        told = " ".join(f"{name}={value}" for name, value in facts.items())
        self.found.append(Finding(rule, self.seq, self.line, job_id, f"{message}: {told}" if told else message))
