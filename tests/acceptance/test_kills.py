"""Real processes on one directory, killed for real: nothing that was acknowledged is lost, nothing is done twice."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import penstock
from penstock import State
from tests.acceptance.storm import Storm
from tests.acceptance.storm_process import LEASE_S

PROCESSES = 4
KILLS = 60
JOBS = 2_000


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_when_processes_are_killed_and_stopped(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/jobs"
    with Storm(url, processes=PROCESSES, jobs=JOBS // 8, seed=7) as storm:
        while storm.kills < KILLS or len(storm.ledger.accepted) < JOBS:
            storm.rest()
            storm.strike()
            if storm.kills % 15 == 0:
                storm.strike(stop_s=LEASE_S + 0.5)
        asyncio.run(drained(url))
        storm.end()
        ledger = storm.ledger
    states = asyncio.run(states_of(url))
    lost = [job_id for job_id in {*ledger.accepted, *ledger.acked} if states.get(job_id) is not State.SUCCEEDED]
    print(  # noqa: T201 the figures are the point
        f"kills={storm.kills} stops={storm.stops} accepted={len(ledger.accepted)} jobs={len(states)} {ledger.said}"
        f" lost={len(lost)} doubled={len(ledger.doubled)}"
    )
    assert (lost, ledger.doubled, ledger.problems) == ([], [], [])
    assert Counter(states.values()) == {State.SUCCEEDED: len(states)}
    verified = subprocess.run(  # noqa: S603 our own command
        [sys.executable, "-m", "penstock", "verify", "--store", url], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stdout
    # Each job that a process enqueued left one follow-up, in the commit of its ack.
    assert len(states) % 2 == 0


async def drained(url: str) -> None:
    """Wait until all jobs are finished, whoever does them."""
    async with penstock.connect(url) as queue:
        while True:
            [stats] = await queue.stats()
            if stats.queued + stats.leased == 0:
                return
            await asyncio.sleep(0.1)


async def states_of(url: str) -> dict[str, State]:
    async with penstock.connect(url) as queue:
        return {job.id: job.state for job in (await queue.snapshot()).jobs}
