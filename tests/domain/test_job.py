"""Invalid states do not construct, and a payload is encoded once, where the job is made."""

import math

import pytest
from msgspec.structs import replace

from penstock import Invalid, NewJob, State
from penstock.domain.batch import run
from penstock.domain.cells import BEGUN_AT, JOB_ID
from penstock.domain.commands import Enqueue, LeaseJobs
from penstock.domain.job import Job
from penstock.domain.tables import Tables


def _job(*, leased: bool) -> Job:
    tables = Tables()
    tables.begin(BEGUN_AT)
    run(tables, [Enqueue(jobs=(NewJob("mail", id=JOB_ID, max_attempts=3),))])
    if leased:
        run(tables, [LeaseJobs(queues=("mail",), request_id="a-request-id-of-16")])
    job = tables.find("default", JOB_ID)
    assert job is not None
    return job


@pytest.mark.parametrize("state", [state for state in State if state is not State.LEASED])
def test_only_a_leased_job_can_have_a_lease(state: State) -> None:
    with pytest.raises(AssertionError):
        replace(_job(leased=True), state=state)


def test_a_leased_job_must_have_one() -> None:
    with pytest.raises(AssertionError):
        replace(_job(leased=False), state=State.LEASED)


@pytest.mark.parametrize("attempt", [-1, 4])
def test_the_attempts_of_a_job_are_within_what_it_may_make(attempt: int) -> None:
    with pytest.raises(AssertionError):
        replace(_job(leased=False), attempt=attempt)


def test_a_job_cannot_be_changed() -> None:
    job = _job(leased=False)
    with pytest.raises(AttributeError):
        job.attempt = 2  # type: ignore[misc] # the mistake under test


@pytest.mark.parametrize(
    ("payload", "data", "content_type"),
    [
        (None, b"null", "application/json"),
        ({"a": [1, "ø"]}, '{"a":[1,"ø"]}'.encode(), "application/json"),
        (b"raw", b"raw", "application/octet-stream"),
    ],
)
def test_a_value_becomes_json_and_bytes_stay_bytes(payload: object, data: bytes, content_type: str) -> None:
    new = NewJob("mail", payload)
    assert (new.payload, new.content_type) == (data, content_type)
    assert replace(new, priority=1).payload == data


@pytest.mark.parametrize("payload", [object(), {1j: 2}, "\ud800", 2**70, {"a": {1, 2, object()}}])
def test_what_is_no_json_is_refused_with_another_way(payload: object) -> None:
    with pytest.raises(Invalid, match="cannot be written as JSON"):
        NewJob("mail", payload)


def test_a_number_that_json_does_not_have_becomes_null() -> None:
    assert NewJob("mail", [math.nan]).payload == b"[null]"


def test_a_job_of_bytes_that_are_called_json_is_read_as_json() -> None:
    assert NewJob("mail", b"[1]", content_type="application/json").payload == b"[1]"


def test_finished_is_said_of_three_states() -> None:
    assert {state for state in State if state.finished} == {State.SUCCEEDED, State.DEAD, State.CANCELLED}
