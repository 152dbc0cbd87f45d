"""Penstock in several processes on one directory: together or killed, as ``task.py`` says; member, crowd, reader within."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from functools import partial

from measure import Figures, closed_loop, measured, now_s, report
from penstock_stores import both, filled, opened
from task import Task, given

_READY = "ready"
_LIMIT_S = 600
# How many jobs are done, and for how long others are under way, before the kill; how often the directory is opened after it; the first time is for the cache.
_BEFORE_KILL = 5_000
_INTO_WORK_S = 0.2
_OPENINGS = 4


def together(task: Task) -> Figures:
    """The jobs and callers of the task in equal parts on so many processes, from the same moment on."""
    part = task._replace(workload="member", jobs=task.jobs // task.processes, callers=task.callers // task.processes)
    members = [_started(part) for _ in range(task.processes)]
    for member in members:
        _wait_ready(member)
    for member in members:
        member.stdin.write("go\n")
        member.stdin.flush()
    told = [json.loads(member.communicate(timeout=_LIMIT_S)[0].splitlines()[-1]) for member in members]
    wall_s = max(one["began_s"] + one["wall_s"] for one in told) - min(one["began_s"] for one in told)
    # One of them may have made requests of a kind that the others had no need of.
    names = {name for one in told for name in one}
    means = {name: statistics.mean(one.get(name, 0.0) for one in told) for name in names}
    return {**means, "jobs_per_s": task.jobs / wall_s, "wall_s": wall_s}


async def member(task: Task) -> Figures:
    """One of the processes: open, wait for the word, do the part."""
    async with opened(task) as (queue, requests):
        await both(queue)
        await filled(queue, task.depth // task.processes)
        await requests.quiet()
        print(_READY, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return await measured(task, requests, partial(both, queue))


def killed(task: Task) -> Figures:
    """Fill the directory, kill -9 in the middle of work, and open it again."""
    crowd = _started(task._replace(workload="crowd", jobs=_BEFORE_KILL))
    _wait_ready(crowd)
    time.sleep(_INTO_WORK_S)
    crowd.kill()
    crowd.communicate()
    told = []
    for _ in range(_OPENINGS):
        reader = _started(task._replace(workload="reader"))
        told.append(json.loads(reader.communicate(timeout=_LIMIT_S)[0].splitlines()[-1]))
    return {name: statistics.median(one[name] for one in told[1:]) for name in told[0]}


async def crowd(task: Task) -> Figures:
    """Callers that work until they are killed, so that there is nothing to tell."""
    async with opened(task) as (queue, _):
        await filled(queue, task.depth)
        await closed_loop(partial(both, queue), task)
        print(_READY, flush=True)
        # Until the kill; but not for ever, should the one who was to do it have died.
        starter = os.getppid()
        while os.getppid() == starter:
            await closed_loop(partial(both, queue), task)
    return {}


async def reader(task: Task) -> Figures:
    """Open, and look."""
    began_s = now_s()
    async with opened(task) as (queue, requests):
        open_s = now_s() - began_s
        [stats] = await queue.stats()
        # Each caller may have had one job in hand.
        assert abs(stats.queued + stats.leased - task.depth) <= task.callers, stats
        return {"open_s": open_s, "records_read": requests.counts["get"], "kept": stats.succeeded}


def _started(task: Task) -> "subprocess.Popen[str]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, __file__, *task.arguments()], **pipes)


def _wait_ready(process: "subprocess.Popen[str]") -> None:
    told = process.stdout.readline().strip()
    assert told == _READY, told


def main() -> None:
    """Do the task, as one of the processes or as the one that starts them."""
    task = given()
    inside = {"member": member, "crowd": crowd, "reader": reader}.get(task.workload)
    outside = {"together": together, "killed": killed}
    report(asyncio.run(inside(task)) if inside else outside[task.workload](task))


if __name__ == "__main__":
    main()
