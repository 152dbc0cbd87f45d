"""A directory, and a far store: ours, which syncs files and directories, over jqueue, which syncs nothing and is in memory."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from benchmarks import environments
from benchmarks.interleave import Leg, Turns
from benchmarks.legs.task import Task
from benchmarks.places import Places
from benchmarks.table import Goal, Row, beside

TITLE: Final = "In a directory and on a far store, jobs of 100 bytes, over jqueue 1.0.0"
# (depth, jobs of ours, jobs of the peer, must, aim): the peer gets fewer jobs where it is slow; rates are per job.
_DEPTHS: Final = (
    (0, 20_000, 5_000, 1.5, 2),
    (1_000, 20_000, 500, 20, 30),
    (10_000, 50_000, 50, 200, 300),
)
_FAR: Final = Task("closed", "far", read_s=0.03, write_s=0.06)
_HOUR_S: Final = 3_600.0


class Legs(NamedTuple):
    """Makes legs of ours and of the peer, each with its files where they belong."""

    places: Places

    def ours(self, task: Task, script: str = "penstock_leg.py") -> Leg:
        """On the disk."""
        return Leg(environments.penstock(), script, task, self.places.disk)

    def peer(self, task: Task) -> Leg:
        """In memory."""
        return Leg(environments.jqueue(), "jqueue_leg.py", task, self.places.memory)


def rows(turns: Turns, places: Places, minutes: float) -> Iterator[Row]:
    """Every line of the table, one by one."""
    legs = Legs(places)
    yield from _closed_loops(turns, legs)
    yield from _depths(turns, legs)
    yield from _far(turns, legs)
    yield from _processes(turns, legs)
    yield from _stalls(turns, legs)
    yield from _idle(turns, legs)
    yield _finished(turns, legs, minutes)


def _closed_loops(turns: Turns, legs: Legs) -> Iterator[Row]:
    """Rates at several depths; the last of them gives the bytes of 50 callers as well."""
    for depth, jobs, peer_jobs, must, aim in _DEPTHS:
        name = f"closed loop at depth {depth:,}, 50 callers"
        task = Task("closed", "directory", depth=depth, jobs=jobs)
        measured = turns.compare(name, legs.ours(task), legs.peer(task._replace(jobs=peer_jobs)))
        note = beside(measured, snapshots="snapshots of ours")
        yield Row(name, Goal("jobs_per_s", must, aim), measured, note)
        if depth == 10_000:
            goal = Goal("bytes_per_operation", 1 / 150, most=True)
            yield Row(f"bytes per operation at depth {depth:,}, 50 callers", goal, measured, note)
    name = "bytes per operation at depth 10,000, one caller"
    task = Task("closed", "directory", depth=10_000, jobs=4_000, callers=1)
    measured = turns.at_most(1).compare(name, legs.ours(task), legs.peer(task._replace(jobs=20)), warm=False)
    yield Row(
        name,
        Goal("bytes_per_operation", 1 / 1_000, most=True),
        measured,
        beside(measured, snapshots="snapshots of ours"),
    )


def _depths(turns: Turns, legs: Legs) -> Iterator[Row]:
    for depth in (100_000, 1_000_000):
        name = f"ours at depth {depth:,} over depth 0"
        task = Task("closed", "directory", depth=depth, jobs=50_000)
        measured = turns.compare(name, legs.ours(task), legs.ours(task._replace(depth=0)), warm=False)
        yield Row(name, Goal("jobs_per_s", 0.8, 0.95), measured)


def _far(turns: Turns, legs: Legs) -> Iterator[Row]:
    """Both in memory, behind the same delays."""
    for depth, must in ((0, 0.7), (10_000, 0.45)):
        task = _FAR._replace(workload="waits", depth=depth, jobs=40)
        name = f"GET 30 ms, PUT 60 ms: p50 of one enqueue at depth {depth:,}"
        measured = turns.compare(name, legs.ours(task), legs.peer(task), warm=False)
        p50 = " / ".join(f"{value:.0f} ms" for value in measured.medians("p50_ms"))
        yield Row(name, Goal("p50_ms", must, most=True), measured, p50)
    crowd = _FAR._replace(depth=10_000, jobs=4_000, callers=200)
    slow = _FAR._replace(depth=1_000, jobs=1_000, rest_s=1.0)
    for name, must, task, peer_jobs in (
        ("the same: 200 callers at depth 10,000", 20, crowd, 200),
        ("the same, one write per second and name: 50 callers at depth 1,000", 10, slow, 100),
    ):
        measured = turns.compare(name, legs.ours(task), legs.peer(task._replace(jobs=peer_jobs)), warm=False)
        yield Row(name, Goal("jobs_per_s", must), measured)


def _processes(turns: Turns, legs: Legs) -> Iterator[Row]:
    name = "two processes on one directory, 25 callers each, over one with 50"
    two = Task("together", "directory", jobs=20_000, processes=2)
    script = "penstock_processes.py"
    measured = turns.compare(name, legs.ours(two, script), legs.ours(two._replace(processes=1), script))
    yield Row(name, Goal("jobs_per_s", 0.7, 0.85), measured)
    name = "opening at depth 100,000 after kill -9, warm cache"
    opening = turns.repeat(name, legs.ours(Task("killed", "directory", depth=100_000), script))
    yield Row(
        name,
        Goal("open_s", 1, 0.5, most=True, unit=" s"),
        opening,
        beside(opening, records_read="objects read", kept="finished jobs kept"),
    )


def _stalls(turns: Turns, legs: Legs) -> Iterator[Row]:
    name = "longest stall of an enqueue while a million jobs are snapshotted"
    task = Task("stall", "directory", depth=1_000_000, seconds=5.0)
    stall = turns.at_most(2).repeat(name, legs.ours(task, "penstock_still.py"))
    note = beside(
        stall,
        gap_ms="longest gap of a 1 ms ticker (ms)",
        quiet_enqueue_ms="the same two without a snapshot (ms)",
        quiet_gap_ms="and",
        snapshot_s="seconds",
        snapshot_mib="MiB",
    )
    yield Row(name, Goal("enqueue_ms", 100, 20, most=True, unit=" ms"), stall, note)


def _idle(turns: Turns, legs: Legs) -> Iterator[Row]:
    for store, what in (("near", "in a directory"), ("far", "on object storage")):
        for workers in (0, 1):
            name = f"writes of an idle hour {what}, {'a worker waiting' if workers else 'nobody waiting'}"
            task = Task("idle", store, depth=10, callers=workers, seconds=_HOUR_S)
            idle = turns.at_most(1).repeat(name, legs.ours(task, "penstock_still.py"))
            note = beside(idle, gets="reads", lists="listings")
            yield Row(name, Goal("writes", 0, most=True, unit=""), idle, note)


def _finished(turns: Turns, legs: Legs, minutes: float) -> Row:
    name = f"RSS per finished job, 100,000 a minute for {minutes:g} minutes"
    task = Task("finished", "directory", seconds=60 * minutes, jobs_per_s=100_000 / 60)
    growth = turns.at_most(1).repeat(name, legs.ours(task))
    note = beside(
        growth,
        rss_per_job_first_half="first half (B)",
        rss_per_job_second_half="second half (B)",
        **{"rss_mib_00%": "MiB at the beginning", "rss_mib_50%": "half way", "rss_mib_100%": "at the end"},
        peak_rss_mib="peak",
    )
    # Rule 23: a finished job leaves a stub of about 250 B; the tables that hold it are not counted there.
    return Row(name, Goal("rss_per_job", 300, most=True, unit=" B"), growth, note)
