"""Memory, 50 callers: ours over jqueue at several depths, ours over ours at depth, and memory per job."""

from collections.abc import Iterator
from typing import Final

from benchmarks import environments
from benchmarks.interleave import Leg, Turns
from benchmarks.legs.task import Task
from benchmarks.places import Places
from benchmarks.table import Goal, Row

TITLE: Final = "In memory, 50 callers, jobs of 100 bytes, over jqueue 1.0.0"
# (depth, jobs of ours, jobs of the peer, must, aim): the peer gets fewer jobs where it is slow; rates are per job.
_DEPTHS: Final = (
    (0, 20_000, 5_000, 3, 4),
    (1_000, 20_000, 500, 50, 80),
    (10_000, 20_000, 50, 500, 800),
)


def rows(turns: Turns, _: Places) -> Iterator[Row]:
    """All comparisons in memory, one by one."""
    ours, peer = environments.penstock(), environments.jqueue()

    def row(name: str, goal: Goal, task: Task, other: Leg) -> Row:
        return Row(name, goal, turns.compare(name, Leg(ours, "penstock_leg.py", task), other))

    for loop in ("asyncio", "uvloop"):
        for depth, jobs, peer_jobs, must, aim in _DEPTHS:
            yield row(
                f"closed loop at depth {depth:,}, ours on {loop}",
                Goal("jobs_per_s", must, aim),
                Task("closed", depth=depth, jobs=jobs, loop=loop),
                Leg(peer, "jqueue_leg.py", Task("closed", depth=depth, jobs=peer_jobs)),
            )
    drain = Task("drain", jobs=2_000)
    yield row("2,000 enqueued, then drained", Goal("jobs_per_s", 40), drain, Leg(peer, "jqueue_leg.py", drain))
    deep = Task("closed", depth=1_000_000, jobs=50_000)
    shallow = Leg(ours, "penstock_leg.py", deep._replace(depth=0))
    yield row("ours at depth 1,000,000 over depth 0", Goal("jobs_per_s", 0.8), deep, shallow)
    name = "RSS per queued job, its payload of 100 bytes included"
    held = turns.at_most(1).repeat(name, Leg(ours, "penstock_leg.py", Task("queued", jobs=200_000)))
    yield Row(name, Goal("rss_per_job", 1_124, most=True, unit=" B"), held)
