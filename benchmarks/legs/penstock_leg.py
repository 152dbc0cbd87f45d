"""Penstock: closed, drain, waits, queued or finished, as ``task.py`` says."""

import asyncio
import gc
import statistics
from functools import partial

from measure import Figures, Meter, Requests, measured, now_s, report, rss_bytes, waits
from penstock_stores import both, filled, opened, put, take
from task import Task, given

from penstock import Client

STEPS = {"closed": (both,), "drain": (put, take), "waits": (put,)}
_SAMPLE_S = 1.0


async def compared(task: Task, queue: Client, requests: Requests) -> Figures:
    """What the peer's leg does too: preload, measure, and see that nothing was lost."""
    # The first commit of a process costs more: it probes the bucket, and there may be no log yet.
    await both(queue)
    await filled(queue, task.depth)
    await requests.quiet()
    measure = waits if task.workload == "waits" else measured
    figures = await measure(task, requests, *(partial(step, queue) for step in STEPS[task.workload]))
    [stats] = await queue.stats()
    done, left = (1, task.jobs) if task.workload == "waits" else (task.jobs + 1, 0)
    assert (stats.succeeded, stats.queued) == (done, task.depth + left)
    return figures


async def queued(task: Task, queue: Client, _: Requests) -> Figures:
    """Memory per queued job, payload included."""
    await filled(queue, 1_000)
    gc.collect()
    before = rss_bytes()
    meter = Meter()
    await filled(queue, task.jobs)
    return {**meter.figures(task.jobs), "rss_per_job": (rss_bytes() - before) / task.jobs}


async def finished(task: Task, queue: Client, requests: Requests) -> Figures:
    """Jobs at a steady rate: how memory grows with those that are finished."""
    total = int(task.seconds * task.jobs_per_s) // task.callers * task.callers
    await both(queue)
    gc.collect()
    requests.begin()
    meter = Meter()
    samples = [(0, rss_bytes())]
    done = 0

    async def caller(number: int) -> None:
        nonlocal done
        for turn in range(number, total, task.callers):
            await asyncio.sleep(meter.began_s + turn / task.jobs_per_s - now_s())
            await both(queue)
            done += 1

    async def watch() -> None:
        while done < total:
            await asyncio.sleep(_SAMPLE_S)
            samples.append((done, rss_bytes()))

    await asyncio.gather(watch(), *(caller(number) for number in range(task.callers)))
    return {**meter.figures(total), **requests.figures(total), **_growth(samples)}


def _growth(samples: list[tuple[int, int]]) -> Figures:
    """Bytes per finished job as a straight line through the samples, and through each half of them."""
    half = len(samples) // 2
    parts = {"": samples, "_first_half": samples[:half], "_second_half": samples[half:]}
    slopes = {
        f"rss_per_job{name}": statistics.linear_regression(*zip(*part, strict=True))[0] for name, part in parts.items()
    }
    last = len(samples) - 1
    tenths = {f"rss_mib_{tenth}0%": samples[last * tenth // 10][1] / 2**20 for tenth in range(11)}
    return {**slopes, **tenths, "finished": samples[-1][0]}


WORKLOADS = {"queued": queued, "finished": finished}


async def run(task: Task) -> Figures:
    """Open the store and do the work."""
    async with opened(task) as (queue, requests):
        return await WORKLOADS.get(task.workload, compared)(task, queue, requests)


def main() -> None:
    """Do the task on the loop it asks for."""
    task = given()
    if task.loop == "uvloop":
        import uvloop  # noqa: PLC0415 only where the task asks for it

        uvloop.install()
    report(asyncio.run(run(task)))


if __name__ == "__main__":
    main()
