"""Legs of one comparison, taken in turns so that both see the same machine, and what comes of them."""

import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.legs.task import Task

_LEGS: Final = Path(__file__).parent / "legs"
_LIMIT_S: Final = 1_800
Figures = dict[str, float]


class Leg(NamedTuple):
    """One process: an interpreter, a script, what it is asked; below ``home``, if it needs one, a new directory each time."""

    python: Path
    script: str
    task: Task
    home: Path | None = None

    def run(self) -> Figures:
        """Run it and read its figures."""
        task = self.task if self.home is None else self.task._replace(place=tempfile.mkdtemp(dir=self.home))
        done = subprocess.run(
            [str(self.python), str(_LEGS / self.script), *task.arguments()],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.script} {task} failed:\n{done.stderr}")
        figures: Figures = json.loads(done.stdout.splitlines()[-1])
        return figures


class Measured(NamedTuple):
    """Figures of ours, and of the other measured next to each, if there is another."""

    ours: list[Figures]
    other: list[Figures]

    def values(self, figure: str) -> list[float]:
        """One for each turn: ours, or ours over the other's."""
        if not self.other:
            return [ours[figure] for ours in self.ours]
        return [ours[figure] / other[figure] for ours, other in zip(self.ours, self.other, strict=True)]

    def medians(self, figure: str) -> list[float]:
        """Of each side that has the figure."""
        sides = ([one[figure] for one in side if figure in one] for side in (self.ours, self.other))
        return [statistics.median(side) for side in sides if side]


class Turns(NamedTuple):
    """How often each comparison is made, and whom to tell what is being measured."""

    pairs: int
    tell: Callable[[str], None]

    def at_most(self, pairs: int) -> "Turns":
        """For what takes long, or comes out alike each time."""
        return self._replace(pairs=min(self.pairs, pairs))

    def compare(self, name: str, ours: Leg, other: Leg, *, warm: bool = True) -> Measured:
        """One pair to warm up unless that is too dear, then pairs in the order AB BA AB ..."""
        measured = Measured([], [])
        for turn in range(0 if warm else 1, self.pairs + 1):
            self.tell(f"{name}: {f'pair {turn} of {self.pairs}' if turn else 'warming up'}")
            sides = (measured.ours, ours), (measured.other, other)
            for figures, leg in sides if turn % 2 else reversed(sides):
                told = leg.run()
                if turn:
                    figures.append(told)
        return measured

    def repeat(self, name: str, leg: Leg) -> Measured:
        """The same leg as often, compared with nothing."""
        measured = Measured([], [])
        for turn in range(1, self.pairs + 1):
            self.tell(f"{name}: {turn} of {self.pairs}")
            measured.ours.append(leg.run())
        return measured
