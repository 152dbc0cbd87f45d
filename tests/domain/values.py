"""Jobs made by hand, for the parts that are tested without commands."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from penstock.clock import uuid7
from penstock.domain.batch import run
from penstock.domain.cells import BEGUN_AT, JOB_ID
from penstock.domain.commands import Enqueue
from penstock.domain.job import Job, NewJob
from penstock.domain.tables import Tables


def after(seconds: float) -> datetime:
    """So long after everything began."""
    return BEGUN_AT + timedelta(seconds=seconds)


def a_job(number: int = 0, **fields: Any) -> Job:
    """A queued job with these fields; jobs of different numbers have different ids."""
    return replace(_JOB, **{"id": uuid7(0, 0, number), "order": number, **fields})


def _plain_job() -> Job:
    tables = Tables()
    tables.begin(BEGUN_AT, 1)
    run(tables, [Enqueue(jobs=(NewJob("mail", id=JOB_ID),))])
    job = tables.find("default", JOB_ID)
    assert job is not None
    return job


_JOB = _plain_job()
