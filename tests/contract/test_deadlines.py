"""Deadlines: a job still queued then is dead; an attempt under way goes on, and only an ack saves the job."""

from datetime import timedelta

from penstock import Backoff, Client, Policy, Reason, State
from penstock.testing import FakeClock


async def test_a_job_has_its_deadline_from_its_enqueue(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", deadline_s=60)
    assert job.deadline_at == clock.now() + timedelta(seconds=60)


async def test_a_job_still_queued_at_its_deadline_is_dead(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", deadline_s=60)
    clock.advance(59.999)
    assert await queue.expire_now() == 0
    clock.advance(0.001)
    assert await queue.expire_now() == 1
    job = await queue.get(made.id)
    assert (job.state, job.reason, job.finished_at) == (State.DEAD, Reason.DEADLINE, clock.now())


async def test_so_is_one_that_waits_for_its_time_or_its_next_attempt(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", 1, deadline_s=60, delay_s=90)
    await queue.enqueue("mail", 2, deadline_s=60, backoff=Backoff(Policy.FIXED, 90.0, 90.0))
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "no")
    clock.advance(60)
    assert await queue.expire_now() == 2
    assert [job.reason for job in await queue.list()] == [Reason.DEADLINE, Reason.DEADLINE]


async def test_an_attempt_under_way_goes_on_and_may_succeed(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", deadline_s=20)
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(25)
    assert await queue.expire_now() == 0
    await queue.heartbeat(lease)
    await queue.ack(lease)
    assert (await queue.get(made.id)).state is State.SUCCEEDED


async def test_a_nack_after_the_deadline_is_the_end(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", deadline_s=20)
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(20)
    ended = await queue.nack(lease, "no")
    assert (ended.state, ended.reason) == (State.DEAD, Reason.DEADLINE)
    assert (await queue.get(made.id)).error == "no"


async def test_a_nack_after_the_deadline_keeps_the_cause_that_the_worker_gave(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", deadline_s=20)
    [lease] = await queue.lease("mail")
    clock.advance(20)
    assert (await queue.nack(lease, reason="crashed")).reason is Reason.CRASHED


async def test_a_release_after_the_deadline_is_the_end(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", deadline_s=20)
    [lease] = await queue.lease("mail")
    clock.advance(20)
    ended = await queue.release(lease)
    assert (ended.state, ended.reason) == (State.DEAD, Reason.DEADLINE)


async def test_an_expiry_after_the_deadline_is_the_end(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", deadline_s=20)
    await queue.lease("mail", lease_s=30)
    clock.advance(30)
    assert await queue.expire_now() == 1
    job = await queue.get(made.id)
    assert (job.state, job.reason, job.lease_lost) == (State.DEAD, Reason.LEASE_EXPIRED, 1)


async def test_before_the_deadline_a_failed_job_is_tried_again(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", deadline_s=20)
    [lease] = await queue.lease("mail")
    clock.advance(19)
    assert (await queue.nack(lease)).state is State.QUEUED


async def test_a_requeued_job_has_no_deadline_any_more(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", deadline_s=20)
    clock.advance(20)
    await queue.expire_now()
    job = await queue.requeue(made.id)
    assert (job.state, job.deadline_at, job.reason) == (State.QUEUED, None, None)
    assert len(await queue.lease("mail")) == 1
