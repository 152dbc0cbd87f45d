"""Tokens (G5, G6, rule 17): one valid lease, one accepted end, and whoever lost the lease changes nothing."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from penstock import Client, Ended, Lease, LeaseLost, NewJob, State
from penstock.domain.job import Verb
from penstock.testing import FakeClock

End = Callable[[Client, Lease], Awaitable[Ended]]

ENDINGS: dict[Verb, End] = {
    Verb.ACK: lambda queue, lease: queue.ack(lease, {"ok": True}),
    Verb.NACK: lambda queue, lease: queue.nack(lease, "no", delay_s=0),
    Verb.RELEASE: lambda queue, lease: queue.release(lease),
}
each_ending = pytest.mark.parametrize("verb", ENDINGS)


async def _refused(queue: Client, lease: Lease, verb: Verb) -> LeaseLost:
    """Neither this end nor a heartbeat is taken, and nothing changes."""
    before = await queue.snapshot()
    with pytest.raises(LeaseLost) as lost:
        await ENDINGS[verb](queue, lease)
    with pytest.raises(LeaseLost):
        await queue.heartbeat(lease, progress=0.5)
    assert await queue.snapshot() == before
    return lost.value


@each_ending
async def test_a_worker_that_lost_its_lease_changes_nothing(queue: Client, clock: FakeClock, verb: Verb) -> None:
    job = await queue.enqueue("mail")
    [first] = await queue.lease("mail", lease_s=30)
    clock.advance(31)
    assert await queue.expire_now() == 1
    await _refused(queue, first, verb)
    clock.advance(3600)
    [second] = await queue.lease("mail")
    await _refused(queue, first, verb)
    assert (await queue.ack(second)).state is State.SUCCEEDED
    await _refused(queue, first, verb)
    assert (await queue.get(job.id)).lease_no == 2


@each_ending
async def test_the_token_of_another_job_of_the_same_call_is_refused(queue: Client, verb: Verb) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(2))
    one, two = await queue.lease("mail", limit=2)
    await _refused(queue, replace(one, token=two.token), verb)
    await _refused(queue, replace(two, token=one.token), verb)


@each_ending
@pytest.mark.parametrize(
    "token",
    [
        "x",
        ".",
        ".0",
        "{call}",
        "{call}.",
        "{call}.-1",
        "{call}.x",
        "{call}.1",
        "{call}.00",
        "{call}.00000",
        "{call}.\N{ARABIC-INDIC DIGIT ZERO}",
        "x{call}.0",
        "\ud800.0",
        "é.0",
    ],
)
async def test_a_token_that_no_lease_gave_is_refused(queue: Client, verb: Verb, token: str) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    call = lease.token.rpartition(".")[0]
    await _refused(queue, replace(lease, token=token.format(call=call)), verb)
    assert (await queue.ack(lease)).state is State.SUCCEEDED


@each_ending
async def test_a_token_is_good_until_an_expiry_is_committed(queue: Client, clock: FakeClock, verb: Verb) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=30)
    clock.advance(3600)
    await ENDINGS[verb](queue, lease)
    assert (await queue.get(lease.job.id)).state is not State.LEASED


@each_ending
async def test_the_same_end_again_gets_the_same_answer(queue: Client, verb: Verb) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    first = await ENDINGS[verb](queue, lease)
    before = await queue.snapshot()
    assert await ENDINGS[verb](queue, lease) == first
    assert await queue.snapshot() == before


@pytest.mark.parametrize("verb", [Verb.NACK, Verb.RELEASE])
async def test_it_does_so_until_another_attempt_has_ended(queue: Client, verb: Verb) -> None:
    await queue.enqueue("mail")
    [first] = await queue.lease("mail")
    answer = await ENDINGS[verb](queue, first)
    [second] = await queue.lease("mail")
    assert await ENDINGS[verb](queue, first) == answer
    await ENDINGS[verb](queue, second)
    with pytest.raises(LeaseLost):
        await ENDINGS[verb](queue, first)


@pytest.mark.parametrize(("first", "then"), [(a, b) for a in ENDINGS for b in ENDINGS if a is not b])
async def test_an_attempt_ends_one_way_only(queue: Client, first: Verb, then: Verb) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await ENDINGS[first](queue, lease)
    await _refused(queue, lease, then)


@each_ending
async def test_ending_a_cancelled_job_says_that_it_was_cancelled(queue: Client, verb: Verb) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.cancel(job.id)
    with pytest.raises(LeaseLost) as lost:
        await ENDINGS[verb](queue, lease)
    assert lost.value.facts["state"] == State.CANCELLED
    assert (await queue.get(job.id)).state is State.CANCELLED


@each_ending
async def test_a_stale_token_does_not_learn_of_a_later_cancel(queue: Client, clock: FakeClock, verb: Verb) -> None:
    job = await queue.enqueue("mail")
    [stale] = await queue.lease("mail")
    clock.advance(30)
    await queue.expire_now()
    await queue.cancel(job.id)
    lost = await _refused(queue, stale, verb)
    assert "state" not in lost.facts


@each_ending
async def test_an_unknown_job_looks_like_a_lost_lease(queue: Client, clock: FakeClock, verb: Verb) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await _refused(queue, replace(lease, job=replace(lease.job, id=clock.job_id())), verb)


@each_ending
async def test_an_ending_of_an_earlier_life_is_stale_once_a_new_attempt_has_ended(queue: Client, verb: Verb) -> None:
    job = await queue.enqueue("mail")
    [first] = await queue.lease("mail")
    await ENDINGS[verb](queue, first)
    if verb is not Verb.ACK:
        await queue.cancel(job.id)
    await queue.requeue(job.id, again=True)
    [second] = await queue.lease("mail")
    await queue.ack(second)
    await _refused(queue, first, verb)
