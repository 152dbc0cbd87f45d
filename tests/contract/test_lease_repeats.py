"""A repeated lease call (rule 15): the leases it holds already, perhaps none, and never a new one."""

import asyncio

from penstock import Client, Lease, NewJob
from penstock.testing import FakeClock

CALL = "0d6e1c1b-4a7e-4b57-9d3c-8a1f2e3d4c5b"


async def _call(queue: Client) -> list[Lease]:
    return await queue.lease("mail", limit=2, request_id=CALL)


def _held(leases: list[Lease]) -> list[tuple[str, str, int]]:
    return [(lease.job.id, lease.token, lease.job.lease_no) for lease in leases]


async def test_a_repeated_call_returns_the_same_leases(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    first = await _call(queue)
    before = await queue.snapshot()
    assert _held(await _call(queue)) == _held(first)
    assert await queue.snapshot() == before


async def test_two_calls_at_once_with_one_request_id_are_one_call(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    first, second = await asyncio.gather(_call(queue), _call(queue))
    assert len(first) == 2
    assert _held(first) == _held(second)


async def test_what_was_acked_since_is_left_out_and_nothing_is_added(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    one, two = await _call(queue)
    await queue.ack(one)
    assert _held(await _call(queue)) == _held([two])
    await queue.ack(two)
    assert await _call(queue) == []


async def test_a_call_whose_jobs_failed_or_were_released_gets_nothing_new(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    one, two = await _call(queue)
    await queue.nack(one, delay_s=0)
    await queue.release(two)
    assert await _call(queue) == []


async def test_a_call_whose_leases_expired_gets_nothing_new(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    await _call(queue)
    clock.advance(30)
    assert await queue.expire_now() == 2
    assert await _call(queue) == []


async def test_a_call_whose_jobs_were_cancelled_gets_nothing_new(queue: Client) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    await _call(queue)
    await queue.cancel(jobs[0].id)
    await queue.cancel(jobs[1].id)
    assert await _call(queue) == []


async def test_a_call_is_known_by_what_it_still_holds_when_another_took_the_rest(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(2))
    one, two = await _call(queue)
    await queue.release(one)
    [taken] = await queue.lease("mail", limit=9)
    assert taken.job.id == one.job.id
    await queue.enqueue("mail", 3)
    assert _held(await _call(queue)) == _held([two])


async def test_the_same_request_id_of_another_tenant_is_another_call(queue: Client, other: Client) -> None:
    await queue.enqueue("mail", 1)
    await other.enqueue("mail", 2)
    [mine] = await _call(queue)
    [theirs] = await _call(other)
    assert (mine.job.payload, theirs.job.payload) == (1, 2)


async def test_a_call_that_found_nothing_may_find_something_when_repeated(queue: Client) -> None:
    assert await _call(queue) == []
    await queue.enqueue("mail")
    assert len(await _call(queue)) == 1


async def test_a_repeat_may_ask_for_something_else_and_gets_what_the_call_got(queue: Client) -> None:
    await queue.enqueue_many([NewJob("mail", 1), NewJob("mail", 2), NewJob("sms", 3)])
    first = await _call(queue)
    again = await queue.lease("sms", limit=9, lease_s=99, request_id=CALL)
    assert _held(again) == _held(first)
