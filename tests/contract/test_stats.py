"""stats: the queues by numbers, which always equal a recount."""

from datetime import timedelta

from penstock import Client, NewJob, QueueSettings
from penstock.testing import FakeClock


async def test_every_state_is_counted(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(6))
    acked, nacked, running, cancelled = await queue.lease("mail", limit=4)
    await queue.ack(acked)
    await queue.nack(nacked, retry=False)
    await queue.cancel(cancelled.job.id)
    await queue.heartbeat(running)
    await queue.enqueue("mail", delay_s=60)
    [stats] = await queue.stats()
    assert (stats.queue, stats.settings, stats.paused) == ("mail", QueueSettings(), False)
    assert (stats.queued, stats.ready, stats.scheduled) == (3, 2, 1)
    assert (stats.leased, stats.succeeded, stats.dead, stats.cancelled) == (1, 1, 1, 1)


async def test_a_scheduled_job_is_ready_when_its_time_has_come(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", delay_s=60)
    clock.advance(60)
    [stats] = await queue.stats()
    assert (stats.ready, stats.scheduled) == (1, 0)


async def test_the_oldest_ready_job_shows_since_when_it_waits(queue: Client, clock: FakeClock) -> None:
    begun = clock.now()
    await queue.enqueue("mail", 1, kind="a", priority=9)
    clock.advance(5)
    await queue.enqueue("mail", 2, kind="b")
    await queue.enqueue("mail", 3, delay_s=1)
    clock.advance(10)
    assert (await queue.stats())[0].oldest_ready_at == begun
    await queue.lease("mail", kinds=["a"])
    assert (await queue.stats())[0].oldest_ready_at == begun + timedelta(seconds=5)
    await queue.lease("mail", limit=9)
    assert (await queue.stats())[0].oldest_ready_at is None


async def test_queues_are_told_by_name_and_one_can_be_asked_for(queue: Client) -> None:
    await queue.enqueue_many([NewJob("sms"), NewJob("mail"), NewJob("fax")])
    assert [stats.queue for stats in await queue.stats()] == ["fax", "mail", "sms"]
    assert [stats.queue for stats in await queue.stats("mail")] == ["mail"]
    assert await queue.stats("nowhere") == []


async def test_a_queue_that_somebody_set_is_told_though_it_is_empty(queue: Client) -> None:
    await queue.set_queue("mail", max_depth=3)
    [stats] = await queue.stats()
    assert (stats.queue, stats.queued, stats.settings.max_depth) == ("mail", 0, 3)


async def test_looking_makes_no_queue(queue: Client) -> None:
    before = (await queue.snapshot()).seq
    await queue.queue("mail")
    await queue.stats("mail")
    await queue.lease("mail")
    await queue.list(queue="mail")
    assert await queue.stats() == []
    assert (await queue.snapshot()).seq == before
