"""``penstock demo``: shows each step of the story, runs it, and says what happened."""

import inspect
from collections.abc import Iterator, Sequence
from datetime import datetime
from textwrap import dedent, indent
from typing import Any, Final, NamedTuple

from rich.console import RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

import penstock
from penstock.cli import job_screens, queue_screens
from penstock.cli.session import Session
from penstock.cli.story import STORY, Happened
from penstock.domain import view

_OPENING: Final = 'import penstock\n\nwith penstock.connect_sync("memory://", actor="demo") as queue:'


class Step(NamedTuple):
    """A step as it is shown: its title and its lines of Python."""

    title: str
    code: str


def show(session: Session) -> None:
    """Run the story. It needs no store and leaves nothing behind."""
    done = []
    _say(session, Text("A queue in memory, in Python. The lines below are those that run.\n"))
    _say(session, _python(_OPENING))
    with penstock.connect_sync("memory://", actor="demo") as queue:
        run = (happened for part in STORY for happened in part(queue))
        for number, step in enumerate(steps(), 1):
            _say(session, Text(f"\n{number}. {step.title}", style="bold"), _python(indent(step.code, "    ")))
            happened = next(run)
            now = session.edge.clock.now()
            _say(session, *(Padding(part, (0, 0, 0, 4)) for part in _screens(happened, now)))
            done.append({"title": step.title, "python": step.code.splitlines(), **_document(happened)})
    if session.json:
        session.tell({"steps": done})
    _say(session, Text("\nThe queue was in memory and is gone. What to do next: penstock", style="dim"))


def steps() -> list[Step]:
    """The steps as they are written: what is shown cannot differ from what is run."""
    bodies = (inspect.getsource(part).split('"""', 2)[2] for part in STORY)
    return [_step(dedent(block).splitlines()) for body in bodies for block in body.strip("\n").split("\n\n")]


def _step(lines: Sequence[str]) -> Step:
    answer = next(index for index, line in enumerate(lines) if line.startswith("yield "))
    return Step(lines[0].removeprefix("# "), "\n".join(lines[1:answer]))


def _say(session: Session, *parts: RenderableType) -> None:
    if not session.json:
        session.tell(None, *parts)


def _python(code: str) -> RenderableType:
    return Syntax(code, "python", theme="ansi_dark", background_color="default", word_wrap=True)


def _screens(happened: Happened, now: datetime) -> Iterator[RenderableType]:
    for line in happened.lines:
        yield Text(f"-> {line}", style="green")
    if happened.history:
        yield job_screens.history(happened.history)
    if happened.queues:
        yield Text()
        yield queue_screens.many(happened.queues, now)


def _document(happened: Happened) -> dict[str, Any]:
    return {
        "happened": list(happened.lines),
        "history": [view.entry(entry) for entry in happened.history],
        "queues": [view.queue(queue) for queue in happened.queues],
    }
