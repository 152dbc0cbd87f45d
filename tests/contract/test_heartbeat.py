"""heartbeat: a sign of life extends the lease, carries progress, and brings back whether the job is still wanted."""

from datetime import timedelta

import pytest

from penstock import Client, Holding, LeaseLost, NewJob
from penstock.testing import FakeClock


async def test_a_heartbeat_starts_the_leases_time_again(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(29)
    assert await queue.heartbeat(lease) is Holding.HELD
    clock.advance(29)
    assert await queue.expire_now() == 0
    clock.advance(1)
    assert await queue.expire_now() == 1


async def test_a_lease_that_is_over_can_be_extended_until_it_is_expired(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(31)
    assert await queue.heartbeat(lease) is Holding.HELD
    assert await queue.expire_now() == 0


async def test_progress_is_stored_and_kept_when_a_beat_says_nothing_of_it(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    clock.advance(1)
    await queue.heartbeat(lease, progress=0.25)
    clock.advance(1)
    await queue.heartbeat(lease)
    seen = await queue.get(job.id)
    assert (seen.progress, seen.heartbeat_at) == (0.25, clock.now())
    assert seen.started_at == clock.now() - timedelta(seconds=2)


async def test_only_a_change_of_progress_is_a_change_of_the_job(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    revs = []
    for progress in (None, 0.5, 0.5, None, 1.0, 0.0):
        await queue.heartbeat(lease, progress=progress)
        revs.append((await queue.get(job.id)).rev)
    assert revs == [2, 3, 3, 3, 4, 5]


async def test_the_holder_of_a_cancelled_job_is_told_so_as_often_as_it_asks(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.cancel(job.id)
    assert await queue.heartbeat(lease) is Holding.CANCELLED
    assert await queue.heartbeat(lease) is Holding.CANCELLED


async def test_many_beats_are_answered_one_by_one(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    held, cancelled, acked = await queue.lease("mail", limit=3)
    await queue.cancel(cancelled.job.id)
    await queue.ack(acked)
    answers = await queue.heartbeat_many([acked, held, cancelled, held], progress=0.5)
    assert answers == [Holding.LOST, Holding.HELD, Holding.CANCELLED, Holding.HELD]
    assert (await queue.get(held.job.id)).progress == 0.5
    assert (await queue.get(acked.job.id)).progress is None


@pytest.mark.parametrize("ending", ["ack", "nack", "release"])
async def test_who_has_ended_its_attempt_holds_nothing_any_more(queue: Client, ending: str) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await getattr(queue, ending)(lease)
    before = await queue.snapshot()
    with pytest.raises(LeaseLost) as lost:
        await queue.heartbeat(lease, progress=0.5)
    assert lost.value.facts["job_id"] == job.id
    assert await queue.snapshot() == before


async def test_who_was_expired_holds_nothing_even_before_another_has_the_job(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(30)
    await queue.expire_now()
    with pytest.raises(LeaseLost):
        await queue.heartbeat(lease)
