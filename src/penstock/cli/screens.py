"""What all screens have in common: plain tables that fit a narrow terminal, and colours by state."""

from collections.abc import Iterable
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.cli.text import gist, one_line, safe
from penstock.domain.job import State

# From this width on an error has a column of its own.
WIDE: Final = 120

STYLES: Final = {
    State.QUEUED: "cyan",
    State.LEASED: "yellow",
    State.SUCCEEDED: "green",
    State.DEAD: "red",
    State.CANCELLED: "dim",
}


def table(*, gap: int = 2) -> Table:
    """An empty table: headings in bold, nothing drawn, no wider than it must be."""
    return Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")


def fields(pairs: Iterable[tuple[str, RenderableType]]) -> Table:
    """Names and values, one pair a line; what is empty is left out."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value != "":
            grid.add_row(name, Text(safe(value)) if isinstance(value, str) else value)
    return grid


def heading(text: str) -> Text:
    """The title of a part, with a blank line above it."""
    return Text(f"\n{text}", style="bold")


def state(state: State, note: str | None = None) -> Text:
    """A state in its colour, with what there is to say of it."""
    return Text(f"{state}{f' ({note})' if note else ''}", style=STYLES[state])


def cut(text: str, style: str = "") -> Text:
    """Other people's text on one line, cut at the end of its cell."""
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def error(text: str | None) -> Text:
    """The gist of an error in its cell."""
    return cut(gist(text), "red")


def above(text: str, lower: Text) -> RenderableType:
    """A cell of two lines, the lower one set in; of one line when there is nothing to say below."""
    return Group(cut(text), Padding(lower, (0, 0, 0, 2))) if lower.plain else cut(text)
