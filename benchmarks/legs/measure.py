"""What every leg measures in the same way. Uses nothing but the standard library: peers run it in their own environment."""

import asyncio
import json
import resource
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from task import Task

PAYLOAD = b"x" * 100
# A job is enqueued, leased and acknowledged.
OPERATIONS = 3
_REST_S = 0.3
Figures = dict[str, float]
One = Callable[[], Awaitable[object]]


def now_s() -> float:
    """Seconds, by a clock that all processes of this machine share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)  # noqa: TID251 a benchmark measures real time


class Meter:
    """Wall time and CPU time, of all threads, since it was made."""

    def __init__(self) -> None:
        self.began_s = now_s()
        self._cpu = time.process_time()

    def figures(self, jobs: int) -> Figures:
        """The rates up to now."""
        cpu_s = time.process_time() - self._cpu
        wall_s = now_s() - self.began_s
        return {"jobs_per_s": jobs / wall_s, "cpu_us": cpu_s / jobs * 1e6, "wall_s": wall_s}


class Requests:
    """What a queue asks of its store: counted, and answered as late as a far store would, once the measuring has begun."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._begun = False
        self._rested_at: dict[str, float] = {}
        # Writes that are under way, bytes of all writes, requests by kind, snapshots that are there.
        self.pending = 0
        self.bytes = 0
        self.counts: Counter[str] = Counter()
        self.snapshots = 0

    def begin(self) -> None:
        """Count from here. What came before was preparation, and cost no time."""
        self._begun = True
        self.bytes = 0
        self.counts.clear()
        self.snapshots = 0

    async def read(self, kind: str) -> None:
        """Somebody reads."""
        self.counts[kind] += 1
        if self._begun and self._task.read_s:
            await asyncio.sleep(self._task.read_s)

    async def write(self, kind: str, name: str, size: int) -> None:
        """Somebody writes; too soon after the last write of that name, it waits: no store is kinder than that."""
        self.counts[kind] += 1
        self.bytes += size
        if not self._begun:
            return
        if self._task.rest_s:
            begins_s = max(now_s(), self._rested_at.get(name, 0.0))
            self._rested_at[name] = begins_s + self._task.rest_s
            await asyncio.sleep(begins_s - now_s())
        if self._task.write_s:
            await asyncio.sleep(self._task.write_s)

    async def quiet(self) -> None:
        """Wait until the process rests: a snapshot belongs to the jobs that made it due, and is made after them."""
        busy = True
        while busy:
            cpu_s, size = time.process_time(), self.bytes
            await asyncio.sleep(_REST_S)
            busy = time.process_time() - cpu_s > _REST_S / 5 or self.bytes > size or self.pending > 0

    def figures(self, jobs: int) -> Figures:
        """Per job, or per operation as the name says."""
        kinds = {f"{kind}_per_job": count / jobs for kind, count in self.counts.items()}
        requests = sum(self.counts.values()) / jobs
        return {
            **kinds,
            "requests_per_job": requests,
            "bytes_per_operation": self.bytes / jobs / OPERATIONS,
            "snapshots": self.snapshots,
        }


async def closed_loop(one: One, task: Task) -> None:
    """So many callers, each beginning its next job when its last one is done."""
    rounds, rest = divmod(task.jobs, task.callers)
    assert rest == 0, "the callers do equal parts"

    async def caller() -> None:
        for _ in range(rounds):
            await one()

    await asyncio.gather(*(caller() for _ in range(task.callers)))


async def measured(task: Task, requests: Requests, *steps: One) -> Figures:
    """Each step as a closed loop of its own; what comes of them later, as a snapshot, is counted but not timed."""
    requests.begin()
    meter = Meter()
    for step in steps:
        await closed_loop(step, task)
    rates = meter.figures(task.jobs)
    await requests.quiet()
    return {**rates, **requests.figures(task.jobs), "began_s": meter.began_s}


async def waits(task: Task, requests: Requests, one: One) -> Figures:
    """How long each of so many calls takes, one after the other."""
    requests.begin()
    took_ms = []
    meter = Meter()
    for _ in range(task.jobs):
        began_s = now_s()
        await one()
        took_ms.append((now_s() - began_s) * 1e3)
    rates = meter.figures(task.jobs)
    return {**rates, **requests.figures(task.jobs), "p50_ms": statistics.median(took_ms), "max_ms": max(took_ms)}


def report(figures: Figures) -> None:
    """Print what was measured as one line of JSON, for the harness to read."""
    print(json.dumps({**figures, "peak_rss_mib": peak_rss_mib()}), flush=True)


def rss_bytes() -> int:
    """What the process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def peak_rss_mib() -> float:
    """The most the process held in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
