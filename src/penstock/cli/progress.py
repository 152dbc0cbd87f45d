"""A progress bar where it is long, on stderr and only for people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console

from penstock.cli.session import Session

# Fewer are done before anybody could read a bar.
_MANY: Final = 500


@contextmanager
def progress(session: Session, verb: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far it is; call the value with how many more are done."""
    console = Console(stderr=True)
    if session.json or total < _MANY or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import (  # noqa: PLC0415 read when it is wanted: few commands are long
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(verb, total=total)
        yield lambda count: bar.advance(task, count)
