"""What can be wrong with a machine and its store, and what to do about it."""

import asyncio
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from penstock.cli.exits import MISSING, UNAVAILABLE, exit_code
from penstock.cli.release import release
from penstock.cli.session import Session, Usage
from penstock.cli.text import clock_time, counted
from penstock.clock import Clock
from penstock.domain.queries import QueueStats
from penstock.errors import Corrupt, Denied, Invalid, Moved, NotFound, PenstockError, Unavailable
from penstock.options import TABLE, Options, masked, unknown

# A store that takes longer for one look is of no use to anybody.
_PATIENCE_S: Final = 15.0
# A clock before this release was made is wrong.
_RELEASED: Final = 2025
_NEARLY_FULL: Final = 0.8


_DO: Final[dict[type[PenstockError], str]] = {
    Unavailable: "see whether it runs and can be reached",
    NotFound: "enqueue a job to create it, or name another store",
    Denied: "ask for a token that may look",
    Corrupt: "stop what writes to it and look at its bytes",
    Moved: "name the store by that address",
}


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


STYLES: Final = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


@dataclass(frozen=True)
class Check:
    """One line of the report; ``code`` is the exit code that a failure asks for."""

    name: str
    status: Status
    message: str
    do: str = ""
    code: int = 0


async def examine(session: Session) -> list[Check]:
    """Look at everything; a part that fails does not keep the others from being looked at."""
    checks = [
        Check("python", Status.OK, f"{platform.python_version()} at {sys.executable}"),
        Check("penstock", Status.OK, release()),
        _clock(session.edge.clock),
    ]
    try:
        options = session.options
    except Invalid as error:
        return [*checks, Check("options", Status.FAIL, str(error), "correct it", MISSING)]
    return [*checks, *_options(session, options), *await _store(session, options)]


def _clock(clock: Clock) -> Check:
    now = clock.now()
    if now.year < _RELEASED:
        return Check("clock", Status.FAIL, f"it is {clock_time(now)} here", "set this machine's clock", MISSING)
    return Check("clock", Status.OK, clock_time(now))


def _options(session: Session, options: Options) -> Iterator[Check]:
    strange = unknown(session.edge.environ)
    known = [option.variable for option in TABLE]
    for name in strange:
        near = get_close_matches(name, known, n=1)
        do = f"did you mean {near[0]}?" if near else "see penstock config for those there are"
        yield Check("options", Status.WARN, f"{name} is no variable of penstock and does nothing", do)
    if not strange:
        own = sum(source != "default" for source in options.came_from.values())
        yield Check("options", Status.OK, f"{own} of {len(TABLE)} given, the rest at their defaults")


async def _store(session: Session, options: Options) -> list[Check]:
    url = masked(options.store or "")
    clock = session.edge.clock
    began = clock.elapsed()
    try:
        async with asyncio.timeout(_PATIENCE_S), session.open() as client:
            stats = await client.stats()
    except Usage as error:
        return [Check("store", Status.FAIL, str(error), code=MISSING)]
    except Invalid as error:
        return [Check("store", Status.FAIL, str(error), "name another store", MISSING)]
    except PenstockError as error:
        return [Check("store", Status.FAIL, str(error), _DO.get(type(error), ""), exit_code(error))]
    except TimeoutError:
        late = f"no answer from {url} within {_PATIENCE_S:g} s"
        return [Check("store", Status.FAIL, late, _DO[Unavailable], UNAVAILABLE)]
    took_ms = (clock.elapsed() - began) * 1000
    seen = f"{url} opened and read in {took_ms:.0f} ms, {counted(len(stats), 'queue')}"
    return [Check("store", Status.OK, seen), *_queues(stats)]


def _queues(stats: Sequence[QueueStats]) -> Iterator[Check]:
    for queue in stats:
        if queue.paused and queue.ready:
            waiting = f"{queue.queue} is paused while {counted(queue.ready, 'job')} could run"
            yield Check("queue", Status.WARN, waiting, f"penstock queues resume {queue.queue}")
        depth = queue.queued + queue.leased
        if depth >= _NEARLY_FULL * queue.settings.max_depth:
            full = f"{queue.queue} holds {depth:,} of at most {queue.settings.max_depth:,} jobs"
            yield Check("queue", Status.WARN, full, "add workers, or set max_depth")
