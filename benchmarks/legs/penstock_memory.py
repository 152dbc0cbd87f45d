"""Penstock on memory://: ``penstock_memory.py closed|drain|rss DEPTH JOBS [uvloop]``."""

import asyncio
import gc
import sys

from measure import PAYLOAD, Meter, closed_loop, rss_bytes

import penstock


async def filled(queue: penstock.Client, depth: int) -> None:
    """Preload so many jobs in the same queue."""
    for _ in range(depth // 500):
        await queue.enqueue_many([penstock.NewJob("bench", PAYLOAD) for _ in range(500)])


async def closed(depth: int, jobs: int) -> None:
    """Enqueue, lease and ack, one after another, by each caller, with ``depth`` jobs waiting."""
    async with penstock.connect("memory://") as queue:
        await filled(queue, depth)

        async def one() -> None:
            await queue.enqueue("bench", PAYLOAD)
            [lease] = await queue.lease("bench")
            await queue.ack(lease)

        meter = Meter()
        await closed_loop(one, jobs)
        meter.report(jobs)
        [stats] = await queue.stats()
        assert (stats.succeeded, stats.queued) == (jobs, depth)


async def drain(_: int, jobs: int) -> None:
    """All enqueues first, then all leases and acks."""
    async with penstock.connect("memory://") as queue:

        async def put() -> None:
            await queue.enqueue("bench", PAYLOAD)

        async def take() -> None:
            [lease] = await queue.lease("bench")
            await queue.ack(lease)

        meter = Meter()
        await closed_loop(put, jobs)
        await closed_loop(take, jobs)
        meter.report(jobs)
        [stats] = await queue.stats()
        assert (stats.succeeded, stats.queued) == (jobs, 0)


async def rss(_: int, jobs: int) -> None:
    """Memory per queued job, payload included."""
    async with penstock.connect("memory://") as queue:
        await filled(queue, 1000)
        gc.collect()
        before = rss_bytes()
        meter = Meter()
        await filled(queue, jobs)
        meter.report(jobs, rss_per_job=(rss_bytes() - before) / jobs)


if __name__ == "__main__":
    if "uvloop" in sys.argv:
        import uvloop

        uvloop.install()
    workload = {"closed": closed, "drain": drain, "rss": rss}[sys.argv[1]]
    asyncio.run(workload(int(sys.argv[2]), int(sys.argv[3])))
