"""A job is a value that nobody changes, and its payload is encoded once, where the job is made."""

import math

import pytest
from msgspec.structs import replace

from penstock import Invalid, NewJob, State
from tests.domain.values import a_job


def test_a_job_cannot_be_changed() -> None:
    job = a_job()
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


@pytest.mark.parametrize("payload", [object(), {1j: 2}, "\ud800", {"a": {1, 2, object()}}])
def test_what_is_no_json_is_refused_with_another_way(payload: object) -> None:
    with pytest.raises(Invalid, match="cannot be written as JSON"):
        NewJob("mail", payload)


def test_a_number_that_json_does_not_have_becomes_null() -> None:
    assert NewJob("mail", [math.nan]).payload == b"[null]"


def test_a_job_of_bytes_that_are_called_json_is_read_as_json() -> None:
    assert NewJob("mail", b"[1]", content_type="application/json").payload == b"[1]"


def test_finished_is_said_of_three_states() -> None:
    assert {state for state in State if state.finished} == {State.SUCCEEDED, State.DEAD, State.CANCELLED}
