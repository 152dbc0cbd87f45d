"""Penstock when little is asked of it: stall or idle, as ``task.py`` says."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from measure import Figures, Requests, now_s, report
from penstock_stores import filled, opened, put
from task import Task, given

from penstock import Client
from penstock.stores.log.store import DIRECTORY
from penstock.testing import FakeClock

_NEVER = 1 << 60
_MIB = 1 << 20
_BETWEEN_ENQUEUES_S = 0.003
_TICK_S = 0.001
# So often everybody gets a turn after each step of the fake clock; nothing here takes as many.
_TURNS = 12
_IDLE_QUEUE = "nobody-fills-this"


class Tunable:
    """The numbers of a directory, of which those for snapshots are changed when one is wanted."""

    snapshot_bytes = _NEVER
    snapshot_records = _NEVER

    def __getattr__(self, name: str) -> object:
        return getattr(DIRECTORY, name)


async def stall(task: Task) -> Figures:
    """The longest enqueue and the longest gap of a ticker: for some seconds without a snapshot, then during one."""
    options = Tunable()
    async with opened(task, options=options) as (queue, requests):
        await filled(queue, task.depth)
        over_s = now_s() + task.seconds
        before = await _longest(queue, lambda: now_s() > over_s)
        requests.begin()
        options.snapshot_bytes = _MIB
        began_s = now_s()
        during = await _longest(queue, lambda: requests.snapshots > 0)
        return {
            **{f"quiet_{name}": value for name, value in before.items()},
            **during,
            "snapshot_s": now_s() - began_s,
            "snapshot_mib": requests.bytes / _MIB,
        }


async def _longest(queue: Client, over: Callable[[], bool]) -> Figures:
    enqueue_s, gap_s = [0.0], [0.0]

    async def enqueue() -> None:
        # From when it was due: one that could not even be sent, since the loop stood still, has waited too.
        while not over():
            due_s = now_s() + _BETWEEN_ENQUEUES_S
            await asyncio.sleep(_BETWEEN_ENQUEUES_S)
            await put(queue)
            enqueue_s.append(now_s() - due_s)

    async def tick() -> None:
        while not over():
            began_s = now_s()
            await asyncio.sleep(_TICK_S)
            gap_s.append(now_s() - began_s - _TICK_S)

    await asyncio.gather(enqueue(), tick())
    return {"enqueue_ms": max(enqueue_s) * 1e3, "gap_ms": max(gap_s) * 1e3, "enqueues": len(enqueue_s) - 1}


async def idle(task: Task) -> Figures:
    """So many seconds of a clock that we move, with as many waiting workers as there are callers."""
    clock = FakeClock()
    async with opened(task, clock) as (queue, requests):
        await filled(queue, task.depth)
        workers = [asyncio.create_task(_waiting(queue)) for _ in range(task.callers)]
        await _turns()
        requests.begin()
        step_s = 1.0 if task.store == "far" else 0.02
        for _ in range(round(task.seconds / step_s)):
            clock.advance(step_s)
            await _turns()
        figures = _asked(requests)
        for worker in workers:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
        return figures


def _asked(requests: Requests) -> Figures:
    writes = sum(requests.counts[kind] for kind in ("put", "delete"))
    return {"writes": writes, "gets": requests.counts["get"], "lists": requests.counts["list"]}


async def _waiting(queue: Client) -> None:
    while True:
        assert not await queue.lease(_IDLE_QUEUE, wait_s=20)


async def _turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


if __name__ == "__main__":
    asked = given()
    report(asyncio.run({"stall": stall, "idle": idle}[asked.workload](asked)))
