"""``penstock enqueue``: have one job accepted."""

import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from penstock.cli.command import command
from penstock.cli.flags import QueueName
from penstock.cli.session import Session, Usage
from penstock.cli.text import clock_time
from penstock.domain import view
from penstock.domain.job import JSON, Job, JobOptions, decode
from penstock.errors import Invalid

app = typer.Typer()

# More than any payload may have, as JSON can be written with blanks that will not be stored.
_MOST_READ: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the payload comes from, and what it is."""

    payload: Annotated[
        str | None,
        typer.Argument(help="JSON, or - to read stdin; null when left out.", metavar="PAYLOAD", show_default=False),
    ] = None
    file: Annotated[Path | None, typer.Option("--file", help="Read the payload from this file.")] = None
    content_type: Annotated[
        str, typer.Option("--content-type", help="What the payload is; anything but JSON is stored as it is.")
    ] = JSON


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is said of the job beside its queue and payload."""

    kind: Annotated[
        str | None, typer.Option("--kind", help="Which handler runs it; the queue's name when left out.")
    ] = None
    priority: Annotated[int, typer.Option("--priority", help="Smaller runs first.")] = 0
    delay_s: Annotated[float | None, typer.Option("--delay-s", help="Run it so many seconds from now.")] = None
    run_at: Annotated[
        str | None, typer.Option("--run-at", help="Run it at this time, such as 2030-01-31T09:00:00+01:00.")
    ] = None
    deadline_s: Annotated[
        float | None, typer.Option("--deadline-s", help="Dead if it is still queued so many seconds from now.")
    ] = None
    key: Annotated[str | None, typer.Option("--key", help="Idempotency key: the same key again is the same job.")] = (
        None
    )
    max_attempts: Annotated[int | None, typer.Option("--max-attempts", help="How often it may run.")] = None
    header: Annotated[list[str] | None, typer.Option("--header", help="A header as NAME=VALUE; may be repeated.")] = (
        None
    )
    id: Annotated[str | None, typer.Option("--id", help="A UUIDv7 of your own, so that you can repeat the call.")] = (
        None
    )

    def options(self) -> JobOptions:
        """The same in the words of the client."""
        return {
            "kind": self.kind,
            "priority": self.priority,
            "delay_s": self.delay_s,
            "run_at": None if self.run_at is None else parse_time("--run-at", self.run_at),
            "deadline_s": self.deadline_s,
            "idempotency_key": self.key,
            "max_attempts": self.max_attempts,
            "headers": dict(_pair(header) for header in self.header or ()),
            "id": self.id,
        }


@command(app, "enqueue")
def enqueue(session: Session, queue: QueueName, source: Source, wish: Wish) -> Coroutine[Any, Any, None]:
    """Have a job accepted: it is stored when this returns."""
    # Read before the event loop runs, which takes interrupts for itself and would not wake who reads a terminal.
    payload = read_payload(source)
    return _enqueue(session, queue, payload, {**wish.options(), "content_type": source.content_type})


async def _enqueue(session: Session, queue: str, payload: Any, options: JobOptions) -> None:
    async with session.open() as client:
        job = await client.enqueue(queue, payload, **options)
    session.tell(view.job(job), _accepted(job))
    if session.options.store == "memory://":
        session.note("memory:// lives as long as this command: the job is gone again. See penstock demo.")


def _accepted(job: Job) -> str:
    when = f", to run at {clock_time(job.run_at)}" if job.run_at else ""
    return f"{job.id} is {job.state} in {job.queue}{when}"


def read_payload(source: Source) -> Any:
    """The payload: a value if it is JSON, so that it is stored as the Python client would; else the bytes."""
    if source.file is not None:
        if source.payload is not None:
            raise Usage("give PAYLOAD or --file, not both")
        data = _file(source.file)
    elif source.payload == "-":
        data = _bounded(sys.stdin.buffer)
    elif source.payload is None:
        data = b"null" if source.content_type == JSON else b""
    else:
        data = source.payload.encode(errors="surrogateescape")
    return parse_json(data) if source.content_type == JSON else data


def parse_json(data: bytes) -> Any:
    """The value; Invalid says what to do about text that is no JSON."""
    try:
        return decode(data)
    except RecursionError as error:
        raise Invalid("the JSON of the payload is nested too deeply") from error
    except ValueError as error:
        raise Invalid(
            f"the payload is no JSON ({error}); quote text as '\"text\"', or say what it is with --content-type"
        ) from error


def parse_time(flag: str, text: str) -> datetime:
    """A time with its offset from UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(f"{flag} is no time; write it as in 2030-01-31T09:00:00+01:00", value=repr(text)[:80]) from error
    if at.utcoffset() is None:
        raise Invalid(f"{flag} has no offset from UTC; write it as in 2030-01-31T09:00:00+01:00", value=repr(text)[:80])
    return at


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return _bounded(stream)
    except OSError as error:
        raise Invalid(f"the file cannot be read ({error.strerror})", file=str(path)) from error


def _bounded(stream: BinaryIO) -> bytes:
    data = stream.read(_MOST_READ + 1)
    if len(data) > _MOST_READ:
        raise Invalid("the payload is too large; store the data elsewhere and send where it is", most=_MOST_READ)
    return data


def _pair(header: str) -> tuple[str, str]:
    name, found, value = header.partition("=")
    if not found or not name:
        raise Usage(f"a header is NAME=VALUE, not {header[:80]!r}")
    return name, value
