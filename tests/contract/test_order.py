"""Order (G9, rule 8): by priority, then first in, first out; delayed and retried jobs by their time."""

import pytest

from penstock import Client, NewJob
from penstock.testing import FakeClock


async def _drained(queue: Client, *names: str) -> list[int]:
    return [lease.job.payload for lease in await queue.lease(names or ("mail",), limit=1_000)]


async def test_first_in_is_first_out(queue: Client, clock: FakeClock) -> None:
    for number in range(10):
        await queue.enqueue("mail", number)
        clock.advance(0.5 * (number % 2))
    assert await _drained(queue) == list(range(10))


async def test_also_over_several_calls(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(10))
    taken = []
    while leases := await queue.lease("mail", limit=3):
        taken += [lease.job.payload for lease in leases]
    assert taken == list(range(10))


async def test_also_over_the_kinds_of_a_queue(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number, kind=f"kind-{number % 3}") for number in range(9))
    assert await _drained(queue) == list(range(9))


async def test_a_smaller_priority_runs_first(queue: Client) -> None:
    await queue.enqueue_many(
        NewJob("mail", number, priority=priority, kind=f"kind-{number % 2}")
        for number, priority in enumerate([0, 5, -5, 0, -32_768, 32_767, -5])
    )
    assert await _drained(queue) == [4, 2, 6, 0, 3, 1, 5]


async def test_more_priorities_than_anybody_needs_keep_their_order(queue: Client) -> None:
    for _ in range(2):
        await queue.enqueue_many(NewJob("mail", number, priority=(number * 37) % 100) for number in range(100))
        assert [(number * 37) % 100 for number in await _drained(queue)] == list(range(100))
        assert await _drained(queue) == []


async def test_a_delayed_job_stands_where_it_would_if_it_had_come_at_its_time(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", 2, delay_s=2)
    await queue.enqueue("mail", 0)
    clock.advance(1)
    await queue.enqueue("mail", 1)
    clock.advance(2)
    await queue.enqueue("mail", 3)
    assert await _drained(queue) == [0, 1, 2, 3]


async def test_delayed_jobs_run_in_the_order_of_their_times(queue: Client, clock: FakeClock) -> None:
    for number in (3, 1, 2, 0):
        await queue.enqueue("mail", number, delay_s=10 + number)
    clock.advance(60)
    assert await _drained(queue) == [0, 1, 2, 3]


async def test_jobs_delayed_to_one_moment_run_in_the_order_they_came(queue: Client, clock: FakeClock) -> None:
    for number in range(4):
        await queue.enqueue("mail", number, delay_s=10 - number)
        clock.advance(1)
    clock.advance(60)
    assert await _drained(queue) == [0, 1, 2, 3]


async def test_a_retried_job_takes_its_place_by_its_time(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", 1)
    [lease] = await queue.lease("mail")
    await queue.nack(lease, delay_s=5)
    clock.advance(4)
    await queue.enqueue("mail", 0)
    clock.advance(2)
    await queue.enqueue("mail", 2)
    assert await _drained(queue) == [0, 1, 2]


@pytest.mark.parametrize("back", ["release", "requeue"])
async def test_a_job_that_comes_back_stands_at_the_end(queue: Client, back: str) -> None:
    first, _ = await queue.enqueue_many(NewJob("mail", number) for number in (2, 1))
    [lease] = await queue.lease("mail")
    if back == "release":
        await queue.release(lease)
    else:
        await queue.cancel(first.id)
        await queue.requeue(first.id)
    assert await _drained(queue) == [1, 2]


async def test_a_job_that_is_run_now_stands_at_the_end_of_the_ready_ones(queue: Client) -> None:
    last = await queue.enqueue("mail", 2, delay_s=60)
    await queue.enqueue_many(NewJob("mail", number) for number in (0, 1))
    await queue.update(last.id, now=True)
    assert await _drained(queue) == [0, 1, 2]


async def test_a_job_that_is_due_keeps_its_place_when_it_is_told_to_run_now(queue: Client, clock: FakeClock) -> None:
    first = await queue.enqueue("mail", 0, delay_s=1)
    clock.advance(2)
    await queue.enqueue("mail", 1)
    await queue.update(first.id, now=True)
    assert await _drained(queue) == [0, 1]


async def test_a_time_in_the_past_gives_no_place_before_those_who_wait(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail", 0)
    late = await queue.enqueue("mail", 1)
    await queue.update(late.id, run_at=clock.now().replace(year=2000))
    assert await _drained(queue) == [0, 1]


async def test_preferred_queues_come_first_whatever_the_priority(queue: Client) -> None:
    await queue.enqueue_many([NewJob("low", 2, priority=-9), NewJob("high", 0), NewJob("high", 1, priority=9)])
    assert await _drained(queue, "high", "low") == [0, 1, 2]
