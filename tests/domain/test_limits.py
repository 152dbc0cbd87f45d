"""Every limit: what is just allowed, and what is just not. The numbers stand here a second time, on purpose."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.domain import limits
from penstock.domain.check import check, check_query
from penstock.domain.commands import (
    Ack,
    Beat,
    Cancel,
    Command,
    Enqueue,
    Heartbeat,
    LeaseJobs,
    Nack,
    Purge,
    PutSetting,
    Release,
    Requeue,
    SettingKind,
    Update,
)
from penstock.domain.job import NewJob, Output, Usage
from penstock.domain.queries import Get, ListJobs, Query
from penstock.errors import Invalid

JOB = "01b8dac5-b400-7000-8000-000000000000"
CALL = "a-request-id-of-16"
YEAR_S = 366 * 86_400


def _new(**fields: Any) -> Enqueue:
    return Enqueue(jobs=(NewJob(**{"queue": "mail", "id": JOB, **fields}),))


def _lease(**fields: Any) -> LeaseJobs:
    return LeaseJobs(**{"queues": ("mail",), "request_id": CALL, **fields})


def _ack(**fields: Any) -> Ack:
    return Ack(job_id=JOB, token="t.0", **fields)


def _nack(**fields: Any) -> Nack:
    return Nack(job_id=JOB, token="t.0", **fields)


def _beats(count: int) -> Heartbeat:
    return Heartbeat(beats=tuple(Beat(JOB, "t.0") for _ in range(count)))


def _deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _headers(size: int) -> dict[str, str]:
    return {"ab": "x" * (size - 4), "c": "d"}


# By name: how to make the command, and the last value that is allowed with the first that is not.
LIMITS: dict[str, tuple[Callable[[Any], Command], Any, Any]] = {
    "a name": (lambda name: _new(queue=name), "x" * 128, "x" * 129),
    "the start of a name": (lambda name: _new(queue=name), "9.", ".9"),
    "the letters of a name": (lambda name: _new(kind=name), "aZ0._:-", "a/b"),
    "headers": (lambda size: _new(headers=_headers(size)), 16 * 1024, 16 * 1024 + 1),
    "a payload": (lambda size: _new(payload=b"x" * size), limits.MAX_PAYLOAD_BYTES, limits.MAX_PAYLOAD_BYTES + 1),
    "the depth of a payload": (lambda depth: _new(payload=_deep(depth), content_type="application/json"), 64, 65),
    "priority, last": (lambda priority: _new(priority=priority), 32_767, 32_768),
    "priority, first": (lambda priority: _new(priority=priority), -32_768, -32_769),
    "an idempotency key": (lambda size: _new(idempotency_key="ø" * size), 512, 513),
    "an idempotency key, empty": (lambda key: _new(idempotency_key=key), "k", ""),
    "max_attempts": (lambda count: _new(max_attempts=count), 100, 101),
    "max_attempts, fewest": (lambda count: _new(max_attempts=count), 1, 0),
    "delay_s": (lambda seconds: _new(delay_s=seconds), YEAR_S, YEAR_S + 1),
    "delay_s, least": (lambda seconds: _new(delay_s=seconds), 0, -0.001),
    "deadline_s": (lambda seconds: _new(deadline_s=seconds), YEAR_S, YEAR_S + 1),
    "content_type": (lambda size: _new(payload=b"", content_type="x" * size), 256, 257),
    "jobs of one call": (lambda count: Enqueue(jobs=(NewJob("mail", id=JOB),) * count), 1_000, 1_001),
    "actor": (lambda size: Cancel(job_id=JOB, requeues=0, actor="x" * size), 256, 257),
    "call_id": (lambda size: Cancel(job_id=JOB, requeues=0, call_id="x" * size), 256, 257),
    "queues of a lease": (lambda count: _lease(queues=("mail",) * count), 100, 101),
    "kinds of a lease": (lambda count: _lease(kinds=("mail",) * count), 1_000, 1_001),
    "limit": (lambda count: _lease(limit=count), 1_000, 1_001),
    "limit, least": (lambda count: _lease(limit=count), 1, 0),
    "lease_s": (lambda seconds: _lease(lease_s=seconds), 86_400, 86_400.1),
    "lease_s, least": (lambda seconds: _lease(lease_s=seconds), 1, 0.999),
    "wait_s": (lambda seconds: _lease(wait_s=seconds), 60, 60.1),
    "worker": (lambda size: _lease(worker="x" * size), 256, 257),
    "a request id": (lambda size: _lease(request_id="x" * size), 128, 129),
    "a request id, least": (lambda size: _lease(request_id="x" * size), 16, 15),
    "beats": (_beats, 10_000, 10_001),
    "progress": (lambda share: Heartbeat(beats=(Beat(JOB, "t.0", share),)), 1, 1.001),
    "progress, least": (lambda share: Heartbeat(beats=(Beat(JOB, "t.0", share),)), 0, -0.001),
    "a token": (lambda size: Release(job_id=JOB, token="x" * size), 256, 257),
    "a result": (lambda size: _ack(result=b"x" * size), 1024 * 1024, 1024 * 1024 + 1),
    "the depth of a result": (lambda depth: _ack(result=_deep(depth)), 64, 65),
    "follow-up jobs": (lambda count: _ack(then=(NewJob("mail", id=JOB),) * count), 1_000, 1_001),
    "ran_s": (lambda seconds: _ack(ran_s=seconds), 10 * YEAR_S, 10 * YEAR_S + 1),
    "memory": (lambda size: _ack(usage=Usage(memory_bytes=size)), 2**53, 2**53 + 1),
    "output": (lambda size: _ack(output=Output(stdout="x" * size)), 8 * 1024 + 64, 8 * 1024 + 65),
    "an error": (lambda size: _nack(error="x" * size), 8 * 1024 + 64, 8 * 1024 + 65),
    "a nack's delay_s": (lambda seconds: _nack(delay_s=seconds), YEAR_S, YEAR_S + 1),
    "a release's delay_s": (lambda s: Release(job_id=JOB, token="t.0", delay_s=s), YEAR_S, YEAR_S + 1),
    "a requeue's payload": (
        lambda size: Requeue(job_id=JOB, requeues=0, payload=b"x" * size),
        limits.MAX_PAYLOAD_BYTES,
        limits.MAX_PAYLOAD_BYTES + 1,
    ),
    "an update's priority": (lambda n: Update(job_id=JOB, requeues=0, priority=n), -32_768, -32_769),
    "an update's max_attempts": (lambda n: Update(job_id=JOB, requeues=0, max_attempts=n), 100, 101),
    "jobs of a purge": (lambda count: Purge(job_ids=(JOB,) * count), 1_000, 1_001),
    "a setting": (
        lambda size: PutSetting(kind=SettingKind.TENANT, name="t", patch={"a": "x" * (size - 8)}),
        16 * 1024,
        16 * 1024 + 1,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_within_the_limit_is_taken_and_what_is_above_is_refused(name: str) -> None:
    make, good, bad = LIMITS[name]
    check(make(good))
    command = make(bad)
    with pytest.raises(Invalid):
        check(command)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (Get(job_id=JOB, wait_s=60), Get(job_id=JOB, wait_s=60.1)),
        (ListJobs(limit=1_000), ListJobs(limit=1_001)),
        (ListJobs(limit=1), ListJobs(limit=0)),
        (ListJobs(queue="x" * 128), ListJobs(queue="x" * 129)),
        (ListJobs(cursor=JOB), ListJobs(cursor=JOB[:-1])),
        (ListJobs(tenant="x" * 128), ListJobs(tenant="x" * 129)),
    ],
)
def test_so_it_is_with_questions(good: Query, bad: Query) -> None:
    check_query(good)
    with pytest.raises(Invalid):
        check_query(bad)


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (b'["[[[[", "\\"[[", {"a": ["]"]}]', 3),
        (b"[[],[],[[]]]", 3),
        (b'"[[[["', 0),
        (b'{"a\\\\": [1]}', 2),
    ],
)
def test_brackets_within_texts_are_no_depth(text: bytes, depth: int) -> None:
    assert limits._depth(text) == depth


def test_many_brackets_side_by_side_are_not_deep() -> None:
    limits.json("payload", b"[" + b"[]," * 1_000 + b"[]]")


@pytest.mark.parametrize(
    ("text", "cut"),
    [("abc", "abc"), ("abcd", "abc... [1 characters cut]"), ("a\0b", "a\N{REPLACEMENT CHARACTER}b"), ("\ud800", "?")],
)
def test_a_text_is_cut_with_a_mark_and_made_storable(text: str, cut: str) -> None:
    assert limits.cut("error", text, 3) == cut


MADE_S = datetime(2030, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("now_s", [MADE_S - 60, MADE_S, MADE_S + 600])
def test_an_id_is_fresh_from_a_minute_before_to_ten_minutes_after_its_time(now_s: float) -> None:
    limits.fresh_id(JOB, now_s)


@pytest.mark.parametrize("now_s", [MADE_S - 60.001, MADE_S + 600.001, 0.0])
def test_at_any_other_time_it_is_not(now_s: float) -> None:
    with pytest.raises(Invalid, match="bad_id"):
        limits.fresh_id(JOB, now_s)


def test_the_good_names_that_are_remembered_are_limited() -> None:
    for number in range(10_000):
        limits.name("queue", f"queue-{number}")
    assert len(limits.GOOD_NAMES) <= 4_096
    with pytest.raises(Invalid):
        limits.name("queue", "queue/1")
    assert "queue/1" not in limits.GOOD_NAMES
