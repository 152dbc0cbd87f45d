"""The loop of the simulation keeps the promises that the simulation relies on."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import repeat
from typing import Any

import pytest

from tests.simulation import loop as loops
from tests.simulation.loop import SimLoop
from tests.simulation.swap import swapped


def loop(seed: int = 0) -> SimLoop:
    return SimLoop(seed)  # type: ignore[abstract] # it has what is used of a loop, and no more


def test_waiting_takes_no_real_time() -> None:
    async def wait() -> float:
        await asyncio.sleep(5_000)
        return asyncio.get_running_loop().time()

    assert loop().run_until_complete(wait()) == 5_000


def test_a_crashed_process_runs_nothing_more_not_even_finally() -> None:
    sim, ran = loop(), []

    async def work() -> None:
        try:
            await asyncio.sleep(2)
            ran.append("work")
        finally:
            if sim.is_running():
                ran.append("finally")

    async def outside() -> None:
        process, context = sim.process("p")
        sim.create_task(work(), context=context)
        await asyncio.sleep(1)
        sim.crash(process)
        await asyncio.sleep(5)

    sim.run_until_complete(outside())
    assert ran == []


def test_a_paused_process_goes_on_where_it_stood_and_time_does_not_wait_for_it() -> None:
    sim, ran = loop(), []

    async def work() -> None:
        await asyncio.sleep(2)
        ran.append(sim.time())

    async def outside() -> None:
        process, context = sim.process("p")
        task = sim.create_task(work(), context=context)
        await asyncio.sleep(1)
        process.paused = True
        await asyncio.sleep(9)
        process.paused = False
        await task

    sim.run_until_complete(outside())
    assert ran == [10]


def test_timeouts_groups_and_locks_work() -> None:
    async def use() -> str:
        lock = asyncio.Lock()
        async with lock, asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3))
        try:
            async with asyncio.timeout(1):
                await asyncio.gather(asyncio.sleep(5), asyncio.Event().wait())
        except TimeoutError:
            return "timed out"
        return "finished"

    assert loop().run_until_complete(use()) == "timed out"


def test_processes_take_turns_by_the_seed() -> None:
    def order(seed: int) -> list[str]:
        sim, ran = loop(seed), []

        async def work(name: str) -> None:
            for _ in range(10):
                await asyncio.sleep(0)
                ran.append(name)

        async def outside() -> None:
            tasks = [sim.create_task(work(name), context=sim.process(name)[1]) for name in ("a", "b")]
            await asyncio.gather(*tasks)

        sim.run_until_complete(outside())
        return ran

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


async def _polls(seconds: float) -> None:
    for _ in repeat(None):
        await asyncio.sleep(seconds)


async def _hangs() -> None:
    for _ in repeat(None):
        with suppress(Exception):
            sum(1 for _ in repeat(None))


@pytest.mark.parametrize("endless", [lambda: _polls(60), lambda: _polls(0), _hangs], ids=["polls", "spins", "hangs"])
def test_what_never_ends_is_broken_off(endless: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with swapped(loops, "MOST_CALLS", 20_000), swapped(loops, "MOST_CPU_S", 0.2), pytest.raises(loops.Stuck):
        loop().run_until_complete(endless())
