"""What every caller was told, kept outside the processes, which may forget."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from penstock.client.seam import Seam
from penstock.domain import fingerprint
from penstock.domain.commands import Command, Enqueue, Heartbeat, LeaseJobs
from penstock.domain.events import Entry
from penstock.domain.job import Job, NewJob
from penstock.domain.outcome import Result
from penstock.domain.queries import Answer, Query
from penstock.errors import PenstockError, Unavailable
from tests.simulation.loop import SimLoop

T = TypeVar("T")


class Told(NamedTuple):
    """One call that was answered, with the true times between which it was decided."""

    process: str
    asked: Command | Query
    answer: Any
    began_s: float
    ended_s: float


class Wish(Struct):
    """Jobs that somebody wants, once each; a payload names its wish. What the caller was told of it comes later."""

    number: int
    jobs: tuple[NewJob, ...]
    accepted: tuple[Job, ...] | None = None
    # Every try of it was refused: it must not be in the log.
    refused: bool = False


class Life(Struct):
    """From when to when a process was up, and how it ended."""

    process: str
    began_s: float
    # When it had opened the store.
    up_s: float = float("inf")
    ended_s: float = float("inf")
    crashed: bool = False


class Ledger:
    """Everything that was told, in the order of telling."""

    def __init__(self, loop: SimLoop, *, speaks: bool = False) -> None:
        self.told: list[Told] = []
        self.wishes: list[Wish] = []
        self.lives: list[Life] = []
        self.lines: list[str] = []
        # What was seen at once to be wrong.
        self.faults: list[str] = []
        # How many heartbeats were sent for each lease, by what the log knows of its token, and its job.
        self.beats: Counter[tuple[str, int, str]] = Counter()
        self._loop = loop
        self._speaks = speaks
        self._asked: Counter[str] = Counter()
        self._kinds: dict[str, tuple[str, ...] | None] = {}

    def kinds_by_call(self) -> dict[str, tuple[str, ...] | None]:
        """What each lease call asked for, by what the log calls it; also those that were never answered."""
        return self._kinds

    def asked(self, asked: Command | Query) -> None:
        """Take down a question before it is answered."""
        if isinstance(asked, LeaseJobs):
            self._kinds[fingerprint.of_call(asked.request_id)] = asked.kinds
        elif isinstance(asked, Enqueue):
            self._asked.update(new.id or "" for new in asked.jobs)
        elif isinstance(asked, Heartbeat):
            self.beats.update((*fingerprint.token_parts(beat.token), beat.job_id) for beat in asked.beats)

    def unanswered(self, job_id: str) -> bool:
        """Whether this job was once asked for without an answer."""
        return self._asked[job_id] > sum(
            new.id == job_id for told in self.told if isinstance(told.asked, Enqueue) for new in told.asked.jobs
        )

    def note(self, line: str) -> None:
        """Put a line into the trace."""
        self.lines.append(f"{self._loop.time():10.4f} {line}")

    def wish(self, *jobs: NewJob) -> Wish:
        """Take down a wish."""
        made = Wish(len(self.wishes), jobs)
        self.wishes.append(made)
        return made

    def tell(self, told: Told) -> None:
        """Take down an answer."""
        self.told.append(told)
        cause = told.answer.__cause__ if isinstance(told.answer, Unavailable) else None
        if isinstance(cause, Exception) and not isinstance(cause, PenstockError):
            self.faults.append(f"unhandled: {told.process} answered {told.answer!r} because of {cause!r}")
        say = repr if self._speaks else _brief
        self.note(f"{told.process} {told.began_s:.4f} {say(told.asked)} -> {say(told.answer)}")


class Recorder:
    """The seam of one process, which takes down every answer at the moment it is given."""

    def __init__(self, seam: Seam, ledger: Ledger, loop: SimLoop, process: str) -> None:
        self._seam = seam
        self._ledger = ledger
        self._loop = loop
        self._process = process

    async def submit(self, command: Command) -> Result:
        """Pass it on and take the answer down."""
        return await self._heard(command, self._seam.submit)

    async def ask(self, query: Query) -> Answer:
        """Pass it on and take the answer down."""
        return await self._heard(query, self._seam.ask)

    def watch(self, tenant: str) -> AsyncIterator[Entry]:
        """Pass it on; a watch promises nothing."""
        return self._seam.watch(tenant)

    async def _heard(self, asked: Any, say: Callable[[Any], Awaitable[T]]) -> T:
        began_s = self._loop.time()
        self._ledger.asked(asked)
        try:
            answer = await say(asked)
        except PenstockError as refusal:
            self._ledger.tell(Told(self._process, asked, refusal, began_s, self._loop.time()))
            raise
        self._ledger.tell(Told(self._process, asked, answer, began_s, self._loop.time()))
        return answer


def _brief(value: object) -> str:
    return f"{type(value).__name__} {getattr(value, 'job_id', '')}"
