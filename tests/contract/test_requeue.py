"""requeue: an operator gives a finished job a new life, and every life is numbered (G7, rule 16)."""

from datetime import timedelta

import pytest

from penstock import Client, Conflict, Invalid, Job, NotFound, State
from penstock.testing import FakeClock


async def _finished(queue: Client, state: State) -> Job:
    made = await queue.enqueue("mail", {"n": 1})
    [lease] = await queue.lease("mail")
    if state is State.SUCCEEDED:
        await queue.ack(lease, "done")
    elif state is State.DEAD:
        await queue.nack(lease, "no", retry=False)
    else:
        await queue.heartbeat(lease, progress=0.5)
        await queue.cancel(made.id)
    return await queue.get(made.id)


@pytest.mark.parametrize("state", [State.DEAD, State.CANCELLED, State.SUCCEEDED])
async def test_a_requeued_job_starts_again_from_its_first_attempt(queue: Client, state: State) -> None:
    old = await _finished(queue, state)
    new = await queue.requeue(old.id, again=state is State.SUCCEEDED)
    assert (new.state, new.attempt, new.requeues) == (State.QUEUED, 0, 1)
    assert (new.reason, new.error, new.error_fp, new.result, new.progress, new.finished_at) == (None,) * 6
    assert (new.lease_no, new.rev, new.payload) == (old.lease_no, old.rev + 1, {"n": 1})
    [lease] = await queue.lease("mail")
    assert (lease.job.id, lease.job.attempt, lease.job.lease_no) == (old.id, 1, 2)


async def test_a_job_that_succeeded_runs_again_only_when_that_is_said(queue: Client) -> None:
    old = await _finished(queue, State.SUCCEEDED)
    with pytest.raises(Conflict, match="run again"):
        await queue.requeue(old.id)
    assert await queue.get(old.id) == old


@pytest.mark.parametrize("leased", [True, False])
async def test_a_job_that_is_not_finished_cannot_be_requeued(queue: Client, *, leased: bool) -> None:
    made = await queue.enqueue("mail")
    if leased:
        await queue.lease("mail")
    before = await queue.snapshot()
    with pytest.raises(Conflict, match="only a finished job"):
        await queue.requeue(made.id, again=True)
    assert await queue.snapshot() == before


async def test_a_repeated_requeue_gets_the_same_answer_and_no_second_life(queue: Client) -> None:
    old = await _finished(queue, State.DEAD)
    new = await queue.requeue(old.id, requeues=0)
    assert await queue.requeue(old.id, requeues=0) == new
    [lease] = await queue.lease("mail")
    await queue.nack(lease, retry=False)
    assert (await queue.requeue(old.id, requeues=0)).state is State.DEAD
    assert (await queue.get(old.id)).requeues == 1


async def test_a_requeue_meant_for_an_earlier_life_is_refused(queue: Client) -> None:
    old = await _finished(queue, State.CANCELLED)
    for _ in range(2):
        await queue.requeue(old.id)
        await queue.cancel(old.id)
    before = await queue.snapshot()
    with pytest.raises(Conflict) as refused:
        await queue.requeue(old.id, requeues=0)
    assert refused.value.facts["requeues"] == 2
    assert await queue.snapshot() == before


async def test_a_life_that_has_not_begun_is_refused(queue: Client) -> None:
    old = await _finished(queue, State.CANCELLED)
    with pytest.raises(Conflict):
        await queue.requeue(old.id, requeues=5)


async def test_a_requeue_may_wait(queue: Client, clock: FakeClock) -> None:
    old = await _finished(queue, State.DEAD)
    new = await queue.requeue(old.id, delay_s=60)
    assert new.run_at == clock.now() + timedelta(seconds=60)
    assert await queue.lease("mail") == []
    clock.advance(60)
    assert len(await queue.lease("mail")) == 1


async def test_a_requeue_may_bring_another_payload_and_the_history_has_it(queue: Client) -> None:
    old = await _finished(queue, State.DEAD)
    new = await queue.requeue(old.id, payload={"n": 2})
    assert (new.payload, new.content_type) == ({"n": 2}, "application/json")
    entry = (await queue.history(old.id))[-1]
    assert getattr(entry.event, "payload", None) == b'{"n":2}'
    assert (await queue.history(old.id))[0].event.payload == b'{"n":1}'  # type: ignore[union-attr] # the first is enqueued


async def test_a_requeue_may_bring_bytes_with_their_content_type(queue: Client) -> None:
    old = await _finished(queue, State.DEAD)
    new = await queue.requeue(old.id, payload=b"\x00\xff", content_type="image/png")
    assert (new.payload, new.content_type) == (b"\x00\xff", "image/png")


async def test_bytes_without_a_content_type_are_plain_bytes_as_in_an_enqueue(queue: Client) -> None:
    old = await _finished(queue, State.DEAD)
    new = await queue.requeue(old.id, payload=b"\x00\xff")
    assert (new.payload, new.content_type) == (b"\x00\xff", "application/octet-stream")


async def test_a_content_type_without_a_payload_is_refused(queue: Client) -> None:
    old = await _finished(queue, State.DEAD)
    with pytest.raises(Invalid):
        await queue.requeue(old.id, content_type="image/png")


async def test_a_requeue_does_not_ask_for_room(queue: Client) -> None:
    await queue.set_queue("mail", max_depth=1)
    old = await _finished(queue, State.DEAD)
    await queue.enqueue("mail", 2)
    assert (await queue.requeue(old.id)).state is State.QUEUED


async def test_the_history_shows_every_life_and_who_gave_it(queue: Client) -> None:
    old = await _finished(queue, State.DEAD)
    await queue.acting(actor="ann").requeue(old.id)
    entries = await queue.history(old.id)
    assert [type(entry.event).__name__ for entry in entries] == ["Enqueued", "Leased", "Died", "Requeued"]
    assert entries[-1].event.actor == "ann"


async def test_an_unknown_job_cannot_be_requeued(queue: Client, clock: FakeClock) -> None:
    with pytest.raises(NotFound):
        await queue.requeue(clock.job_id(), requeues=0)
