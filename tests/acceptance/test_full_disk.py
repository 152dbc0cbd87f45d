"""A disk that is full: a clear refusal, and everything that was acknowledged is there."""

import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock import Busy, Client
from tests.stores.log.disks import tmpfs


async def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", "size=1m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 600_000)
        url = f"file://{disk}/jobs"
        accepted: list[str] = []
        async with penstock.connect(url) as queue:
            with pytest.raises(Busy, match="full"):
                await _fill(queue, accepted)
            # Looking needs no space, and whoever waits for some can go on.
            assert (await queue.get(accepted[-1])).payload == "x" * 2_000
            with pytest.raises(Busy):
                await queue.enqueue("mail", "x" * 2_000)
            ballast.unlink()
            accepted.append((await queue.enqueue("mail", "x" * 2_000)).id)
        async with penstock.connect(url) as queue:
            assert {job.id for job in (await queue.snapshot()).jobs} == set(accepted)
        verified = subprocess.run(  # noqa: ASYNC221, S603 our own command, and nothing else is to run meanwhile
            [sys.executable, "-m", "penstock", "verify", "--store", url], capture_output=True, text=True, check=False
        )
        assert verified.returncode == 0, verified.stdout


async def _fill(queue: Client, accepted: list[str]) -> None:
    while True:
        accepted.append((await queue.enqueue("mail", "x" * 2_000)).id)
