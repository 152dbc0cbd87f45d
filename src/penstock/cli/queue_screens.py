"""Queues on a screen."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import RenderableType
from rich.text import Text

from penstock.cli import screens
from penstock.cli.text import ago
from penstock.domain.job import State
from penstock.domain.queries import QueueStats
from penstock.domain.settings import DEFAULTS


def many(queues: Sequence[QueueStats], now: datetime) -> RenderableType:
    """Queues as a table of counts."""
    table = screens.table(gap=1)
    table.add_column("QUEUE", min_width=8)
    for name in ("READY", "SCHEDULED", "LEASED", "SUCCEEDED", "DEAD", "CANCELLED", "OLDEST"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("", no_wrap=True)
    for queue in queues:
        table.add_row(
            screens.cut(queue.queue),
            _count(queue.ready, State.QUEUED),
            _count(queue.scheduled, State.QUEUED),
            _count(queue.leased, State.LEASED),
            _count(queue.succeeded, State.SUCCEEDED),
            _count(queue.dead, State.DEAD),
            _count(queue.cancelled, State.CANCELLED),
            ago(queue.oldest_ready_at, now),
            Text("paused", style="yellow") if queue.paused else "",
        )
    return table


def _count(count: int, state: State) -> Text:
    return Text(f"{count:,}", style=screens.STYLES[state] if count else "dim")


def one(queue: QueueStats, now: datetime) -> tuple[RenderableType, ...]:
    """One queue by numbers, and its settings with those that were changed in bold."""
    oldest = f", the oldest for {ago(queue.oldest_ready_at, now)}" if queue.oldest_ready_at else ""
    numbers = screens.fields(
        [
            ("queue", queue.queue),
            ("paused", Text("yes", style="yellow") if queue.paused else "no"),
            ("queued", f"{queue.queued:,} ({queue.ready:,} ready{oldest}; {queue.scheduled:,} scheduled)"),
            *((str(state), f"{getattr(queue, state):,}") for state in State if state is not State.QUEUED),
        ]
    )
    settings = screens.table()
    for name in ("SETTING", "VALUE", "DEFAULT"):
        settings.add_column(name, no_wrap=True)
    for (name, value), (_, default) in zip(_flat(queue.settings), _flat(DEFAULTS), strict=True):
        settings.add_row(name, Text(value, style="bold" if value != default else ""), Text(default, style="dim"))
    return numbers, screens.heading("settings"), settings


def _flat(settings: Struct, outer: str = "") -> Iterator[tuple[str, str]]:
    for name, value in asdict(settings).items():
        if isinstance(value, Struct):
            yield from _flat(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", _shown(value)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)
