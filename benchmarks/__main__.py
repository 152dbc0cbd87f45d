"""Run the comparisons and keep what they gave: ``python -m benchmarks [memory|directory|all] [PAIRS]``."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import directory, memory, table
from benchmarks.interleave import Turns
from benchmarks.places import Places, places

_RESULTS: Final = Path(__file__).parent / "results"


def main() -> None:
    """Measure, show, write."""
    asked = _arguments()
    suites: dict[str, tuple[str, Callable[[Turns, Places], Iterator[table.Row]]]] = {
        "memory": (memory.TITLE, memory.rows),
        "directory": (directory.TITLE, partial(directory.rows, minutes=asked.minutes)),
    }
    # So that the files of the legs are removed then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    console = Console(highlight=False)
    with places() as made, console.status("measuring") as status:
        tell = status.update if console.is_terminal else partial(console.print, soft_wrap=True)
        for name, (title, rows) in suites.items():
            if asked.suite in {name, "all"}:
                _measure(name, title, rows(Turns(asked.pairs, tell), made), console, made, asked.pairs)


def _measure(name: str, title: str, rows: Iterator[table.Row], console: Console, made: Places, pairs: int) -> None:
    """Show each row as it comes, and write the files after each: what was measured is kept if the rest fails."""
    conditions = {**table.conditions(made.disk, pairs), **made.facts(), "load at the beginning": table.load()}
    done: list[table.Row] = []
    _RESULTS.mkdir(exist_ok=True)
    for row in rows:
        done.append(row)
        measure, result, spread, must, aim, met, *_, note = row.cells()
        goals = f"must {must}, met: {met}" + (f"; aim {aim}" if aim else "")
        console.print(f"{measure}: [bold]{result}[/] ({goals}) {spread} {note}", soft_wrap=True)
        conditions["load at the end"] = table.load()
        (_RESULTS / f"{name}.md").write_text(table.page(title, done, conditions), encoding="utf-8")
        raw = {"conditions": conditions, "rows": [row.raw() for row in done]}
        (_RESULTS / f"{name}.json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure this machine.")
    parser.add_argument("suite", nargs="?", choices=("memory", "directory", "all"), default="all")
    parser.add_argument("pairs", nargs="?", type=int, default=3, help="pairs of legs in each comparison")
    parser.add_argument(
        "--minutes", type=float, default=2.0, help="how long finished jobs are piled up; 10 for the whole"
    )
    return parser.parse_args()


main()
