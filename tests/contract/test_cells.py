"""Every cell of the table in docs/protocol.md, on every store."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from penstock import NotFound
from penstock.domain import cells
from penstock.domain.commands import AnyCommand, Command, DeleteSetting, PutSetting, Sweep
from penstock.domain.job import Job, State
from penstock.domain.queries import Get
from penstock.stores.port import Store
from penstock.testing import FakeClock

PROJECT = Path(__file__).resolve().parents[2]
TABLE = cells.table()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=cells.BEGUN_AT)


async def _job(store: Store) -> Job | None:
    try:
        job = await store.ask(Get(job_id=cells.JOB_ID))
    except NotFound:
        return None
    assert isinstance(job, Job)
    return job


@pytest.mark.parametrize("cell", TABLE, ids=[f"{cell.scene}: {cell.verb}" for cell in TABLE])
async def test_a_store_does_what_the_table_says(store: Store, clock: FakeClock, cell: cells.Cell) -> None:
    *steps, last = cell.script
    for step in steps:
        if isinstance(step, Command):
            await store.commit([step])
        else:
            clock.advance(step)
    before = await _job(store)
    assert isinstance(last, Command)
    [outcome] = await store.commit([last])
    assert cells.told(before, outcome, await _job(store)) == cell.outcome


def test_the_table_has_every_verb_about_one_job_and_every_state() -> None:
    commands = {type(cell.script[-1]) for cell in TABLE}
    assert commands == set(get_args(AnyCommand)) - {Sweep, PutSetting, DeleteSetting}
    outcomes = " ".join(cell.outcome for cell in TABLE)
    assert all(f"-> {state}" in outcomes for state in State)


def test_another_tenants_job_has_the_row_of_an_absent_one() -> None:
    rows = {scene: [cell.outcome for cell in TABLE if cell.scene == scene] for scene in ("absent", "another tenant's")}
    assert rows["absent"] == rows["another tenant's"]


def test_the_page_shows_the_table_as_it_is() -> None:
    script = PROJECT / "scripts/protocol_table.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)  # noqa: S603 our own script
    assert (done.returncode, done.stderr) == (0, "")
