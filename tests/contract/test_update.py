"""update: when and how a queued job runs."""

from datetime import timedelta

import pytest

from penstock import Client, Conflict, Invalid, NewJob, NotFound, State
from penstock.testing import FakeClock


async def test_a_queued_job_can_be_put_off(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    job = await queue.update(made.id, run_at=clock.now() + timedelta(seconds=60))
    assert (job.run_at, job.rev) == (clock.now() + timedelta(seconds=60), 2)
    assert await queue.lease("mail") == []
    clock.advance(60)
    assert len(await queue.lease("mail")) == 1


async def test_a_job_that_waits_can_be_run_now(queue: Client) -> None:
    made = await queue.enqueue("mail", delay_s=3600)
    job = await queue.update(made.id, now=True)
    assert job.run_at is None
    assert len(await queue.lease("mail")) == 1


async def test_a_job_that_waits_for_its_next_attempt_can_be_run_now(queue: Client) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, delay_s=3600)
    await queue.update(lease.job.id, now=True)
    assert len(await queue.lease("mail")) == 1


@pytest.mark.parametrize("delay_s", [None, 0.5])
async def test_another_priority_is_another_place_in_line(
    queue: Client, clock: FakeClock, delay_s: float | None
) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number, delay_s=delay_s) for number in range(3))
    job = await queue.update(jobs[2].id, priority=-1)
    assert (job.priority, job.run_at) == (-1, jobs[2].run_at)
    clock.advance(1)
    assert [lease.job.payload for lease in await queue.lease("mail", limit=3)] == [2, 0, 1]


async def test_a_job_keeps_its_place_when_only_its_priority_goes_and_comes_back(queue: Client) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    await queue.update(jobs[0].id, priority=5)
    await queue.update(jobs[0].id, priority=0)
    assert [lease.job.payload for lease in await queue.lease("mail", limit=3)] == [0, 1, 2]


@pytest.mark.parametrize("deadline_s", [None, 60.0])
async def test_more_or_fewer_attempts_can_be_allowed(queue: Client, deadline_s: float | None) -> None:
    made = await queue.enqueue("mail", max_attempts=1, deadline_s=deadline_s)
    assert (await queue.update(made.id, max_attempts=7)).max_attempts == 7
    assert (await queue.update(made.id, max_attempts=2)).max_attempts == 2
    [lease] = await queue.lease("mail")
    assert (await queue.nack(lease)).state is State.QUEUED


@pytest.mark.parametrize("delay_s", [None, 1.0, 60.0])
@pytest.mark.parametrize("later_s", [None, 30.0])
@pytest.mark.parametrize("then_s", [0, 3600])
async def test_wherever_a_job_is_moved_it_is_counted_once(
    queue: Client, clock: FakeClock, delay_s: float | None, later_s: float | None, then_s: float
) -> None:
    """Ready from the start, due since, or still waiting; and then put off or given another priority."""
    made = await queue.enqueue("mail", delay_s=delay_s)
    clock.advance(2)
    await queue.stats()
    for priority in (1, 2):
        run_at = None if later_s is None else clock.now() + timedelta(seconds=later_s)
        job = await queue.update(made.id, priority=priority, run_at=run_at)
        [stats] = await queue.stats()
        waits = job.run_at is not None and job.run_at > clock.now()
        assert (stats.queued, stats.ready, stats.scheduled) == ((1, 0, 1) if waits else (1, 1, 0))
    clock.advance(then_s)
    await queue.stats()
    await queue.cancel(made.id)
    [stats] = await queue.stats()
    assert (stats.queued, stats.ready, stats.scheduled) == (0, 0, 0)


async def test_a_change_of_attempts_alone_leaves_a_job_where_it_stands(queue: Client) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    for job in jobs:
        await queue.update(job.id, max_attempts=9)
    assert [lease.job.payload for lease in await queue.lease("mail", limit=3)] == [0, 1, 2]


async def test_fewer_attempts_than_were_made_are_refused(queue: Client) -> None:
    made = await queue.enqueue("mail")
    for _ in range(2):
        [lease] = await queue.lease("mail")
        await queue.nack(lease, delay_s=0)
    before = await queue.snapshot()
    with pytest.raises(Conflict) as refused:
        await queue.update(made.id, max_attempts=2)
    assert refused.value.facts["attempt"] == 2
    assert await queue.snapshot() == before


async def test_a_job_past_its_deadline_is_not_saved_by_another_priority(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", deadline_s=60)
    await queue.update(made.id, priority=-1)
    clock.advance(60)
    assert await queue.expire_now() == 1
    assert (await queue.get(made.id)).state is State.DEAD


async def test_an_update_that_changes_nothing_is_no_change(queue: Client) -> None:
    made = await queue.enqueue("mail", priority=3)
    assert await queue.update(made.id, priority=3, max_attempts=5, now=True) == made
    assert await queue.update(made.id) == made


async def test_a_repeated_update_gets_the_same_answer(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    run_at = clock.now() + timedelta(seconds=60)
    job = await queue.update(made.id, run_at=run_at, priority=3, requeues=0)
    clock.advance(1)
    assert await queue.update(made.id, run_at=run_at, priority=3, requeues=0) == job


@pytest.mark.parametrize("state", [State.LEASED, State.SUCCEEDED, State.CANCELLED])
async def test_only_a_queued_job_can_be_updated(queue: Client, state: State) -> None:
    made = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    if state is State.SUCCEEDED:
        await queue.ack(lease)
    elif state is State.CANCELLED:
        await queue.cancel(made.id)
    before = await queue.snapshot()
    with pytest.raises(Conflict) as refused:
        await queue.update(made.id, priority=1)
    assert refused.value.facts["state"] == state
    assert await queue.snapshot() == before


async def test_an_update_meant_for_an_earlier_life_is_refused(queue: Client) -> None:
    made = await queue.enqueue("mail")
    await queue.cancel(made.id)
    await queue.requeue(made.id)
    with pytest.raises(Conflict):
        await queue.update(made.id, priority=1, requeues=0)


async def test_now_and_a_time_together_are_refused(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    with pytest.raises(Invalid, match="not both"):
        await queue.update(made.id, now=True, run_at=clock.now())


async def test_an_unknown_job_cannot_be_updated(queue: Client, clock: FakeClock) -> None:
    with pytest.raises(NotFound):
        await queue.update(clock.job_id(), priority=1, requeues=0)
