"""The edge: every command and question is checked here once, before anything is decided."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from penstock.domain import limits
from penstock.domain.commands import (
    Ack,
    Age,
    Cancel,
    Command,
    DeleteSetting,
    Enqueue,
    Expire,
    Heartbeat,
    Lapse,
    LeaseJobs,
    Nack,
    Purge,
    PutSetting,
    Release,
    Requeue,
    SettingKind,
    Sweep,
    Update,
)
from penstock.domain.job import BYTES, JSON, NewJob, Output, Reason, State, Usage, well_formed
from penstock.domain.queries import Everything, Get, History, ListJobs, Query, Settings, Stats
from penstock.domain.settings import check_backoff
from penstock.errors import Invalid

# What a worker may give as the cause of a failed attempt; the others are the queue's own to find.
WORKER_REASONS: Final = frozenset(
    {
        Reason.NOT_RETRYABLE,
        Reason.CRASHED,
        Reason.TIMED_OUT,
        Reason.OUT_OF_MEMORY,
        Reason.BAD_PAYLOAD,
        Reason.NO_VERDICT,
        Reason.PARENT_FAILED,
    }
)

_MOST_TOKEN: Final = 256


def check(command: Command) -> None:
    """Refuse a command that breaks a limit, with an Invalid that says which."""
    try:
        if command.tenant not in limits.GOOD_NAMES:
            limits.name("tenant", command.tenant)
        if command.actor is not None:
            limits.text("actor", command.actor, least=1, most=256)
        if command.call_id is not None:
            limits.text("call_id", command.call_id, least=1, most=256)
        _COMMANDS[type(command)](command)
    except (AttributeError, TypeError) as error:
        raise Invalid(f"a field is of the wrong type ({error})") from error


def check_query(query: Query) -> None:
    """Refuse a question that breaks a limit."""
    try:
        limits.name("tenant", query.tenant)
        _QUERIES[type(query)](query)
    except (AttributeError, TypeError) as error:
        raise Invalid(f"a field is of the wrong type ({error})") from error


def new_job(new: NewJob) -> None:
    """Check one job to be."""
    if new.queue not in limits.GOOD_NAMES:
        limits.name("queue", new.queue)
    if new.kind is not None:
        limits.name("kind", new.kind)
    limits.job_id(new.id)
    if new.content_type != BYTES or len(new.payload) > limits.MAX_PAYLOAD_BYTES:
        _payload(new.payload, new.content_type)
    if new.priority or type(new.priority) is not int:
        limits.whole("priority", new.priority, -limits.MAX_PRIORITY - 1, limits.MAX_PRIORITY)
    if new.headers:
        limits.headers(new.headers)
    if new.idempotency_key is not None:
        limits.text("idempotency_key", new.idempotency_key, least=1, most=limits.MAX_KEY_CHARS)
    if new.max_attempts is not None:
        limits.whole("max_attempts", new.max_attempts, 1, limits.MAX_ATTEMPTS)
    if new.backoff is not None:
        check_backoff(new.backoff)
    if new.run_at is not None or new.delay_s is not None or new.deadline_s is not None:
        _when(new)


def _payload(payload: bytes, content_type: str) -> None:
    if len(payload) > limits.MAX_PAYLOAD_BYTES:
        raise Invalid(
            "the payload is too large; store the data elsewhere and send where it is",
            bytes=len(payload),
            most=limits.MAX_PAYLOAD_BYTES,
        )
    if content_type == JSON:
        limits.json("payload", payload)
    elif content_type != BYTES:
        limits.text("content_type", content_type, least=1, most=256)


def _when(new: NewJob) -> None:
    if new.run_at is not None:
        limits.time("run_at", new.run_at)
        if new.delay_s is not None:
            raise Invalid("give run_at or delay_s, not both")
    _delay("delay_s", new.delay_s)
    _delay("deadline_s", new.deadline_s)


def _delay(what: str, value: float | None) -> None:
    if value is not None:
        limits.between(what, value, 0, limits.MAX_DELAY_S)


def _enqueue(command: Enqueue) -> None:
    if len(command.jobs) != 1:
        _some("jobs", command.jobs, limits.MAX_ENQUEUE)
    for new in command.jobs:
        new_job(new)


def _lease(command: LeaseJobs) -> None:
    if len(command.queues) != 1:
        _some("queues", command.queues, limits.MAX_QUEUES)
    for queue in command.queues:
        if queue not in limits.GOOD_NAMES:
            limits.name("queue", queue)
    if command.kinds is not None:
        _some("kinds", command.kinds, limits.MAX_KINDS)
        for kind in command.kinds:
            limits.name("kind", kind)
    limits.request_id(command.request_id)
    if command.limit != 1 or type(command.limit) is not int:
        limits.whole("limit", command.limit, 1, limits.MAX_LEASES)
    limits.between("lease_s", command.lease_s, 1, limits.MAX_LEASE_S)
    if command.wait_s:
        limits.between("wait_s", command.wait_s, 0, limits.MAX_WAIT_S)
    if command.worker:
        limits.text("worker", command.worker, most=256)


def _heartbeat(command: Heartbeat) -> None:
    _some("beats", command.beats, limits.MAX_BEATS)
    limits.between("ride_s", command.ride_s, 0, limits.MAX_LEASE_S)
    for beat in command.beats:
        _held(beat.job_id, beat.token)
        if beat.progress is not None:
            limits.progress(beat.progress)


def _ack(command: Ack) -> None:
    _held(command.job_id, command.token)
    if command.result is not None:
        if len(command.result) > limits.MAX_RESULT_BYTES:
            raise Invalid(
                "the result is too large; store the data elsewhere and return where it is",
                bytes=len(command.result),
                most=limits.MAX_RESULT_BYTES,
            )
        limits.json("result", command.result)
    if command.then:
        _some("follow-up jobs", command.then, limits.MAX_ENQUEUE)
        for new in command.then:
            new_job(new)
    if command.ran_s is not None or command.usage is not None or command.output is not None:
        _measured(command.ran_s, command.usage, command.output)


def _nack(command: Nack) -> None:
    _held(command.job_id, command.token)
    limits.text("error", command.error, most=limits.MAX_ERROR_CHARS + 64)
    if command.reason is not None and command.reason not in WORKER_REASONS:
        raise Invalid(
            "this reason is not a worker's to give", reason=command.reason, known=", ".join(sorted(WORKER_REASONS))
        )
    _delay("delay_s", command.delay_s)
    _measured(command.ran_s, command.usage, command.output)


def _release(command: Release) -> None:
    _held(command.job_id, command.token)
    _delay("delay_s", command.delay_s)
    _measured(command.ran_s, None, None)


def _measured(ran_s: float | None, usage: Usage | None, output: Output | None) -> None:
    if ran_s is not None:
        limits.between("ran_s", ran_s, 0, 10 * limits.MAX_DELAY_S)
    if usage is not None:
        for name in ("cpu_s", "memory_bytes", "exit_code", "signal"):
            value = getattr(usage, name)
            if value is not None:
                limits.between(name, value, -(2**31), 2**53)
    if output is not None:
        limits.text("stdout", output.stdout, most=limits.MAX_OUTPUT_CHARS + 64)
        limits.text("stderr", output.stderr, most=limits.MAX_OUTPUT_CHARS + 64)


def _held(job_id: str, token: str) -> None:
    limits.job_id(job_id)
    if not 1 <= len(token) <= _MOST_TOKEN:
        raise Invalid("a token is what a lease gave, unchanged")


def _life(command: Cancel | Requeue | Update) -> None:
    limits.job_id(command.job_id)
    limits.whole("requeues", command.requeues, 0, 2**31)


def _requeue(command: Requeue) -> None:
    _life(command)
    _delay("delay_s", command.delay_s)
    if command.payload is not None:
        _payload(command.payload, command.content_type or BYTES)
        if command.content_type == JSON:
            well_formed(command.payload)
    elif command.content_type is not None:
        raise Invalid("a content type changes with the payload only: give both", content_type=command.content_type)


def _update(command: Update) -> None:
    _life(command)
    if command.run_at is not None:
        limits.time("run_at", command.run_at)
        if command.now:
            raise Invalid("give run_at or now, not both")
    if command.priority is not None:
        limits.whole("priority", command.priority, -limits.MAX_PRIORITY - 1, limits.MAX_PRIORITY)
    if command.max_attempts is not None:
        limits.whole("max_attempts", command.max_attempts, 1, limits.MAX_ATTEMPTS)


def _purge(command: Purge) -> None:
    if command.finished_by is None:
        _some("job_ids", command.job_ids, limits.MAX_PURGE)
        for job_id in command.job_ids:
            limits.job_id(job_id)
        return
    limits.time("finished_by", command.finished_by)
    limits.name("queue", command.queue or "")
    if command.job_ids or not isinstance(command.state, State) or not command.state.finished:
        raise Invalid("purge either job ids, or one queue's jobs of one finished state", state=command.state)


def _setting(command: PutSetting | DeleteSetting) -> None:
    _one_of("kind", command.kind, SettingKind)
    limits.name("name", command.name)
    if isinstance(command, PutSetting):
        try:
            size = len(msgspec.json.encode(dict(command.patch)))
        except (TypeError, ValueError) as error:
            raise Invalid(f"a setting must be a JSON object ({error})") from error
        if size > limits.MAX_SETTING_BYTES:
            raise Invalid("the setting is too large", bytes=size, most=limits.MAX_SETTING_BYTES)


def _list(query: ListJobs) -> None:
    if query.queue is not None:
        limits.name("queue", query.queue)
    if query.kind is not None:
        limits.name("kind", query.kind)
    if query.state is not None:
        _one_of("state", query.state, State)
    if query.reason is not None:
        _one_of("reason", query.reason, Reason)
    limits.whole("limit", query.limit, 1, limits.MAX_PAGE)
    if query.cursor is not None:
        limits.job_id(query.cursor)


def _get(query: Get) -> None:
    limits.job_id(query.job_id)
    limits.between("wait_s", query.wait_s, 0, limits.MAX_WAIT_S)


def _queue(query: Stats) -> None:
    if query.queue is not None:
        limits.name("queue", query.queue)


def _settings(query: Settings) -> None:
    _one_of("kind", query.kind, SettingKind)
    if query.name is not None:
        limits.name("name", query.name)


def _one_of(what: str, value: object, kinds: type[State | Reason | SettingKind]) -> None:
    if not isinstance(value, kinds):
        raise Invalid(f"unknown {what}; known are: {', '.join(kinds)}", **{what: repr(value)[:80]})


def _some(what: str, items: tuple[object, ...], most: int) -> None:
    if not 1 <= len(items) <= most:
        raise Invalid(f"{what} must be 1 to {most} in one call", **{what: len(items)})


_COMMANDS: Final[dict[type[Command], Callable[[Any], None]]] = {
    Heartbeat: _heartbeat,
    Ack: _ack,
    Nack: _nack,
    Release: _release,
    Cancel: _life,
    Expire: lambda command: limits.job_id(command.job_id),
    Age: lambda command: limits.job_id(command.job_id),
    Lapse: lambda command: limits.job_id(command.job_id),
    Sweep: lambda _: None,
    Requeue: _requeue,
    Update: _update,
    Purge: _purge,
    PutSetting: _setting,
    DeleteSetting: _setting,
    Enqueue: _enqueue,
    LeaseJobs: _lease,
}
_QUERIES: Final[dict[type[Query], Callable[[Any], None]]] = {
    Get: _get,
    ListJobs: _list,
    Stats: _queue,
    History: lambda query: limits.job_id(query.job_id),
    Settings: _settings,
    Everything: lambda _: None,
}
