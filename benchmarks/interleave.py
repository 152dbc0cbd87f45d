"""Legs of one comparison, taken in turns so that both see the same machine, and what comes of them."""

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

_LEGS: Final = Path(__file__).parent / "legs"
Figures = dict[str, float]


class Leg(NamedTuple):
    """One process: an interpreter, a script, its arguments."""

    python: Path
    script: str
    arguments: tuple[str, ...]

    def run(self) -> Figures:
        """Run it and read its figures."""
        done = subprocess.run(
            [str(self.python), str(_LEGS / self.script), *self.arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.script} {' '.join(self.arguments)} failed:\n{done.stderr}")
        figures: Figures = json.loads(done.stdout.splitlines()[-1])
        return figures


class Comparison(NamedTuple):
    """Pairs of figures, ours and the other's, measured next to each other."""

    name: str
    pairs: list[tuple[Figures, Figures]]

    def ratio(self, figure: str = "jobs_per_s") -> tuple[float, float, float]:
        """Ours over the other's: the median of the pairs, the least and the most."""
        ratios = [ours[figure] / other[figure] for ours, other in self.pairs]
        return statistics.median(ratios), min(ratios), max(ratios)

    def median(self, figure: str) -> tuple[float, float]:
        """The medians of both sides."""
        return statistics.median(ours[figure] for ours, _ in self.pairs), statistics.median(
            other[figure] for _, other in self.pairs
        )


def compare(name: str, ours: Leg, other: Leg, *, pairs: int) -> Comparison:
    """One pair to warm up, then pairs in the order AB BA AB ..."""
    measured: list[tuple[Figures, Figures]] = []
    for turn in range(pairs + 1):
        legs: Sequence[Leg] = (ours, other) if turn % 2 else (other, ours)
        first, second = (leg.run() for leg in legs)
        if turn:
            measured.append((first, second) if turn % 2 else (second, first))
    return Comparison(name, measured)
