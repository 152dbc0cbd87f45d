"""jqueue on its in-memory storage: ``jqueue_memory.py closed|drain DEPTH JOBS``."""

import asyncio
import sys

from jqueue import BrokerQueue, InMemoryStorage
from measure import PAYLOAD, Meter, closed_loop


async def filled(queue: BrokerQueue, depth: int) -> None:
    """Preload so many jobs under the same entry point."""
    for _ in range(depth // 500):
        await asyncio.gather(*(queue.enqueue("bench", PAYLOAD) for _ in range(500)))


async def closed(depth: int, jobs: int) -> None:
    """Enqueue, dequeue and ack, one after another, by each caller, with ``depth`` jobs waiting."""
    async with BrokerQueue(InMemoryStorage()) as queue:
        await filled(queue, depth)

        async def one() -> None:
            await queue.enqueue("bench", PAYLOAD)
            [job] = await queue.dequeue("bench")
            await queue.ack(job.id)

        meter = Meter()
        await closed_loop(one, jobs)
        meter.report(jobs)
        assert len((await queue.read_state()).jobs) == depth


async def drain(_: int, jobs: int) -> None:
    """All enqueues first, then all dequeues and acks."""
    async with BrokerQueue(InMemoryStorage()) as queue:

        async def put() -> None:
            await queue.enqueue("bench", PAYLOAD)

        async def take() -> None:
            [job] = await queue.dequeue("bench")
            await queue.ack(job.id)

        meter = Meter()
        await closed_loop(put, jobs)
        await closed_loop(take, jobs)
        meter.report(jobs)
        assert not (await queue.read_state()).jobs


if __name__ == "__main__":
    workload = {"closed": closed, "drain": drain}[sys.argv[1]]
    asyncio.run(workload(int(sys.argv[2]), int(sys.argv[3])))
