"""The broker: what it does by itself as time passes, and what becomes of its callers when things go wrong."""

import asyncio

import pytest

import penstock
from penstock import BrokerOptions, Busy, Client, MemoryStore, NewJob, NotFound, State, Unavailable
from penstock.testing import FakeClock
from tests.broker.stores import FailingStore, SilentStore, SlowStore
from tests.waiting import begun, settled

# As for users, but with one timer at a time.
SWEEPING = BrokerOptions(retention_s=1e9)
RETAINING = BrokerOptions(sweep_s=1e9)


async def _pass(clock: FakeClock, seconds: int) -> None:
    """Time goes on second by second, and everybody does what he does then."""
    for _ in range(seconds):
        clock.advance(1)
        await settled()


async def _failed_retry(queue: Client, job_id: str) -> bool:
    return (await queue.get(job_id)).state is State.QUEUED


async def test_the_job_of_a_dead_worker_is_back_after_its_lease_and_two_sweeps(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock, options=SWEEPING) as queue:
        job = await queue.enqueue("mail")
        await queue.lease("mail", lease_s=30)
        await _pass(clock, 29)
        assert (await queue.get(job.id)).state is State.LEASED
        await _pass(clock, 3)
        assert (await queue.get(job.id)).state is State.QUEUED


async def test_a_deadline_that_passes_is_noticed_by_itself(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock, options=SWEEPING) as queue:
        job = await queue.enqueue("mail", deadline_s=10)
        await _pass(clock, 12)
        assert (await queue.get(job.id)).state is State.DEAD


async def test_finished_jobs_leave_by_themselves_when_they_were_kept_long_enough(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock, options=RETAINING) as queue:
        kept = await queue.enqueue("mail", 1, idempotency_key="k")
        gone = await queue.enqueue("mail", 2)
        for job in (kept, gone):
            await queue.cancel(job.id)
        clock.advance(3600 - 61)
        await settled()
        assert (await queue.get(gone.id)).state is State.CANCELLED
        clock.advance(122)
        await settled()
        with pytest.raises(NotFound):
            await queue.get(gone.id)
        assert (await queue.get(kept.id)).state is State.CANCELLED
        clock.advance(23 * 3600)
        await settled()
        with pytest.raises(NotFound):
            await queue.get(kept.id)


async def test_retention_follows_the_queues_settings(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock, options=RETAINING) as queue:
        await queue.set_queue("mail", retain_dead_s=1800)
        job = await queue.enqueue("mail")
        [lease] = await queue.lease("mail")
        await queue.nack(lease, retry=False)
        clock.advance(1801 + 60)
        await settled()
        with pytest.raises(NotFound):
            await queue.get(job.id)


@pytest.mark.parametrize("error", [Unavailable("try again"), Busy("full", retry_after_s=1.0)])
async def test_a_sweep_that_fails_is_not_the_last(clock: FakeClock, error: penstock.PenstockError) -> None:
    store = FailingStore(clock, error, times=0)
    async with penstock.connect(store=store, clock=clock, options=SWEEPING) as queue:
        job = await queue.enqueue("mail")
        await queue.lease("mail", lease_s=30)
        store.times = 2
        await _pass(clock, 40)
        assert store.times == 0
        assert (await queue.get(job.id)).lease_lost == 1


async def test_a_retention_that_fails_is_not_the_last(clock: FakeClock) -> None:
    store = FailingStore(clock, Unavailable("try again"), times=0)
    async with penstock.connect(store=store, clock=clock, options=RETAINING) as queue:
        job = await queue.enqueue("mail")
        await queue.cancel(job.id)
        store.times = 2
        clock.advance(3600)
        await _pass(clock, 300)
        assert store.times == 0
        with pytest.raises(NotFound):
            await queue.get(job.id)


