"""Idempotency keys (G3, rules 5 and 18): one key of a tenant is one job, for 24 h and as long as the job is there."""

import asyncio

import pytest

from penstock import Client, Conflict, NewJob, State
from penstock.testing import FakeClock

HOUR_S = 3600.0


async def test_the_same_key_with_the_same_body_is_the_first_job(queue: Client) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    before = await queue.snapshot()
    assert await queue.enqueue("mail", 1, idempotency_key="k") == first
    assert await queue.enqueue("mail", 1, idempotency_key="k", delay_s=5, priority=3, headers={"a": "b"}) == first
    assert await queue.snapshot() == before


async def test_many_at_once_with_one_key_get_one_job(queue: Client) -> None:
    jobs = await asyncio.gather(*(queue.enqueue("mail", 1, idempotency_key="k") for _ in range(20)))
    assert len({job.id for job in jobs}) == 1
    assert len(await queue.list()) == 1


@pytest.mark.parametrize(("name", "payload", "kind"), [("mail", 2, None), ("sms", 1, "mail"), ("mail", 1, "send")])
async def test_the_same_key_with_another_body_is_refused_and_changes_nothing(
    queue: Client, name: str, payload: int, kind: str | None
) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    before = await queue.snapshot()
    with pytest.raises(Conflict, match="idempotency key") as refused:
        await queue.enqueue(name, payload, kind=kind, idempotency_key="k")
    assert refused.value.facts["job_id"] == first.id
    assert await queue.snapshot() == before


async def test_a_key_is_its_tenants_own(queue: Client, other: Client) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    second = await other.enqueue("mail", 2, idempotency_key="k")
    assert first.id != second.id


@pytest.mark.parametrize("key", [None, "another"])
async def test_the_id_of_a_keyed_job_is_known_only_with_its_key(queue: Client, key: str | None) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    with pytest.raises(Conflict):
        await queue.enqueue("mail", 1, id=first.id, idempotency_key=key)
    assert await queue.enqueue("mail", 1, id=first.id, idempotency_key="k") == first


async def test_a_key_names_its_job_after_the_job_has_finished(queue: Client) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    [lease] = await queue.lease("mail")
    await queue.ack(lease)
    again = await queue.enqueue("mail", 1, idempotency_key="k")
    assert (again.id, again.state) == (first.id, State.SUCCEEDED)


async def test_a_key_is_kept_for_a_day_though_jobs_are_kept_for_less(queue: Client, clock: FakeClock) -> None:
    await queue.set_queue("mail", retain_succeeded_s=900)
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    [lease] = await queue.lease("mail")
    await queue.ack(lease)
    clock.advance(24 * HOUR_S - 1)
    with pytest.raises(Conflict, match="too young"):
        await queue.purge(first.id)
    assert await queue.purge_queue("mail", state="succeeded", older_than_s=900) == 0
    assert (await queue.enqueue("mail", 1, idempotency_key="k")).id == first.id


async def test_a_key_is_free_once_its_job_is_gone(queue: Client, clock: FakeClock) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    await queue.cancel(first.id)
    clock.advance(24 * HOUR_S)
    assert await queue.purge(first.id) == 1
    second = await queue.enqueue("mail", 2, idempotency_key="k")
    assert second.id != first.id


async def test_a_key_is_kept_as_long_as_its_job(queue: Client, clock: FakeClock) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    clock.advance(30 * 24 * HOUR_S)
    assert (await queue.enqueue("mail", 1, idempotency_key="k")).id == first.id


async def test_a_requeue_with_another_payload_leaves_the_key_to_the_first_payload(queue: Client) -> None:
    first = await queue.enqueue("mail", 1, idempotency_key="k")
    await queue.cancel(first.id)
    await queue.requeue(first.id, payload=2)
    again = await queue.enqueue("mail", 1, idempotency_key="k")
    assert (again.id, again.payload) == (first.id, 2)
    with pytest.raises(Conflict):
        await queue.enqueue("mail", 2, idempotency_key="k")


async def test_an_id_too_is_left_to_the_first_payload(queue: Client) -> None:
    first = await queue.enqueue("mail", 1)
    await queue.cancel(first.id)
    await queue.requeue(first.id, payload=2)
    await queue.cancel(first.id)
    await queue.requeue(first.id, payload=3)
    assert (await queue.enqueue("mail", 1, id=first.id)).payload == 3
    with pytest.raises(Conflict):
        await queue.enqueue("mail", 2, id=first.id)


async def test_follow_ups_with_a_key_are_made_once(queue: Client) -> None:
    await queue.enqueue_many([NewJob("mail", 1), NewJob("mail", 2)])
    leases = await queue.lease("mail", limit=2)
    for lease in leases:
        await queue.ack(lease, then=[NewJob("report", 1, idempotency_key="k")])
    assert len(await queue.list(queue="report")) == 1
