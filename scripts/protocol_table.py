"""Write what every verb does in every state into docs/protocol.md, as the state machine itself tells it.

With --check nothing is written: exit 1 if the page is not what it should be.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from penstock.domain import cells

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "protocol.md"
BEGIN: Final = "<!-- table:begin, made by scripts/protocol_table.py -->\n"
END: Final = "<!-- table:end -->\n"

_LEGEND: Final = """
A row is a job in a state, a column is a command, and a cell is what the command does. `-> x` leaves the job in state x,
with the reason in brackets; `same job`, `same answer` and `same leases` are the answers to a repeat, and change nothing.
The caller enqueues without a key, made the first lease call of the job, if there was one, and saw the job in its first
life. A command that is *stale* carries a token that never held the job.
"""
_WITH_TOKEN: Final = {"heartbeat", "ack", "nack", "release"}
_TO_GET_JOBS: Final = {"enqueue", "lease"}


def main(arguments: list[str]) -> int:
    """Write the table, or say whether it is as it should be."""
    page = PAGE.read_text()
    wanted = with_table(page)
    if "--check" not in arguments:
        PAGE.write_text(wanted)
    elif page != wanted:
        print(f"{PAGE.name} is stale: run scripts/protocol_table.py", file=sys.stderr)
        return 1
    return 0


def with_table(page: str) -> str:
    """The page with the table of today between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{PAGE.name} has lost the marks between which the table stands")
    return "".join((before, BEGIN, _LEGEND, *_tables(), "\n", END, after))


def _tables() -> Iterable[str]:
    outcomes = {(cell.scene, cell.verb): cell.outcome for cell in cells.table()}
    for title, verbs in _groups().items():
        yield f"\n**{title}**\n\n"
        yield _line("", *verbs)
        yield _line(*("---" for _ in range(len(verbs) + 1)))
        for scene in cells.SCENES:
            yield _line(scene, *(outcomes[scene, verb] for verb in verbs))


def _groups() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {
        "To make and to get jobs": [],
        "With a token": [],
        "By the broker and operators": [],
    }
    making, holding, operating = groups.values()
    for verb in cells.VERBS:
        word = verb.partition(",")[0]
        (making if word in _TO_GET_JOBS else holding if word in _WITH_TOKEN else operating).append(verb)
    return groups


def _line(*columns: str) -> str:
    return f"| {' | '.join(columns)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
