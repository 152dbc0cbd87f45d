"""How long a failed job waits: within its bounds, growing as its policy says, and the same each time it is asked."""

from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.backoff import DEFAULT, Backoff, Policy, wait_s

JOB = "01b8dac5-b400-7000-8000-000000000000"
backoffs = st.builds(
    Backoff, st.sampled_from(Policy), st.floats(0, 86_400, allow_nan=False), st.floats(0, 604_800, allow_nan=False)
)
attempts = st.integers(1, 100)


@given(backoffs, attempts)
def test_a_wait_is_never_negative_and_never_above_the_cap(backoff: Backoff, attempt: int) -> None:
    assert 0 <= wait_s(backoff, job_id=JOB, attempt=attempt) <= backoff.cap_s


@given(backoffs, attempts, st.uuids().map(str))
def test_the_same_failure_waits_the_same_time_whenever_it_is_decided(
    backoff: Backoff, attempt: int, job_id: str
) -> None:
    assert wait_s(backoff, job_id=job_id, attempt=attempt) == wait_s(backoff, job_id=job_id, attempt=attempt)


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (Policy.FIXED, [3, 3, 3, 3, 3]),
        (Policy.LINEAR, [3, 6, 9, 12, 15]),
        (Policy.EXPONENTIAL, [3, 6, 12, 20, 20]),
    ],
)
def test_a_wait_grows_with_the_attempts_as_the_policy_says(policy: Policy, waits: list[float]) -> None:
    backoff = Backoff(policy, 3.0, 20.0)
    assert [wait_s(backoff, job_id=JOB, attempt=attempt) for attempt in range(1, 6)] == waits


@given(attempts)
def test_jitter_stays_below_what_it_would_be_without(attempt: int) -> None:
    jitter, exponential = (Backoff(policy, 5.0, 3600.0) for policy in (Policy.JITTER, Policy.EXPONENTIAL))
    assert wait_s(jitter, job_id=JOB, attempt=attempt) < wait_s(exponential, job_id=JOB, attempt=attempt)


@pytest.mark.parametrize("attempt", [1, 4])
def test_jitter_spreads_many_jobs_over_the_whole_wait(attempt: int) -> None:
    most = 5.0 * 2 ** (attempt - 1)
    waits = [wait_s(DEFAULT, job_id=f"job-{number}", attempt=attempt) for number in range(1_000)]
    assert len(set(waits)) == 1_000
    assert min(waits) < 0.05 * most
    assert max(waits) > 0.95 * most
    assert mean(waits) == pytest.approx(most / 2, rel=0.1)


def test_the_default_is_full_jitter_from_five_seconds_to_an_hour() -> None:
    assert (DEFAULT.policy, DEFAULT.base_s, DEFAULT.cap_s) == (Policy.JITTER, 5.0, 3600.0)
