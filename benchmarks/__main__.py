"""Run the comparisons and keep what they gave: ``python -m benchmarks [PAIRS]``."""

import json
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import environments, memory
from benchmarks.interleave import Comparison

_RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure, show, write."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    console = Console()
    with console.status(f"measuring, {pairs} pairs each; this takes some minutes"):
        measured, single = memory.run(pairs)
    console.print(_table(measured))
    for name, value in single.items():
        console.print(f"{name}: [bold]{value}[/]")
    page = _page(measured, single, pairs)
    (_RESULTS / "memory.md").write_text(page, encoding="utf-8")
    raw = {comparison.name: comparison.pairs for comparison in measured}
    (_RESULTS / "memory.json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


def _rows(measured: list[Comparison]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for comparison in measured:
        ratio, least, most = comparison.ratio()
        rate, other_rate = comparison.median("jobs_per_s")
        cpu, other_cpu = comparison.median("cpu_us")
        rows.append(
            (
                comparison.name,
                f"{ratio:.2f}x",
                f"{least:.2f} to {most:.2f}",
                f"{rate:,.0f} / {other_rate:,.0f}",
                f"{cpu:.1f} / {other_cpu:.1f}",
            )
        )
    return rows


_HEADS = ("measure", "ratio", "range", "jobs/s", "CPU us/job")


def _table(measured: list[Comparison]) -> Table:
    table = Table(*_HEADS, title="Penstock over jqueue 1.0.0, in memory, 50 callers")
    for row in _rows(measured):
        table.add_row(*row)
    return table


def _page(measured: list[Comparison], single: dict[str, str], pairs: int) -> str:
    lines = [
        "# In memory, 50 callers, jobs of 100 bytes",
        "",
        f"Made by `make bench`: {pairs} pairs of legs taken in turns, median of the ratios; both queues on the same",
        f"interpreter ({Path(environments.interpreter()).name}, {platform.machine()}), each in an environment of its own.",
        "",
        "| " + " | ".join(_HEADS) + " |",
        "|" + "---|" * len(_HEADS),
        *("| " + " | ".join(row) + " |" for row in _rows(measured)),
        "",
        *(f"- {name}: {value}" for name, value in single.items()),
        "",
    ]
    return "\n".join(lines)


main()
