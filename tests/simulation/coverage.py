"""Which awaits of the product a crash has crossed."""

import ast
import gc
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import AsyncGeneratorType, CodeType, FrameType
from typing import Any, Final, NamedTuple

import penstock
from tests.simulation.loop import SimTask

ROOT: Final = Path(penstock.__file__).parent
_FOLDERS: Final = ("stores/log", "broker", "client")
# The simulation has its own bucket in place of the directory and its clerk, and no threads for sync.py. Those that only
# read, reading.py, or only pass calls on, typed.py, have nothing that a crash could leave half done.
_LEFT_OUT: Final = (
    "stores/log/directory.py",
    "stores/log/clerk.py",
    "stores/log/reading.py",
    "client/sync.py",
    "client/typed.py",
)


class Await(NamedTuple):
    """One place in the product where a task can be suspended: an await, an async for or an async with."""

    file: str
    line: int
    last_line: int

    def __str__(self) -> str:
        return f"src/penstock/{self.file}:{self.line}"


class Crossed:
    """The places at which tasks were suspended when their process crashed."""

    def __init__(self) -> None:
        self.places: set[tuple[str, int]] = set()

    def note(self, tasks: Iterable[SimTask]) -> None:
        """Take down where each unfinished task of a process stands, with all who wait for it in its own stack."""
        for task in tasks:
            if not task.done():
                self.places.update(_stack(task.get_coro()))

    def missing(self) -> list[Await]:
        """The awaits of the product that no crash has crossed."""
        return [
            place
            for place in AWAITS
            if not any((place.file, line) in self.places for line in range(place.line, place.last_line + 1))
        ]


def _awaits() -> list[Await]:
    found = []
    for path in sorted(path for folder in _FOLDERS for path in (ROOT / folder).glob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name not in _LEFT_OUT:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Await):
                    found.append(Await(name, node.lineno, node.end_lineno or node.lineno))
                elif isinstance(node, ast.AsyncFor | ast.AsyncWith):
                    found.append(Await(name, node.lineno, node.body[0].lineno - 1))
    return found


# All awaits of the folders that the simulation is for. Read at once, as the product was loaded: somebody may be at work on it.
AWAITS: Final = _awaits()


def _stack(waiting: Any) -> Iterator[tuple[str, int]]:
    """The file and line of each frame of a suspended coroutine, down to what it waits for."""
    while waiting is not None:
        frame: FrameType | None = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
        if frame is not None:
            code: CodeType = frame.f_code
            if code.co_filename.startswith(str(ROOT)):
                yield code.co_filename[len(str(ROOT)) + 1 :], frame.f_lineno
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None) or _asked(waiting)


def _asked(waiting: Any) -> Any:
    """The async generator that is behind the step somebody waits for; Python shows it only to the collector."""
    if type(waiting).__name__ == "async_generator_asend":
        return next((found for found in gc.get_referents(waiting) if isinstance(found, AsyncGeneratorType)), None)
    return None
