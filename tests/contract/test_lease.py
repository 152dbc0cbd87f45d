"""lease: who gets which jobs, and what a lease tells."""

import pytest

from penstock import Client, NewJob, Reason, State
from penstock.testing import FakeClock


async def test_a_leased_job_is_charged_one_attempt_and_numbered(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    clock.advance(3)
    [lease] = await queue.lease("mail", lease_s=45, worker="w1")
    job = await queue.get(made.id)
    assert lease.job == job
    assert (job.state, job.attempt, job.lease_no, job.rev, job.worker) == (State.LEASED, 1, 1, 2, "w1")
    assert job.started_at == job.updated_at == clock.now()
    assert (lease.expires_in_s, lease.waited_s) == (45, 0)


async def test_a_leased_job_is_hidden_from_other_workers(queue: Client) -> None:
    await queue.enqueue("mail")
    assert len(await queue.lease("mail")) == 1
    assert await queue.lease("mail") == []


async def test_each_lease_of_a_job_has_a_higher_number_and_another_token(queue: Client) -> None:
    await queue.enqueue("mail")
    [first] = await queue.lease("mail")
    await queue.nack(first, delay_s=0)
    [second] = await queue.lease("mail")
    assert (second.job.attempt, second.job.lease_no) == (2, 2)
    await queue.release(second)
    [third] = await queue.lease("mail")
    assert (third.job.attempt, third.job.lease_no) == (2, 3)
    assert len({first.token, second.token, third.token}) == 3


async def test_a_call_gets_as_many_jobs_as_it_asks_for_and_there_are(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    assert len(await queue.lease("mail", limit=2)) == 2
    assert len(await queue.lease("mail", limit=2)) == 1
    assert await queue.lease("mail", limit=2) == []


async def test_an_empty_queue_and_one_nobody_knows_give_nothing(queue: Client) -> None:
    await queue.enqueue("mail")
    assert await queue.lease("sms") == []
    assert [stats.queue for stats in await queue.stats()] == ["mail"]


async def test_only_the_wanted_kinds_are_handed_out(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", kind=kind) for kind in ("a", "b", "c", "b"))
    assert [lease.job.kind for lease in await queue.lease("mail", kinds=["b", "z"], limit=9)] == ["b", "b"]
    assert [lease.job.kind for lease in await queue.lease("mail", kinds=["c", "a"], limit=9)] == ["a", "c"]


async def test_several_queues_are_taken_in_the_order_of_preference(queue: Client) -> None:
    await queue.enqueue("second", priority=-9)
    await queue.enqueue_many([NewJob("first", 1), NewJob("first", 2), NewJob("third")])
    leases = await queue.lease(["first", "second", "third"], limit=3)
    assert [lease.job.queue for lease in leases] == ["first", "first", "second"]


async def test_a_preferred_queue_that_is_empty_is_passed_over(queue: Client) -> None:
    await queue.enqueue("second")
    assert [lease.job.queue for lease in await queue.lease(["first", "second"])] == ["second"]


async def test_a_paused_queue_hands_out_nothing_and_what_runs_goes_on(queue: Client) -> None:
    await queue.enqueue_many([NewJob("mail"), NewJob("mail"), NewJob("sms")])
    [running] = await queue.lease("mail")
    await queue.pause("mail")
    assert [lease.job.queue for lease in await queue.lease(["mail", "sms"], limit=9)] == ["sms"]
    assert (await queue.ack(running)).state is State.SUCCEEDED
    await queue.resume("mail")
    assert len(await queue.lease("mail", limit=9)) == 1


async def test_a_delayed_job_is_handed_out_at_its_time_and_not_before(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", delay_s=10)
    clock.advance(9.999)
    assert await queue.lease("mail") == []
    clock.advance(0.001)
    assert len(await queue.lease("mail")) == 1


async def test_a_job_past_its_deadline_is_never_handed_out(queue: Client, clock: FakeClock) -> None:
    late = await queue.enqueue("mail", 1, deadline_s=10)
    good = await queue.enqueue("mail", 2)
    clock.advance(10)
    assert [lease.job.id for lease in await queue.lease("mail", limit=9)] == [good.id]
    job = await queue.get(late.id)
    assert (job.state, job.reason, job.attempt) == (State.DEAD, Reason.DEADLINE, 0)


@pytest.mark.parametrize("ending", ["ack", "nack", "release", "none"])
async def test_no_token_and_no_request_id_is_ever_stored(queue: Client, clock: FakeClock, ending: str) -> None:
    secret = clock.secret()
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail", request_id=secret)
    assert secret in lease.token
    if ending == "ack":
        await queue.ack(lease)
    elif ending == "nack":
        await queue.nack(lease, "no")
    elif ending == "release":
        await queue.release(lease)
    stored = repr([await queue.snapshot(), await queue.history(job.id)])
    assert secret not in stored
    assert job.id in stored


async def test_progress_begins_anew_with_each_lease(queue: Client) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.heartbeat(lease, progress=0.5)
    await queue.nack(lease, delay_s=0)
    [lease] = await queue.lease("mail")
    assert lease.job.progress is None
