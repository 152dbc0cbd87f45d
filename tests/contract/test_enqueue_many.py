"""enqueue_many and depth: all of the jobs or none, and no more than a queue may hold."""

import pytest

from penstock import Busy, Client, Conflict, Invalid, NewJob, PenstockError, State
from penstock.clock import uuid7
from penstock.testing import FakeClock


async def test_the_jobs_are_answered_in_the_order_given(queue: Client) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    assert [job.payload for job in jobs] == [0, 1, 2, 3, 4]
    assert [lease.job.id for lease in await queue.lease("mail", limit=5)] == [job.id for job in jobs]


async def test_a_thousand_jobs_are_one_call(queue: Client) -> None:
    assert len(await queue.enqueue_many(NewJob("mail") for _ in range(1_000))) == 1_000
    [stats] = await queue.stats()
    assert stats.queued == 1_000


@pytest.mark.parametrize("count", [0, 1_001])
async def test_none_and_more_than_a_thousand_are_refused(queue: Client, count: int) -> None:
    with pytest.raises(Invalid, match="1 to 1000"):
        await queue.enqueue_many(NewJob("mail") for _ in range(count))
    assert await queue.list() == []


@pytest.mark.parametrize(
    ("last", "refusal"),
    [
        (NewJob("a/b"), Invalid),
        (NewJob("mail", 2, idempotency_key="taken"), Conflict),
        (NewJob("mail", id=uuid7(0, 0, 0)), Invalid),
        (NewJob("full", 2), Busy),
    ],
    ids=["invalid", "conflict", "bad id", "full"],
)
async def test_one_refused_job_refuses_them_all(queue: Client, last: NewJob, refusal: type[PenstockError]) -> None:
    await queue.enqueue("mail", 1, idempotency_key="taken")
    await queue.set_queue("full", max_depth=1)
    await queue.enqueue("full", 1)
    before = await queue.snapshot()
    with pytest.raises(refusal):
        await queue.enqueue_many([NewJob("mail", 1), NewJob("sms", 1), last])
    assert await queue.snapshot() == before


async def test_one_id_or_key_twice_in_a_call_is_one_job(queue: Client, clock: FakeClock) -> None:
    same = clock.job_id()
    jobs = await queue.enqueue_many(
        [
            NewJob("mail", 1, id=same),
            NewJob("mail", 1, id=same),
            NewJob("mail", 2, idempotency_key="k"),
            NewJob("mail", 2, idempotency_key="k"),
        ]
    )
    assert [job.id for job in jobs[:2]] == [same, same]
    assert jobs[2] == jobs[3]
    assert len(await queue.list()) == 2


@pytest.mark.parametrize("name", ["id", "key"])
async def test_one_id_or_key_for_two_bodies_in_a_call_is_refused(queue: Client, clock: FakeClock, name: str) -> None:
    made = clock.job_id()
    twins = [
        NewJob("mail", payload, id=made) if name == "id" else NewJob("mail", payload, idempotency_key="k")
        for payload in (1, 2)
    ]
    with pytest.raises(Conflict):
        await queue.enqueue_many([NewJob("mail", 0), *twins])
    assert await queue.list() == []


async def test_known_jobs_and_new_ones_go_together(queue: Client) -> None:
    first = await queue.enqueue("mail", 1)
    jobs = await queue.enqueue_many([NewJob("mail", 1, id=first.id), NewJob("mail", 2)])
    assert jobs[0] == first
    assert len(await queue.list()) == 2


async def test_a_full_queue_refuses_until_a_job_has_finished(queue: Client) -> None:
    await queue.set_queue("mail", max_depth=2)
    await queue.enqueue_many([NewJob("mail", 1), NewJob("mail", 2)])
    [lease] = await queue.lease("mail")
    with pytest.raises(Busy) as refused:
        await queue.enqueue("mail", 3)
    assert refused.value.retry_after_s > 0
    await queue.ack(lease)
    assert (await queue.enqueue("mail", 3)).state is State.QUEUED


async def test_a_call_that_does_not_fit_whole_is_refused_whole(queue: Client) -> None:
    await queue.set_queue("mail", max_depth=2)
    with pytest.raises(Busy):
        await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    assert await queue.list() == []
    assert len(await queue.enqueue_many(NewJob("mail", number) for number in range(2))) == 2


async def test_a_full_queue_still_answers_repeats(queue: Client) -> None:
    await queue.set_queue("mail", max_depth=1)
    first = await queue.enqueue("mail", 1)
    assert await queue.enqueue("mail", 1, id=first.id) == first


async def test_depth_is_counted_by_queue_and_by_tenant(queue: Client, other: Client) -> None:
    await queue.set_queue("mail", max_depth=1)
    await queue.enqueue("mail")
    await queue.enqueue("sms")
    await other.enqueue("mail")
    with pytest.raises(Busy):
        await queue.enqueue("mail")
