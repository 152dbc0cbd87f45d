"""Jobs on a screen."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.highlighter import JSONHighlighter
from rich.text import Text

from penstock.cli import screens
from penstock.cli.text import ago, clock_time, one_line, safe, short_time, span
from penstock.domain import view
from penstock.domain.events import Entry
from penstock.domain.job import JSON, Job, State
from penstock.domain.queries import Attempt

# Below this width a job is told in fewer columns, so that its id stays whole.
_MIDDLE: Final = 80
_MOST_SHOWN: Final = 4096
# In every line of a history, or said by its other columns or above it.
_KNOWN: Final = frozenset(
    {"seq", "line", "at", "event", "actor", "tenant", "id", "queue", "kind", "call_id", "index", "error_fp", "before"}
    | {"payload", "payload_b64", "content_type", "headers"}
)


def many(jobs: Sequence[Job], now: datetime, width: int) -> RenderableType:
    """Jobs as a table: one line each, and one more for an error where the screen is not wide."""
    table = screens.table(gap=1)
    table.add_column("ID", width=36)
    table.add_column("QUEUE", min_width=8)
    if middle := width >= _MIDDLE:
        table.add_column("KIND")
    table.add_column("STATE", no_wrap=True, min_width=9)
    for name in ("TRY", "AGE", "NEXT") if middle else ("NEXT",):
        table.add_column(name, no_wrap=True, justify="right", min_width=4)
    if wide := width >= screens.WIDE:
        table.add_column("ERROR", ratio=1)
    for job in jobs:
        error = screens.error(job.error)
        table.add_row(
            job.id if wide else screens.above(job.id, error),
            screens.cut(job.queue),
            *((screens.cut(job.kind),) if middle else ()),
            screens.state(job.state),
            *((f"{job.attempt}/{job.max_attempts}", ago(job.created_at, now)) if middle else ()),
            _next(job, now),
            *((error,) if wide else ()),
        )
    return table


def _next(job: Job, now: datetime) -> str:
    if job.state is not State.QUEUED:
        return "-"
    return "now" if job.run_at is None or job.run_at <= now else span((job.run_at - now).total_seconds())


def one(job: Job, now: datetime) -> RenderableType:
    """Everything there is to say of one job, but its payload."""
    return screens.fields(
        [
            ("id", job.id),
            ("queue", job.queue),
            ("kind", "" if job.kind == job.queue else job.kind),
            ("tenant", job.tenant),
            ("state", screens.state(job.state, job.reason)),
            ("attempt", f"{job.attempt} of {job.max_attempts}"),
            ("priority", str(job.priority) if job.priority else ""),
            ("headers", "\n".join(f"{name}: {value}" for name, value in job.headers.items())),
            ("idempotency key", job.idempotency_key or ""),
            ("backoff", f"{job.backoff.policy}, {job.backoff.base_s:g} s" if job.backoff else ""),
            *(
                (name.replace("_", " "), _when(getattr(job, name), now))
                for name in view.JOB_FIELDS
                if name[-3:] == "_at"
            ),
            ("worker", job.worker or ""),
            ("progress", f"{job.progress:.0%}" if job.progress is not None else ""),
            ("leases lost", str(job.lease_lost or "")),
            ("releases", str(job.releases or "")),
            ("requeues", str(job.requeues or "")),
            ("error", Text(safe(job.error), style="red") if job.error else ""),
            ("result", _json(job.result_bytes) if job.result_bytes is not None else ""),
        ]
    )


def _when(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    away = ago(at, now)
    return f"{clock_time(at)}  {away if away.startswith('in ') else f'{away} ago'}"


def payload(job: Job) -> RenderableType:
    """The payload: JSON laid out, text as it is, other bytes in base64."""
    data = job.payload_bytes
    title = screens.heading(f"payload  {one_line(job.content_type)}, {len(data):,} bytes")
    if job.content_type == JSON:
        return Group(title, _json(data))
    text = data.decode(errors="replace")
    return Group(title, _cut(text if text == safe(text) else b64encode(data).decode()))


def _json(data: bytes) -> Text:
    try:
        text = _cut(msgspec.json.format(data, indent=2).decode())
    except (ValueError, RecursionError):
        # A producer can call any bytes JSON.
        return _cut(data.decode(errors="replace"))
    return JSONHighlighter()(text)


def _cut(text: str) -> Text:
    cut = f"\n... {len(text) - _MOST_SHOWN:,} more characters; --json shows them" if len(text) > _MOST_SHOWN else ""
    return Text(safe(text[:_MOST_SHOWN]) + cut)


def attempts(made: Sequence[Attempt], width: int) -> RenderableType:
    """What came of every lease."""
    table = screens.table()
    for name in ("LEASE", "TRY"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("WORKER", max_width=30)
    for name in ("STARTED", "HELD", "END"):
        table.add_column(name, no_wrap=True)
    if wide := width >= screens.WIDE:
        table.add_column("ERROR", ratio=1)
    for attempt in made:
        error = screens.error(attempt.error)
        worker = attempt.worker or "-"
        table.add_row(
            str(attempt.lease_no),
            str(attempt.attempt),
            screens.cut(worker) if wide else screens.above(worker, error),
            short_time(attempt.started_at),
            span((attempt.ended_at - attempt.started_at).total_seconds()) if attempt.ended_at else "-",
            str(attempt.end),
            *((error,) if wide else ()),
        )
    return Group(screens.heading("attempts"), table)


def history(entries: Sequence[Entry]) -> RenderableType:
    """Every event of a job: when, what, by whom, and what it says."""
    table = screens.table()
    for name in ("SEQ", "AT", "EVENT", "ACTOR"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    table.add_column("WHAT", ratio=1, overflow="fold")
    for entry in entries:
        told = view.entry(entry)
        facts = (
            f"{name}={_fact(value)}"
            for name, value in told.items()
            if name not in _KNOWN and value not in (None, 0, "", False)
        )
        table.add_row(
            str(entry.seq),
            short_time(entry.at),
            told["event"],
            one_line(entry.event.actor or "-"),
            safe(" ".join(facts)),
        )
    return Group(screens.heading("history"), table)


def _fact(value: object) -> str:
    text = clock_time(value) if isinstance(value, datetime) else one_line(str(value))
    return text if len(text) <= 80 else f"{text[:80]}..."
