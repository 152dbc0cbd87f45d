"""``penstock queues``: look at queues and change how they behave."""

from typing import Annotated, Any, Final

import msgspec
import typer

from penstock.cli import queue_screens
from penstock.cli.command import command
from penstock.cli.flags import QueueName
from penstock.cli.session import Session, Usage
from penstock.client import Client
from penstock.domain import view
from penstock.domain.backoff import Backoff
from penstock.domain.queries import QueueStats
from penstock.domain.settings import QueueSettings
from penstock.errors import Invalid, NotFound

app = typer.Typer(help="Look at queues, pause or resume them, and set how they behave.")

_BACKOFF: Final = "backoff"
_TYPES: Final[dict[str, Any]] = {
    **{known.name: known.type for known in msgspec.structs.fields(QueueSettings) if known.name != _BACKOFF},
    **{f"{_BACKOFF}.{known.name}": known.type for known in msgspec.structs.fields(Backoff)},
}


def _keys(incomplete: str) -> list[str]:
    return [f"{key}=" for key in _TYPES if key.startswith(incomplete)]


Changes = Annotated[
    list[str],
    typer.Argument(
        help=f"KEY=VALUE; KEY= alone puts one back to its default. Keys: {', '.join(_TYPES)}.",
        metavar="KEY=VALUE",
        autocompletion=_keys,
    ),
]


@command(app, "list")
async def list_queues(session: Session) -> None:
    """List the queues with how many jobs are where."""
    async with session.open() as client:
        stats = await client.stats()
    session.tell(
        {"queues": [view.queue(one) for one in stats]},
        queue_screens.many(stats, session.edge.clock.now()) if stats else "no queues",
    )


@command(app, "show")
async def show(session: Session, queue: QueueName) -> None:
    """Show one queue: its jobs by numbers, and its settings."""
    async with session.open() as client:
        stats = await _stats(client, queue)
    _tell(session, stats)


@command(app, "set")
async def set_queue(session: Session, queue: QueueName, changes: Changes) -> None:
    """Change how a queue behaves; what is not named stays."""
    await _change(session, queue, patch(changes))


@command(app, "pause")
async def pause(session: Session, queue: QueueName) -> None:
    """Hand out no more jobs of this queue; what runs goes on."""
    await _change(session, queue, {"paused": True})


@command(app, "resume")
async def resume(session: Session, queue: QueueName) -> None:
    """Hand out the jobs of this queue again."""
    await _change(session, queue, {"paused": False})


async def _change(session: Session, queue: str, changes: dict[str, Any]) -> None:
    async with session.open() as client:
        await client.set_queue(queue, **changes)
        stats = await _stats(client, queue)
    _tell(session, stats)


async def _stats(client: Client, queue: str) -> QueueStats:
    found = await client.stats(queue)
    if not found:
        raise NotFound("there is no such queue: nobody has used or set it", queue=queue)
    return found[0]


def _tell(session: Session, stats: QueueStats) -> None:
    session.tell(view.queue(stats), *queue_screens.one(stats, session.edge.clock.now()))


def patch(changes: list[str]) -> dict[str, Any]:
    """The changes as a merge patch, each value of its setting's type."""
    made: dict[str, Any] = {}
    for change in changes:
        key, found, text = change.partition("=")
        if not found:
            raise Usage(f"a change is KEY=VALUE, not {change[:80]!r}")
        if key not in _TYPES:
            raise Invalid(f"there is no such setting; known are: {', '.join(_TYPES)}", key=repr(key)[:80])
        outer, _, inner = key.partition(".")
        if inner:
            made.setdefault(outer, {})[inner] = _value(key, text)
        else:
            made[outer] = _value(key, text)
    return made


def _value(key: str, text: str) -> Any:
    if not text:
        return None
    try:
        return msgspec.to_builtins(msgspec.convert(text, _TYPES[key], strict=False))
    except msgspec.ValidationError as error:
        raise Invalid(f"{key} cannot be set to that ({error})", value=repr(text)[:80]) from error
