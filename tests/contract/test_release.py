"""release: the worker gives the job back, and the attempt with it; but not for ever (rule 35)."""

from datetime import timedelta

from penstock import Client, Ended, Reason, State
from penstock.domain.limits import FREE_RELEASES
from penstock.testing import FakeClock


async def _release(queue: Client, *, times: int = 1) -> Ended:
    for _ in range(times - 1):
        await _release(queue)
    [lease] = await queue.lease("mail")
    return await queue.release(lease)


async def test_a_released_job_is_ready_at_once_and_its_attempt_is_given_back(queue: Client) -> None:
    job = await queue.enqueue("mail")
    ended = await _release(queue)
    seen = await queue.get(job.id)
    assert (seen.state, seen.attempt, seen.lease_no, seen.releases, seen.run_at) == (State.QUEUED, 0, 1, 1, None)
    assert (ended.state, ended.attempt, ended.rev) == (State.QUEUED, 0, seen.rev)
    [lease] = await queue.lease("mail")
    assert (lease.job.attempt, lease.job.lease_no) == (1, 2)


async def test_a_released_job_may_wait(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    ended = await queue.release(lease, delay_s=60)
    assert ended.run_at == clock.now() + timedelta(seconds=60)
    assert await queue.lease("mail") == []
    clock.advance(60)
    assert len(await queue.lease("mail")) == 1


async def test_a_release_leaves_failed_attempts_charged(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "no", delay_s=0)
    await _release(queue)
    assert (await queue.get(job.id)).attempt == 1


async def test_a_hundred_releases_are_free_and_the_next_is_charged(queue: Client) -> None:
    job = await queue.enqueue("mail")
    ended = await _release(queue, times=100)
    assert (FREE_RELEASES, ended.attempt) == (100, 0)
    ended = await _release(queue)
    assert (ended.state, ended.attempt) == (State.QUEUED, 1)
    assert (await queue.get(job.id)).releases == 101


async def test_a_job_that_is_released_every_time_ends(queue: Client) -> None:
    job = await queue.enqueue("mail", max_attempts=3)
    ended = await _release(queue, times=103)
    assert (ended.state, ended.reason) == (State.DEAD, Reason.ATTEMPTS_EXHAUSTED)
    seen = await queue.get(job.id)
    assert (seen.state, seen.reason, seen.attempt) == (State.DEAD, Reason.ATTEMPTS_EXHAUSTED, 3)


async def test_a_requeue_gives_the_free_releases_back(queue: Client) -> None:
    job = await queue.enqueue("mail", max_attempts=1)
    await _release(queue, times=101)
    assert (await queue.get(job.id)).state is State.DEAD
    await queue.requeue(job.id)
    assert (await _release(queue)).attempt == 0
