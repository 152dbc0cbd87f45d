"""Long polls: a lease call that finds nothing waits, is woken by what gives it a job, and by little else."""

import asyncio

import pytest

from penstock import Client, Lease, NewJob
from penstock.domain.events import Record
from penstock.stores.port import Store
from penstock.testing import FakeClock
from tests.waiting import begun, settled


async def _waiting(queue: Client, *, kinds: list[str] | None = None) -> asyncio.Task[list[Lease]]:
    task = await begun(queue.lease("mail", kinds=kinds, wait_s=20))
    assert not task.done()
    return task


async def test_a_call_that_finds_a_job_does_not_wait(queue: Client) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail", wait_s=20)
    assert lease.waited_s == 0


async def test_a_call_that_may_not_wait_comes_back_empty_at_once(queue: Client) -> None:
    assert await queue.lease("mail", wait_s=0) == []


async def test_an_enqueue_wakes_it(queue: Client, clock: FakeClock) -> None:
    waiting = await _waiting(queue)
    clock.advance(7)
    job = await queue.enqueue("mail")
    [lease] = await waiting
    assert (lease.job.id, lease.waited_s, lease.expires_in_s) == (job.id, 7, 30)
    assert lease.ends_at == clock.elapsed() + 30


async def test_it_comes_back_empty_when_its_time_is_up(queue: Client, clock: FakeClock) -> None:
    waiting = await _waiting(queue)
    clock.advance(19.999)
    await settled()
    assert not waiting.done()
    clock.advance(0.001)
    assert await waiting == []


@pytest.mark.parametrize("first", ["the job", "the call"])
async def test_a_job_that_becomes_due_wakes_it(queue: Client, clock: FakeClock, first: str) -> None:
    if first == "the job":
        await queue.enqueue("mail", delay_s=5)
    waiting = await _waiting(queue)
    if first == "the call":
        await queue.enqueue("mail", delay_s=5)
        await settled()
    clock.advance(4.999)
    await settled()
    assert not waiting.done()
    clock.advance(0.001)
    assert len(await waiting) == 1


async def test_resuming_the_queue_wakes_it(queue: Client) -> None:
    await queue.enqueue("mail")
    await queue.pause("mail")
    waiting = await _waiting(queue)
    await queue.resume("mail")
    assert len(await waiting) == 1


async def test_resetting_the_queue_wakes_it(queue: Client) -> None:
    await queue.enqueue("mail")
    await queue.pause("mail")
    waiting = await _waiting(queue)
    await queue.reset_queue("mail")
    assert len(await waiting) == 1


async def test_a_release_wakes_it(queue: Client) -> None:
    await queue.enqueue("mail")
    [held] = await queue.lease("mail")
    waiting = await _waiting(queue)
    await queue.release(held)
    assert len(await waiting) == 1


async def test_a_nack_without_delay_wakes_it(queue: Client) -> None:
    await queue.enqueue("mail")
    [held] = await queue.lease("mail")
    waiting = await _waiting(queue)
    await queue.nack(held, delay_s=0)
    assert len(await waiting) == 1


async def test_a_requeue_wakes_it(queue: Client) -> None:
    job = await queue.enqueue("mail")
    await queue.cancel(job.id)
    waiting = await _waiting(queue)
    await queue.requeue(job.id)
    assert len(await waiting) == 1


async def test_an_update_to_now_wakes_it(queue: Client) -> None:
    job = await queue.enqueue("mail", delay_s=3600)
    waiting = await _waiting(queue)
    await queue.update(job.id, now=True)
    assert len(await waiting) == 1


async def test_a_follow_up_wakes_it(queue: Client) -> None:
    await queue.enqueue("first")
    [held] = await queue.lease("first")
    waiting = await _waiting(queue)
    await queue.ack(held, then=[NewJob("mail")])
    assert len(await waiting) == 1


async def test_it_waits_at_all_its_queues(queue: Client) -> None:
    waiting = await begun(queue.lease(["first", "second"], wait_s=20))
    await queue.enqueue("second")
    assert len(await waiting) == 1


async def test_other_queues_kinds_and_tenants_give_it_nothing(queue: Client, other: Client) -> None:
    waiting = await _waiting(queue, kinds=["send"])
    await queue.enqueue("sms", kind="send")
    await queue.enqueue("mail", kind="read")
    await other.enqueue("mail", kind="send")
    await settled()
    assert not waiting.done()
    await queue.enqueue("mail", kind="send")
    [lease] = await waiting
    assert (lease.job.queue, lease.job.kind, lease.job.tenant) == ("mail", "send", "default")


async def test_one_job_goes_to_the_one_who_waited_longest(queue: Client) -> None:
    first, second = await _waiting(queue), await _waiting(queue)
    await queue.enqueue("mail", 1)
    assert len(await first) == 1
    await settled()
    assert not second.done()
    await queue.enqueue("mail", 2)
    assert len(await second) == 1


async def test_as_many_wake_as_there_are_jobs(queue: Client) -> None:
    tasks = [await _waiting(queue) for _ in range(3)]
    await queue.enqueue_many([NewJob("mail", 1), NewJob("mail", 2)])
    await settled()
    assert [task.done() for task in tasks] == [True, True, False]
    tasks[2].cancel()


async def test_one_who_is_woken_and_cancelled_passes_the_job_on(queue: Client, store: Store) -> None:
    first, second = await _waiting(queue), await _waiting(queue)

    def cancel(_: Record) -> None:
        # Called after the broker has heard the record and woken the first, and before the first can look.
        first.cancel()

    store.listen(cancel)
    job = await queue.enqueue("mail")
    [lease] = await second
    assert lease.job.id == job.id
    assert first.cancelled()


async def test_a_call_may_be_given_up_and_nothing_is_leased(queue: Client) -> None:
    waiting = await _waiting(queue)
    waiting.cancel()
    await settled()
    await queue.enqueue("mail")
    assert len(await queue.lease("mail")) == 1
