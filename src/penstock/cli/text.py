"""Words for people: ages, times, and other people's text made safe for a terminal."""

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def one_line(text: str) -> str:
    """The text on one line, without characters that could play tricks on a terminal."""
    return safe(" ".join(text.split()))


def safe(text: str) -> str:
    """The text, line by line, without control characters: what a job carries is not to move the cursor."""
    return "\n".join(
        "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line.expandtabs())
        for line in text.split("\n")
    )


def span(seconds: float) -> str:
    """A length of time in one unit, of which there are at least two: 90s, 119m, 47h, 3d."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def gist(error: str | None) -> str:
    """The line of an error that says most: the first, but the last of a traceback."""
    lines = (error or "").strip().splitlines()
    return "" if not lines else one_line(lines[-1 if lines[0].startswith("Traceback (") else 0])


def ago(at: datetime | None, now: datetime) -> str:
    """How long something is ago, or how long it will take."""
    if at is None:
        return "-"
    seconds = (now - at).total_seconds()
    return span(seconds) if seconds >= 0 else f"in {span(-seconds)}"


def clock_time(at: datetime | None) -> str:
    """A time, to the second, in UTC."""
    return "-" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def short_time(at: datetime) -> str:
    """A time without its year, for tables."""
    return at.astimezone(UTC).strftime("%m-%d %H:%M:%SZ")


def counted(count: int, noun: str) -> str:
    """A number of things: 1 job, 2 jobs."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
