"""expire: a holder that went quiet loses the job, and the attempt counts (G4, G5, rule 10)."""

from datetime import timedelta

from penstock import Backoff, Client, NewJob, Policy, Reason, State
from penstock.domain.commands import Beat, Expire, Heartbeat
from penstock.domain.outcome import Count
from penstock.stores.port import Store
from penstock.testing import FakeClock


async def test_a_lease_ends_after_its_length_and_not_before(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    await queue.lease("mail", lease_s=30)
    clock.advance(29.999)
    assert await queue.expire_now() == 0
    clock.advance(0.001)
    assert await queue.expire_now() == 1
    assert await queue.expire_now() == 0


async def test_an_expiry_is_an_attempt_that_failed(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", backoff=Backoff(Policy.FIXED, 7.0, 60.0))
    await queue.lease("mail", lease_s=30, worker="w1")
    clock.advance(30)
    await queue.expire_now()
    job = await queue.get(made.id)
    assert (job.state, job.attempt, job.lease_lost, job.reason) == (State.QUEUED, 1, 1, Reason.LEASE_EXPIRED)
    assert job.run_at == clock.now() + timedelta(seconds=7)
    assert job.error == "the worker went quiet: no heartbeat for 30 s"
    assert job.error_fp is not None


async def test_an_expiry_of_the_last_attempt_is_the_end_with_its_own_reason(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", max_attempts=1)
    await queue.lease("mail", lease_s=30)
    clock.advance(30)
    await queue.expire_now()
    job = await queue.get(made.id)
    assert (job.state, job.reason, job.lease_lost) == (State.DEAD, Reason.LEASE_EXPIRED, 1)


async def test_a_job_that_kills_every_worker_is_dead_after_its_attempts(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", max_attempts=4)
    leases = 0
    while await queue.lease("mail", lease_s=30):
        leases += 1
        clock.advance(30)
        await queue.expire_now()
        clock.advance(3600)
    job = await queue.get(made.id)
    assert (leases, job.attempt, job.lease_lost, job.state) == (4, 4, 4, State.DEAD)


async def test_leases_of_different_lengths_end_each_at_its_time(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    for lease_s in (60, 10, 30):
        await queue.lease("mail", lease_s=lease_s)
    ended = []
    for _ in range(6):
        clock.advance(10)
        ended.append(await queue.expire_now())
    assert ended == [1, 0, 1, 0, 0, 1]


async def test_a_heartbeat_that_came_first_beats_the_expiry(queue: Client, store: Store, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(30)
    found = await store.overdue()
    await queue.heartbeat(lease)
    assert await store.commit(found) == [Count(0)]
    assert (await queue.get(made.id)).state is State.LEASED


async def test_a_heartbeat_in_the_same_commit_beats_the_expiry(queue: Client, store: Store, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(30)
    [expiry] = await store.overdue()
    beat = Heartbeat(beats=(Beat(made.id, lease.token),))
    assert (await store.commit([expiry, beat]))[0] == Count(0)
    assert (await queue.get(made.id)).state is State.LEASED


async def test_one_lease_expires_once(queue: Client, store: Store, clock: FakeClock) -> None:
    made = await queue.enqueue("mail", backoff=Backoff(Policy.FIXED, 0.0, 0.0))
    await queue.lease("mail", lease_s=30)
    clock.advance(30)
    found = await store.overdue()
    assert await store.commit([*found, *found]) == [Count(1), Count(0)]
    await queue.lease("mail")
    assert await store.commit(found) == [Count(0)]
    assert (await queue.get(made.id)).lease_no == 2


async def test_an_expiry_of_another_lease_or_of_no_job_does_nothing(
    queue: Client, store: Store, clock: FakeClock
) -> None:
    made = await queue.enqueue("mail")
    await queue.lease("mail")
    before = await queue.snapshot()
    void = [
        Expire(job_id=made.id, lease_no=2, beats=0),
        Expire(job_id=made.id, lease_no=1, beats=1),
        Expire(job_id=clock.job_id(), lease_no=1, beats=0),
        Expire(tenant="other", job_id=made.id, lease_no=1, beats=0),
    ]
    assert await store.commit(void) == [Count(0)] * 4
    assert await queue.snapshot() == before
