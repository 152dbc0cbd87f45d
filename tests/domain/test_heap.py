"""A heap against a list that is sorted each time."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.domain.heap import Heap
from penstock.domain.job import Job
from tests.domain.values import a_job, after

BIG = 200


class Heaped:
    """A heap, and the jobs in it with their times as a plain dict."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.at: dict[str, int] = {}
        self.heap = Heap(self.jobs)

    def put(self, job: Job, at: int) -> None:
        """Put a job in, or another value of one that is in."""
        known = job.id in self.jobs
        self.jobs[job.id] = job
        self.at[job.id] = at
        self.heap.enter(after(at), job)
        self.heap.live -= known

    def drop(self, job: Job) -> None:
        del self.jobs[job.id]
        del self.at[job.id]
        self.heap.live -= 1

    def in_order(self) -> list[Job]:
        return sorted(self.jobs.values(), key=lambda job: (self.at[job.id], job.order))


class Step(NamedTuple):
    verb: str
    pick: int
    at: int


steps = st.lists(
    st.builds(Step, st.sampled_from(("new", "new", "again", "drop")), st.integers(0, 9), st.integers(0, 5))
)


def _do(heaped: Heaped, step: Step, order: int) -> None:
    found = list(heaped.jobs.values())
    if step.verb == "new" or not found:
        heaped.put(a_job(order), step.at)
        return
    job = found[step.pick % len(found)]
    if step.verb == "drop":
        heaped.drop(job)
    else:
        heaped.put(replace(job, rev=job.rev + 1, order=job.order if step.pick % 2 else order), step.at)


@given(steps)
def test_the_head_is_always_the_first(steps: list[Step]) -> None:
    heaped = Heaped()
    for order, step in enumerate(steps):
        _do(heaped, step, order)
        assert heaped.heap.head() is next(iter(heaped.in_order()), None)
        assert heaped.heap.live == len(heaped.jobs)


@given(steps, st.integers(0, 5))
def test_looking_at_the_early_ones_finds_them_all_in_order_and_leaves_them(steps: list[Step], until: int) -> None:
    heaped = Heaped()
    for order, step in enumerate(steps):
        _do(heaped, step, order)
    early = [job.id for job in heaped.in_order() if heaped.at[job.id] <= until]
    for _ in range(2):
        assert [job.id for job in heaped.heap.until(after(until))] == early


@given(steps, st.integers(0, 5))
def test_taking_the_early_ones_out_gives_them_in_order_and_leaves_the_others(steps: list[Step], until: int) -> None:
    heaped = Heaped()
    for order, step in enumerate(steps):
        _do(heaped, step, order)
    expected = heaped.in_order()
    early = [job for job in expected if heaped.at[job.id] <= until]
    assert list(iter(lambda: heaped.heap.pop(after(until)), None)) == early
    assert heaped.heap.head() is next(iter(expected[len(early) :]), None)


def test_what_no_longer_counts_does_not_pile_up() -> None:
    heaped = Heaped()
    for order in range(BIG):
        heaped.put(a_job(0, order=order), order % 7)
    assert len(heaped.heap._line) + len(heaped.heap._heap) < BIG / 2
    assert heaped.heap.head() is heaped.jobs[a_job(0).id]


@given(st.permutations(range(5)), st.integers(1, 5), st.integers(0, 5))
def test_a_heap_is_as_it_was_when_what_left_it_comes_back(order: list[int], leave: int, until: int) -> None:
    heaped = Heaped()
    jobs = [a_job(number) for number in range(5)]
    for number, job in enumerate(jobs):
        heaped.put(job, number)
    for number in order[:leave]:
        heaped.drop(jobs[number])
    for number in reversed(order[:leave]):
        heaped.put(jobs[number], number)
    assert heaped.heap.head() is jobs[0]
    assert heaped.heap.live == 5
    assert list(heaped.heap.until(after(until))) == jobs[: until + 1]
