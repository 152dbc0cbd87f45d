"""purge: finished jobs leave the store, but not before repeated calls may still ask for them (rule 5)."""

import asyncio

import pytest

from penstock import Client, Conflict, Invalid, Job, NewJob, NotFound, State
from penstock.testing import FakeClock

QUARTER_S = 900.0


async def _acked(queue: Client, count: int, *, name: str = "mail", key: str | None = None) -> list[Job]:
    jobs = await queue.enqueue_many(
        NewJob(name, number, idempotency_key=f"{key}-{number}" if key else None) for number in range(count)
    )
    await asyncio.gather(*(queue.ack(lease) for lease in await queue.lease(name, limit=count)))
    return jobs


async def test_a_purged_job_is_gone_with_its_history(queue: Client, clock: FakeClock) -> None:
    [job] = await _acked(queue, 1)
    clock.advance(QUARTER_S)
    assert await queue.purge(job.id) == 1
    for look in (queue.get, queue.history, queue.attempts):
        with pytest.raises(NotFound):
            await look(job.id)
    assert await queue.list() == []
    assert await queue.stats() == []


async def test_a_finished_job_stays_for_a_quarter_of_an_hour(queue: Client, clock: FakeClock) -> None:
    [job] = await _acked(queue, 1)
    clock.advance(QUARTER_S - 0.001)
    with pytest.raises(Conflict, match="too young") as refused:
        await queue.purge(job.id)
    assert refused.value.facts["job_id"] == job.id
    assert (await queue.get(job.id)).state is State.SUCCEEDED


async def test_a_keyed_job_stays_for_a_day_from_its_enqueue(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", idempotency_key="k")
    clock.advance(86_400 - QUARTER_S)
    await queue.cancel(job.id)
    clock.advance(QUARTER_S - 0.001)
    with pytest.raises(Conflict, match="too young"):
        await queue.purge(job.id)
    clock.advance(0.001)
    assert await queue.purge(job.id) == 1


@pytest.mark.parametrize("leased", [True, False])
async def test_a_job_that_is_not_finished_cannot_be_purged(queue: Client, clock: FakeClock, *, leased: bool) -> None:
    job = await queue.enqueue("mail")
    if leased:
        await queue.lease("mail", lease_s=86_400)
    clock.advance(QUARTER_S)
    with pytest.raises(Conflict, match="only a finished job"):
        await queue.purge(job.id)
    assert (await queue.get(job.id)).id == job.id


async def test_one_refused_job_refuses_the_whole_purge(queue: Client, clock: FakeClock) -> None:
    [old] = await _acked(queue, 1)
    clock.advance(QUARTER_S)
    young = await queue.enqueue("mail")
    with pytest.raises(Conflict):
        await queue.purge(old.id, young.id)
    assert (await queue.get(old.id)).state is State.SUCCEEDED


async def test_unknown_jobs_and_repeats_are_passed_over(queue: Client, clock: FakeClock) -> None:
    [job] = await _acked(queue, 1)
    clock.advance(QUARTER_S)
    assert await queue.purge(clock.job_id()) == 0
    assert await queue.purge(job.id, job.id, clock.job_id()) == 1
    assert await queue.purge(job.id) == 0


async def test_a_queues_finished_jobs_are_purged_by_state_and_age(queue: Client, clock: FakeClock) -> None:
    await _acked(queue, 2)
    cancelled = await queue.enqueue("mail")
    await queue.cancel(cancelled.id)
    await _acked(queue, 1, name="sms")
    clock.advance(1800)
    young = await _acked(queue, 1)
    clock.advance(QUARTER_S)
    assert await queue.purge_queue("mail", state="succeeded", older_than_s=1800) == 2
    assert {job.id for job in await queue.list(queue="mail")} == {cancelled.id, young[0].id}
    assert len(await queue.list(queue="sms")) == 1


async def test_whatever_age_is_given_young_jobs_stay(queue: Client, clock: FakeClock) -> None:
    await _acked(queue, 2)
    await _acked(queue, 2, key="k")
    clock.advance(QUARTER_S - 0.001)
    assert await queue.purge_queue("mail", state="succeeded", older_than_s=0) == 0
    clock.advance(0.001)
    assert await queue.purge_queue("mail", state="succeeded", older_than_s=0) == 2
    clock.advance(86_400)
    assert await queue.purge_queue("mail", state="succeeded", older_than_s=0) == 2


async def test_jobs_that_were_requeued_are_not_purged_with_the_others(queue: Client, clock: FakeClock) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    for job in jobs:
        await queue.cancel(job.id)
    clock.advance(QUARTER_S)
    await queue.requeue(jobs[1].id)
    assert await queue.purge_queue("mail", state="cancelled", older_than_s=0) == 2
    assert [job.id for job in await queue.list()] == [jobs[1].id]


async def test_more_jobs_than_one_commit_takes_are_all_purged(queue: Client, clock: FakeClock) -> None:
    for _ in range(11):
        await _acked(queue, 1_000)
        clock.advance(1)
    clock.advance(QUARTER_S)
    assert await queue.purge_queue("mail", state="succeeded", older_than_s=0) == 11_000
    assert await queue.stats() == []


@pytest.mark.parametrize("state", ["queued", "leased"])
async def test_only_finished_states_are_purged(queue: Client, state: str) -> None:
    with pytest.raises(Invalid, match="finished state"):
        await queue.purge_queue("mail", state=state, older_than_s=0)


async def test_a_negative_age_is_refused(queue: Client) -> None:
    with pytest.raises(Invalid, match="older_than_s"):
        await queue.purge_queue("mail", state="dead", older_than_s=-1)


async def test_a_name_is_free_again_after_the_purge_but_an_old_id_is_not(queue: Client, clock: FakeClock) -> None:
    [job] = await _acked(queue, 1)
    clock.advance(QUARTER_S)
    await queue.purge(job.id)
    with pytest.raises(Invalid, match="bad_id"):
        await queue.enqueue("mail", 0, id=job.id)
