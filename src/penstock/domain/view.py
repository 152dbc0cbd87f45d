"""What a reader sees of jobs, attempts, events and queues: plain values, the same on every way out."""

from base64 import b64encode
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from penstock.domain.events import Enqueued, Entry, Requeued, Succeeded
from penstock.domain.job import JSON, Job, decode
from penstock.domain.queries import Attempt, QueueStats

# A list of what is shown, not of what is hidden: a new field of the store's own stays inside.
JOB_FIELDS: Final = (
    *("id", "tenant", "queue", "kind", "payload", "content_type", "headers", "priority", "state", "reason"),
    *("attempt", "rev", "lease_no", "max_attempts", "backoff", "run_at", "deadline_at", "created_at", "updated_at"),
    *("started_at", "heartbeat_at", "finished_at", "worker", "progress", "result", "error", "error_fp"),
    *("lease_lost", "releases", "requeues", "idempotency_key"),
)


def job(job: Job) -> dict[str, Any]:
    """Every field of a job, always; a payload or result that is no JSON is ``payload_b64`` or ``result_b64``."""
    seen: dict[str, Any] = {}
    for name in JOB_FIELDS:
        match name:
            case "payload":
                seen |= _data("payload", job.payload_bytes, job.content_type)
            case "result":
                seen |= _data("result", job.result_bytes, JSON)
            case "headers":
                seen["headers"] = dict(job.headers)
            case _:
                seen[name] = _plain(getattr(job, name))
    return seen


def attempt(attempt: Attempt) -> dict[str, Any]:
    """One lease of a job and what came of it."""
    return {name: _plain(value) for name, value in asdict(attempt).items()}


def entry(entry: Entry) -> dict[str, Any]:
    """One event with its place in the log. Without ``call``: what a token is checked against stays inside."""
    event = entry.event
    seen: dict[str, Any] = {"seq": entry.seq, "line": entry.line, "at": entry.at, "event": _name(event)}
    for name, value in asdict(event).items():
        if name == "call":
            continue
        if name == "payload" and isinstance(event, Enqueued | Requeued):
            seen |= _data("payload", event.payload, event.content_type)
        elif name == "result" and isinstance(event, Succeeded):
            seen |= _data("result", event.result, JSON)
        else:
            seen[name] = dict(value) if name == "headers" else _plain(value)
    return seen


def queue(stats: QueueStats) -> dict[str, Any]:
    """One queue by numbers, with all its settings."""
    settings = {name: _plain(value) for name, value in asdict(stats.settings).items()}
    return asdict(stats) | {"paused": stats.paused, "settings": settings}


def _data(name: str, data: bytes | None, content_type: str | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    if content_type == JSON:
        try:
            return {name: decode(data)}
        except (ValueError, RecursionError):
            # A producer can call any bytes JSON; a reader must still be able to look at the job.
            pass
    return {f"{name}_b64": b64encode(data).decode()}


def _plain(value: object) -> object:
    # All fields, also those at their default, which msgspec would leave out.
    return asdict(value) if isinstance(value, Struct) else value


def _name(event: Struct) -> str:
    return str(event.__struct_config__.tag)
