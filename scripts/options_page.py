"""Writes docs/options.md from the table in penstock.options; with --check, fails if the page is stale."""

import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.options import TABLE, Option

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"

HEAD = """\
# Options

Configuration of a process. Every command takes every option, as a flag before or behind the command's name, or as a
variable: a flag beats a variable beats the default, and an empty variable counts as unset. `penstock config` shows the
values and where each came from. What is stored with the jobs, such as how a queue behaves, is a *setting* and not here:
see `penstock queues set --help`.

| flag | variable | default | unit | values | |
|---|---|---|---|---|---|
"""

TAIL = """
Made by `scripts/options_page.py` from `src/penstock/options.py`; change the table there.
"""


def page() -> str:
    """The page as it should be."""
    return HEAD + "".join(f"| {' | '.join(cells(option))} |\n" for option in TABLE) + TAIL


def cells(option: Option) -> Iterator[str]:
    """One line of the page."""
    yield f"`{option.flag}`"
    yield f"`{option.variable}`"
    yield option.default_text
    yield option.unit
    yield option.range
    yield f"{option.help} A password in it is masked when shown." if option.secret else option.help


def main() -> int:
    """Write the page, or say whether it is fresh."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE} is stale: run python scripts/options_page.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
