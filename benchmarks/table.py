"""From what was measured to a row, and from rows to a page."""

import os
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import environments
from benchmarks.interleave import Measured


class Goal(NamedTuple):
    """What is judged: the median of one figure, which must be at least (or at most) so much."""

    figure: str
    must: float
    aim: float | None = None
    most: bool = False
    unit: str = "x"

    def met(self, value: float) -> bool:
        """Whether the value is good enough."""
        return value <= self.must if self.most else value >= self.must

    def shown(self, value: float | None) -> str:
        """The value with its unit; below a tenth, a ratio reads better as a fraction."""
        if value is None:
            return ""
        if self.unit == "x" and 0 < value < 0.1:
            return f"1/{1 / value:,.0f}"
        return f"{_short(value)}{self.unit}"


class Row(NamedTuple):
    """One line of the table."""

    name: str
    goal: Goal
    measured: Measured
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """As the page shows them, in the order of ``HEADS``."""
        goal, values = self.goal, self.measured.values(self.goal.figure)
        middle = statistics.median(values)
        spread = f"{goal.shown(min(values))} to {goal.shown(max(values))}" if len(values) > 1 else ""
        judged = (
            goal.shown(middle),
            spread,
            goal.shown(goal.must),
            goal.shown(goal.aim),
            "yes" if goal.met(middle) else "**no**",
        )
        return self.name, *judged, *(self._sides(figure) for figure in _BESIDE), self.note

    def raw(self) -> dict[str, Any]:
        """Everything, for the file beside the page."""
        cells = dict(zip(HEADS, self.cells(), strict=True))
        return {**cells, "figure": self.goal.figure, "ours": self.measured.ours, "other": self.measured.other}

    def _sides(self, figure: str) -> str:
        return " / ".join(map(_short, self.measured.medians(figure)))


_BESIDE: Final = ("jobs_per_s", "cpu_us", "bytes_per_operation", "requests_per_job")
HEADS: Final = (
    *("measure", "result", "range", "must", "aim", "must met"),
    *("jobs/s", "CPU us/job", "bytes written/operation", "requests/job", "beside that"),
)


def beside(measured: Measured, **names: str) -> str:
    """Other figures of ours, in words: the name in the text for each figure."""
    return ", ".join(f"{text} {_short(measured.medians(figure)[0])}" for figure, text in names.items())


def page(title: str, rows: list[Row], conditions: dict[str, str]) -> str:
    """The whole page."""
    lines = [
        f"# {title}",
        "",
        "Made by `make bench`. Legs are processes taken in turns (AB BA ...), after a pair to warm up where that is not too",
        "dear; the result is the median of the pairs, ours over the other's where there are two, and is judged as it stands.",
        "Two figures with a slash are the medians of ours and the other's. An operation is a third of a job: it is enqueued,",
        "leased, acknowledged. Bytes are those handed to the store, snapshots and what is deleted later included.",
        "",
        _line(HEADS),
        "|" + "---|" * len(HEADS),
        *(_line(row.cells()) for row in rows),
        "",
        *(f"- {name}: {value}" for name, value in conditions.items()),
        "",
    ]
    return "\n".join(lines)


def conditions(stamp: Path, pairs: int) -> dict[str, str]:
    """What the figures depend on; the date is that of a file made for this run."""
    model = next((line for line in _read("/proc/cpuinfo").splitlines() if line.startswith("model name")), ": unknown")
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    version = subprocess.run([environments.interpreter(), "-V"], capture_output=True, text=True, check=True).stdout
    return {
        "begun": datetime.fromtimestamp(stamp.stat().st_mtime, UTC).isoformat(timespec="minutes"),
        "pairs": str(pairs),
        "machine": f"{model.partition(':')[2].strip()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, {platform.platform()}",
        "Python": f"{version.strip()}, the same for both, each in an environment of its own",
    }


def load() -> str:
    """How busy the machine is, with others' work too."""
    return _read("/proc/loadavg").rpartition(" ")[0]


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
