"""cancel: nobody shall run the job; whoever runs it hears of it, and a cancel meant for an earlier life is refused."""

import pytest

from penstock import Client, Conflict, NotFound, State
from penstock.testing import FakeClock


@pytest.mark.parametrize("delay_s", [None, 60])
async def test_a_cancelled_job_is_never_handed_out(queue: Client, clock: FakeClock, delay_s: float | None) -> None:
    made = await queue.enqueue("mail", delay_s=delay_s)
    job = await queue.cancel(made.id)
    assert (job.state, job.reason, job.finished_at) == (State.CANCELLED, None, clock.now())
    assert await queue.get(made.id) == job
    clock.advance(60)
    assert await queue.lease("mail") == []


async def test_a_job_is_cancelled_while_it_runs(queue: Client) -> None:
    made = await queue.enqueue("mail")
    await queue.lease("mail")
    job = await queue.cancel(made.id)
    assert (job.state, job.attempt) == (State.CANCELLED, 1)
    assert await queue.lease("mail") == []


async def test_a_lease_of_a_cancelled_job_does_not_expire(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    await queue.lease("mail")
    cancelled = await queue.cancel(made.id)
    clock.advance(3600)
    assert await queue.expire_now() == 0
    assert await queue.get(made.id) == cancelled


async def test_a_repeated_cancel_gets_the_same_answer(queue: Client, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    job = await queue.cancel(made.id)
    clock.advance(5)
    assert await queue.cancel(made.id) == job


@pytest.mark.parametrize("retry", [True, False])
async def test_a_job_that_finished_otherwise_cannot_be_cancelled(queue: Client, *, retry: bool) -> None:
    made = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await (queue.ack(lease) if retry else queue.nack(lease, retry=False))
    before = await queue.snapshot()
    with pytest.raises(Conflict) as refused:
        await queue.cancel(made.id)
    assert refused.value.facts["state"] == (State.SUCCEEDED if retry else State.DEAD)
    assert await queue.snapshot() == before


async def test_a_cancel_meant_for_an_earlier_life_is_refused(queue: Client) -> None:
    made = await queue.enqueue("mail")
    await queue.cancel(made.id)
    await queue.requeue(made.id)
    with pytest.raises(Conflict) as refused:
        await queue.cancel(made.id, requeues=0)
    assert (refused.value.facts["requeues"], refused.value.facts["state"]) == (1, State.QUEUED)
    assert (await queue.get(made.id)).state is State.QUEUED
    assert (await queue.cancel(made.id, requeues=1)).state is State.CANCELLED


async def test_the_history_names_who_cancelled(queue: Client) -> None:
    made = await queue.enqueue("mail")
    await queue.acting(actor="ann").cancel(made.id)
    assert [entry.event.actor for entry in await queue.history(made.id)] == [None, "ann"]


async def test_an_unknown_job_cannot_be_cancelled(queue: Client, clock: FakeClock) -> None:
    unknown = clock.job_id()
    for requeues in (None, 0):
        with pytest.raises(NotFound) as refused:
            await queue.cancel(unknown, requeues=requeues)
        assert refused.value.facts["job_id"] == unknown
