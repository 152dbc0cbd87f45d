"""The bell: who waits is woken in turn, and a ring is never lost with the one who was woken."""

import asyncio

import pytest

from penstock.broker.bell import Bell, Waiter
from penstock.testing import FakeClock
from tests.waiting import begun, settled


@pytest.fixture
def bell(clock: FakeClock) -> Bell:
    return Bell(clock)


async def _wait(waiter: Waiter, seconds: float = 60.0) -> None:
    await waiter.wait(seconds)


async def _stand(bell: Bell, *ropes: str) -> None:
    with bell.at(ropes) as waiter:
        await waiter.wait(60)


async def test_a_ring_wakes_the_one_who_waited_longest(bell: Bell) -> None:
    first, second = await begun(_stand(bell, "a")), await begun(_stand(bell, "a"))
    bell.ring("a")
    await settled()
    assert (first.done(), second.done()) == (True, False)
    bell.ring("a")
    await second


async def test_rings_wake_as_many_as_there_are_rings(bell: Bell) -> None:
    tasks = [await begun(_stand(bell, "a")) for _ in range(4)]
    bell.ring("a", 2)
    bell.ring("a")
    await settled()
    assert [task.done() for task in tasks] == [True, True, True, False]
    bell.ring_all("a")
    await tasks[3]


async def test_everybody_at_a_rope_can_be_woken(bell: Bell) -> None:
    tasks = [await begun(_stand(bell, "a")) for _ in range(3)]
    elsewhere = await begun(_stand(bell, "b"))
    bell.ring_all("a")
    await asyncio.gather(*tasks)
    assert not elsewhere.done()
    elsewhere.cancel()


async def test_a_ring_between_standing_and_waiting_is_heard(bell: Bell) -> None:
    with bell.at(["a"]) as waiter:
        bell.ring("a")
        await waiter.wait(60)


async def test_each_ring_is_heard_once(bell: Bell) -> None:
    with bell.at(["a"]) as waiter:
        bell.ring("a")
        await waiter.wait(60)
        waiting = await begun(_wait(waiter))
        assert not waiting.done()
        bell.ring("a")
        await waiting


async def test_a_ring_at_any_of_its_ropes_wakes_a_waiter(bell: Bell) -> None:
    for rope in ("a", "b"):
        task = await begun(_stand(bell, "a", "b"))
        bell.ring(rope)
        await task


async def test_a_wait_ends_when_its_time_is_up(bell: Bell, clock: FakeClock) -> None:
    with bell.at(["a"]) as waiter:
        waiting = await begun(_wait(waiter, 5))
        clock.advance(4.999)
        await settled()
        assert not waiting.done()
        clock.advance(0.001)
        await waiting


async def test_one_who_is_cancelled_while_asleep_leaves_no_trace(bell: Bell) -> None:
    task = await begun(_stand(bell, "a"))
    assert not bell.silent
    task.cancel()
    await settled()
    assert bell.silent


async def test_one_who_is_woken_and_cancelled_passes_the_ring_on(bell: Bell) -> None:
    first, second = await begun(_stand(bell, "a")), await begun(_stand(bell, "a"))
    bell.ring("a")
    first.cancel()
    await second
    assert first.cancelled()


async def test_one_who_leaves_without_looking_passes_the_ring_on(bell: Bell) -> None:
    second = None
    with bell.at(["a"]):
        second = await begun(_stand(bell, "a"))
        bell.ring("a")
    await second


async def test_one_who_has_looked_passes_nothing_on(bell: Bell) -> None:
    with bell.at(["a"]) as waiter:
        second = await begun(_stand(bell, "a"))
        bell.ring("a")
        await waiter.wait(60)
    await settled()
    assert not second.done()
    second.cancel()


async def test_a_ring_that_nobody_hears_is_gone(bell: Bell) -> None:
    bell.ring("a")
    bell.ring_all("a")
    waiting = await begun(_stand(bell, "a"))
    assert not waiting.done()
    waiting.cancel()
    await settled()
    assert bell.silent
