"""What every leg measures in the same way. Uses nothing but the standard library: peers run it in their own environment."""

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

CALLERS = 50
PAYLOAD = b"x" * 100


class Meter:
    """Wall time and CPU time between two points."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()  # noqa: TID251 a benchmark measures real time
        self._cpu = time.process_time()

    def report(self, jobs: int, **more: float) -> None:
        """Print the rates as one line of JSON."""
        wall_s = time.perf_counter() - self._wall  # noqa: TID251 as above
        cpu_s = time.process_time() - self._cpu
        print(
            json.dumps(
                {"jobs_per_s": jobs / wall_s, "cpu_us": cpu_s / jobs * 1e6, "peak_rss_mib": peak_rss_mib(), **more}
            )
        )


async def closed_loop(one: Callable[[], Awaitable[None]], jobs: int) -> None:
    """So many callers, each beginning its next job when its last one is done."""

    async def caller() -> None:
        for _ in range(jobs // CALLERS):
            await one()

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


def rss_bytes() -> int:
    """What the process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def peak_rss_mib() -> float:
    """The most the process held in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
