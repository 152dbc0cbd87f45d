"""enqueue: what a producer says of a job is what everybody sees of it, and a repeat makes no second one."""

from datetime import datetime, timedelta, timezone

import pytest

from penstock import Backoff, Client, Conflict, Invalid, Policy, State
from penstock.clock import uuid7
from penstock.domain.job import JobOptions
from penstock.testing import FakeClock


async def test_a_new_job_is_queued_and_has_made_no_attempt(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", {"to": "a@b.c"})
    assert job.state is State.QUEUED
    assert (job.attempt, job.rev, job.lease_no, job.requeues) == (0, 1, 0, 0)
    assert job.created_at == job.updated_at == clock.now()
    assert await queue.get(job.id) == job


async def test_what_the_producer_said_is_what_everybody_sees(queue: Client) -> None:
    backoff = Backoff(Policy.FIXED, 1.0, 2.0)
    made = await queue.enqueue(
        "mail",
        {"to": "a@b.c", "lines": [1, 2.5, None, True, "ø"]},
        kind="send",
        headers={"trace": "7"},
        priority=-3,
        idempotency_key="k",
        max_attempts=9,
        backoff=backoff,
    )
    job = await queue.get(made.id)
    assert (job.tenant, job.queue, job.kind) == ("default", "mail", "send")
    assert job.payload == {"to": "a@b.c", "lines": [1, 2.5, None, True, "ø"]}
    assert (job.content_type, dict(job.headers), job.priority) == ("application/json", {"trace": "7"}, -3)
    assert (job.idempotency_key, job.max_attempts, job.backoff) == ("k", 9, backoff)


async def test_what_the_producer_does_to_its_headers_later_changes_no_job(queue: Client) -> None:
    headers = {"trace": "7"}
    made = await queue.enqueue("mail", headers=headers)
    headers["trace"] = "8"
    assert dict((await queue.get(made.id)).headers) == {"trace": "7"}


async def test_a_jobs_kind_is_its_queues_name_by_default(queue: Client) -> None:
    assert (await queue.enqueue("mail")).kind == "mail"


@pytest.mark.parametrize("payload", [None, 0, "", [], {"a": {"b": [1]}}, 1.5, True])
async def test_a_json_payload_comes_back_as_it_was(queue: Client, payload: object) -> None:
    job = await queue.enqueue("mail", payload)
    assert (await queue.get(job.id)).payload == payload


@pytest.mark.parametrize(
    ("options", "content_type"),
    [({}, "application/octet-stream"), ({"content_type": "image/png"}, "image/png")],
)
async def test_a_bytes_payload_comes_back_byte_for_byte(queue: Client, options: JobOptions, content_type: str) -> None:
    data = bytes(range(256))
    await queue.enqueue("mail", data, **options)
    [lease] = await queue.lease("mail")
    assert (lease.job.payload, lease.job.content_type) == (data, content_type)


async def test_a_value_that_is_no_bytes_must_be_json(queue: Client) -> None:
    with pytest.raises(Invalid, match="must be bytes"):
        await queue.enqueue("mail", {"a": 1}, content_type="image/png")


async def test_max_attempts_is_the_jobs_own_or_its_queues(queue: Client) -> None:
    assert (await queue.enqueue("mail")).max_attempts == 5
    await queue.set_queue("mail", max_attempts=7)
    assert (await queue.enqueue("mail")).max_attempts == 7
    assert (await queue.enqueue("mail", max_attempts=2)).max_attempts == 2


async def test_a_delayed_job_is_due_that_much_later(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", delay_s=60)
    assert job.run_at == clock.now() + timedelta(seconds=60)


async def test_a_run_at_is_honoured_in_any_time_zone(queue: Client, clock: FakeClock) -> None:
    here = timezone(timedelta(hours=2))
    await queue.enqueue("mail", run_at=clock.now().astimezone(here) + timedelta(seconds=60))
    assert await queue.lease("mail") == []
    clock.advance(60)
    assert len(await queue.lease("mail")) == 1


async def test_a_job_is_put_off_by_a_year_at_most_however_that_is_said(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", run_at=clock.now() + timedelta(days=366))
    before = await queue.snapshot()
    with pytest.raises(Invalid, match="run_at"):
        await queue.enqueue("mail", run_at=clock.now() + timedelta(days=366, seconds=1))
    with pytest.raises(Invalid, match="run_at"):
        await queue.update(made.id, run_at=clock.now() + timedelta(days=366, seconds=1))
    assert await queue.snapshot() == before


async def test_a_run_at_in_the_past_is_ready_now(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", run_at=clock.now() - timedelta(days=1))
    assert job.run_at is None
    assert len(await queue.lease("mail")) == 1


async def test_a_naive_time_is_refused(queue: Client) -> None:
    with pytest.raises(Invalid, match="no time zone"):
        await queue.enqueue("mail", run_at=datetime(2031, 1, 1))  # noqa: DTZ001 the mistake under test
    assert await queue.list() == []


async def test_run_at_and_delay_together_are_refused(queue: Client, clock: FakeClock) -> None:
    with pytest.raises(Invalid, match="not both"):
        await queue.enqueue("mail", run_at=clock.now(), delay_s=1)
    assert await queue.list() == []


async def test_a_job_has_the_id_that_the_caller_made(queue: Client, clock: FakeClock) -> None:
    made = clock.job_id()
    assert (await queue.enqueue("mail", id=made)).id == made


def _id_made(clock: FakeClock, *, ago_s: float) -> str:
    return uuid7(int((clock.now().timestamp() - ago_s) * 1000), 0, 1)


@pytest.mark.parametrize("ago_s", [600, 0, -60])
async def test_an_id_may_be_ten_minutes_old_or_a_minute_early(queue: Client, clock: FakeClock, ago_s: float) -> None:
    made = _id_made(clock, ago_s=ago_s)
    assert (await queue.enqueue("mail", id=made)).id == made


@pytest.mark.parametrize("ago_s", [600.001, 86_400, -60.001, -86_400])
async def test_an_unknown_id_whose_time_is_far_off_is_refused(queue: Client, clock: FakeClock, ago_s: float) -> None:
    with pytest.raises(Invalid, match="bad_id"):
        await queue.enqueue("mail", id=_id_made(clock, ago_s=ago_s))
    assert await queue.list() == []


async def test_a_known_id_is_a_repeat_however_old_it_is(queue: Client, clock: FakeClock) -> None:
    first = await queue.enqueue("mail", 1)
    clock.advance(86_400)
    assert await queue.enqueue("mail", 1, id=first.id) == first


async def test_the_same_id_with_the_same_body_is_one_job(queue: Client) -> None:
    first = await queue.enqueue("mail", 1, kind="send")
    before = await queue.snapshot()
    again = await queue.enqueue("mail", 1, kind="send", id=first.id, priority=5, delay_s=9, headers={"a": "b"})
    assert again == first
    assert await queue.snapshot() == before


async def test_a_repeat_is_answered_with_the_job_as_it_is_now(queue: Client) -> None:
    first = await queue.enqueue("mail", 1)
    [lease] = await queue.lease("mail")
    assert (await queue.enqueue("mail", 1, id=first.id)).state is State.LEASED
    await queue.ack(lease)
    assert (await queue.enqueue("mail", 1, id=first.id)).state is State.SUCCEEDED
    assert await queue.lease("mail") == []


@pytest.mark.parametrize(
    ("name", "payload", "kind", "key"),
    [("mail", 2, None, None), ("sms", 1, "mail", None), ("mail", 1, "send", None), ("mail", 1, None, "k")],
    ids=["payload", "queue", "kind", "key"],
)
async def test_the_same_id_with_another_body_or_key_is_refused_and_changes_nothing(
    queue: Client, name: str, payload: int, kind: str | None, key: str | None
) -> None:
    first = await queue.enqueue("mail", 1)
    before = await queue.snapshot()
    with pytest.raises(Conflict) as refused:
        await queue.enqueue(name, payload, kind=kind, idempotency_key=key, id=first.id)
    assert refused.value.facts["job_id"] == first.id
    assert await queue.snapshot() == before


async def test_the_history_names_who_enqueued(queue: Client) -> None:
    job = await queue.acting(actor="ann").enqueue("mail")
    [entry] = await queue.history(job.id)
    assert entry.event.actor == "ann"
