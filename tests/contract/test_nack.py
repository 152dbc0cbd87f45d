"""nack: the attempt failed. The job waits for its next one, or is dead with the cause of its last."""

from datetime import timedelta

import pytest

from penstock import Backoff, Client, Invalid, Policy, Reason, State
from penstock.domain.limits import MAX_ERROR_CHARS
from penstock.testing import FakeClock


async def _failed_once(queue: Client, **options: object) -> str:
    job = await queue.enqueue("mail", **options)  # type: ignore[arg-type] # options of a job, by name
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "no")
    return job.id


async def test_a_failed_job_is_queued_again_after_its_backoff(queue: Client, clock: FakeClock) -> None:
    job_id = await _failed_once(queue, backoff=Backoff(Policy.FIXED, 7.0, 60.0))
    job = await queue.get(job_id)
    assert (job.state, job.attempt, job.run_at) == (State.QUEUED, 1, clock.now() + timedelta(seconds=7))
    assert await queue.lease("mail") == []
    clock.advance(7)
    [lease] = await queue.lease("mail")
    assert (lease.job.id, lease.job.attempt) == (job_id, 2)


async def test_the_queues_backoff_holds_for_jobs_that_have_none(queue: Client, clock: FakeClock) -> None:
    await queue.set_queue("mail", backoff={"policy": "fixed", "base_s": 11.0})
    job = await queue.get(await _failed_once(queue))
    assert job.run_at == clock.now() + timedelta(seconds=11)
    job = await queue.get(await _failed_once(queue, backoff=Backoff(Policy.FIXED, 3.0, 60.0)))
    assert job.run_at == clock.now() + timedelta(seconds=3)


async def test_the_backoff_grows_with_the_attempts(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", backoff=Backoff(Policy.EXPONENTIAL, 1.0, 5.0))
    waits = []
    for _ in range(4):
        [lease] = await queue.lease("mail")
        ended = await queue.nack(lease)
        assert ended.run_at is not None
        waits.append((ended.run_at - clock.now()).total_seconds())
        clock.advance(waits[-1])
    assert waits == [1.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize("delay_s", [0, 90])
async def test_the_worker_may_choose_the_wait(queue: Client, clock: FakeClock, delay_s: float) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    ended = await queue.nack(lease, delay_s=delay_s)
    assert ended.run_at == clock.now() + timedelta(seconds=delay_s)
    clock.advance(delay_s)
    assert len(await queue.lease("mail")) == 1


async def test_the_last_attempt_that_fails_leaves_the_job_dead(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", max_attempts=3)
    for attempt in (1, 2):
        [lease] = await queue.lease("mail")
        assert lease.job.attempt == attempt
        assert (await queue.nack(lease, "no", delay_s=0)).state is State.QUEUED
    [lease] = await queue.lease("mail")
    ended = await queue.nack(lease, "no", delay_s=0)
    seen = await queue.get(job.id)
    assert (seen.state, seen.reason, seen.error) == (State.DEAD, Reason.ATTEMPTS_EXHAUSTED, "no")
    assert (ended.state, ended.reason, seen.finished_at) == (State.DEAD, Reason.ATTEMPTS_EXHAUSTED, clock.now())
    assert await queue.lease("mail") == []


async def test_a_failure_that_no_attempt_would_mend_is_the_end(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "no", retry=False)
    seen = await queue.get(job.id)
    assert (seen.state, seen.reason, seen.attempt) == (State.DEAD, Reason.NOT_RETRYABLE, 1)


@pytest.mark.parametrize("retry", [True, False])
async def test_a_dead_job_has_the_cause_that_its_worker_gave(queue: Client, *, retry: bool) -> None:
    job = await queue.enqueue("mail", max_attempts=1)
    [lease] = await queue.lease("mail")
    await queue.nack(lease, retry=retry, reason=Reason.OUT_OF_MEMORY)
    assert (await queue.get(job.id)).reason is Reason.OUT_OF_MEMORY


async def test_a_cause_is_seen_while_the_next_attempt_waits(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, reason="timed_out")
    assert (await queue.get(job.id)).reason is Reason.TIMED_OUT


@pytest.mark.parametrize("reason", ["attempts_exhausted", "lease_expired", "deadline"])
async def test_the_queues_own_causes_are_not_a_workers_to_give(queue: Client, reason: str) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    before = await queue.snapshot()
    with pytest.raises(Invalid, match="not a worker's"):
        await queue.nack(lease, reason=reason)
    assert await queue.snapshot() == before


async def test_an_unknown_cause_is_refused_with_those_that_are_known(queue: Client) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    with pytest.raises(Invalid, match="out_of_memory"):
        await queue.nack(lease, reason="bored")


async def test_equal_errors_have_one_fingerprint(queue: Client) -> None:
    jobs = []
    for error in ("timeout after 30 s at 0x7f01", "timeout after 9 s at 0x7f02", "disk full"):
        job = await queue.enqueue("mail")
        [lease] = await queue.lease("mail")
        await queue.nack(lease, error, retry=False)
        jobs.append(await queue.get(job.id))
    assert [job.error for job in jobs][2] == "disk full"
    assert jobs[0].error_fp == jobs[1].error_fp != jobs[2].error_fp


async def test_a_long_error_is_cut_and_the_cut_is_marked(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "x" * (MAX_ERROR_CHARS + 1))
    error = (await queue.get(job.id)).error
    assert error == "x" * MAX_ERROR_CHARS + "... [1 characters cut]"


async def test_an_error_that_cannot_be_stored_as_it_is_is_stored_readably(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "bad \ud800 and \0")
    assert (await queue.get(job.id)).error == "bad ? and \N{REPLACEMENT CHARACTER}"


async def test_every_job_ends_after_its_attempts(queue: Client, clock: FakeClock) -> None:
    """Whatever its attempts do: fail, or go quiet."""
    await queue.enqueue("mail", max_attempts=6)
    leases = 0
    while found := await queue.lease("mail", lease_s=30):
        leases += 1
        if leases % 2:
            await queue.nack(found[0], "no")
        else:
            clock.advance(30)
            await queue.expire_now()
        clock.advance(3600)
    assert leases == 6
    [job] = await queue.list()
    assert (job.state, job.reason, job.lease_lost) == (State.DEAD, Reason.LEASE_EXPIRED, 3)