async def test_more_leases_may_end_at_once_than_callers_may_wait(clock: FakeClock) -> None:
    options = BrokerOptions(most_waiting=5, retention_s=1e9)
    async with penstock.connect(store=MemoryStore(clock), clock=clock, options=options) as queue:
        await queue.enqueue_many(NewJob("mail", number, max_attempts=1) for number in range(20))
        await queue.lease("mail", limit=20, lease_s=30)
        await _pass(clock, 33)
        [stats] = await queue.stats()
        assert (stats.leased, stats.dead) == (0, 20)


async def test_a_lost_wake_up_costs_a_moment_and_no_job(clock: FakeClock) -> None:
    options = BrokerOptions(sweep_s=1e9, retention_s=1e9, poll_s=1.0)
    async with penstock.connect(store=SilentStore(clock), clock=clock, options=options) as queue:
        leasing = await begun(queue.lease("mail", wait_s=20))
        job = await queue.enqueue("mail")
        waiting = await begun(queue.wait(job.id, timeout_s=20))
        await settled()
        assert not leasing.done()
        await _pass(clock, 1)
        [lease] = await leasing
        await queue.ack(lease)
        await _pass(clock, 1)
        assert (await waiting).state is State.SUCCEEDED


async def test_whoever_waits_when_the_connection_ends_is_told_at_once(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock) as queue:
        job = await queue.enqueue("sms")
        leasing = await begun(queue.lease("mail", wait_s=20))
        waiting = await begun(queue.wait(job.id, timeout_s=20))
        events = queue.watch()
        watching = await begun(anext(events, None))
    await settled()
    assert [task.done() for task in (leasing, waiting, watching)] == [True, True, True]
    for task in (leasing, waiting, watching):
        task.cancel()
    await asyncio.gather(leasing, waiting, watching, return_exceptions=True)


async def test_a_connection_that_has_ended_takes_no_more(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock) as queue:
        pass
    with pytest.raises(Unavailable, match="closed"):
        await queue.enqueue("mail")


async def test_what_was_under_way_when_the_connection_ended_is_done_and_answered(clock: FakeClock) -> None:
    store = MemoryStore(clock)
    async with penstock.connect(store=store, clock=clock) as queue:
        calls = [asyncio.create_task(queue.enqueue("mail", number)) for number in range(5)]
        await asyncio.sleep(0)
    assert len(await asyncio.gather(*calls)) == 5
    async with penstock.connect(store=store, clock=clock) as queue:
        assert len(await queue.list()) == 5


async def test_a_store_that_never_answers_does_not_keep_a_connection_from_ending(clock: FakeClock) -> None:
    connection = penstock.connect(store=SlowStore(clock), clock=clock)
    queue = await connection.__aenter__()
    call = asyncio.create_task(queue.enqueue("mail"))
    await settled()
    leaving = asyncio.ensure_future(connection.__aexit__(None, None, None))
    await settled()
    assert not leaving.done()
    await _pass(clock, 31)
    assert leaving.done()
    with pytest.raises(Unavailable):
        await call


async def test_leases_outlive_the_connection(clock: FakeClock) -> None:
    store = MemoryStore(clock)
    async with penstock.connect(store=store, clock=clock) as queue:
        await queue.enqueue("mail")
        [lease] = await queue.lease("mail")
    async with penstock.connect(store=store, clock=clock) as queue:
        assert await queue.lease("mail") == []
        assert (await queue.ack(lease)).state is State.SUCCEEDED


class Shut(MemoryStore):
    """A store that cannot be opened."""

    async def open(self) -> None:
        raise Unavailable("no store here")


async def test_a_store_that_cannot_be_opened_is_no_connection(clock: FakeClock) -> None:
    with pytest.raises(Unavailable, match="no store here"):
        async with penstock.connect(store=Shut(clock), clock=clock):
            pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_in_the_block_comes_out_as_it_is(clock: FakeClock) -> None:
    async def broken_off() -> None:
        async with penstock.connect(store=MemoryStore(clock), clock=clock) as queue:
            await queue.enqueue("mail")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await broken_off()
