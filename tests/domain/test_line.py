"""A line against a list that is sorted each time it is asked."""

from datetime import datetime
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.domain.job import Job
from penstock.domain.line import Line
from tests.domain.values import a_job, after


class Step(NamedTuple):
    verb: str
    pick: int
    priority: int
    delay_s: int | None


class Lined:
    """A line, and the jobs in it as a plain dict."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.line = Line(self.jobs)
        self.now_s = 0
        self.order = 0

    @property
    def now(self) -> datetime:
        return after(self.now_s)

    def do(self, step: Step) -> None:
        self.order += 1
        found = list(self.jobs.values())
        if step.verb == "time":
            self.now_s += step.pick
        elif step.verb == "new" or not found:
            self.put(None, a_job(self.order, **self.place(step)))
        elif step.verb == "drop":
            job = found[step.pick % len(found)]
            del self.jobs[job.id]
            self.line.leave(job)
        elif step.verb == "move":
            job = found[step.pick % len(found)]
            self.put(job, replace(job, rev=job.rev + 1, order=self.order, **self.place(step)))
        else:
            job = found[step.pick % len(found)]
            self.put(job, replace(job, rev=job.rev + 1, priority=step.priority))

    def place(self, step: Step) -> dict[str, object]:
        run_at = None if step.delay_s is None else after(self.now_s + step.delay_s)
        return {"priority": step.priority, "run_at": run_at, "ready_at": run_at or self.now}

    def put(self, old: Job | None, new: Job) -> None:
        """As the tables do it: the table first, then out, then in."""
        self.jobs[new.id] = new
        if old is not None:
            self.line.leave(old)
        self.line.enter(new, self.now)

    def ready(self) -> list[Job]:
        due = [job for job in self.jobs.values() if job.run_at is None or job.run_at <= self.now]
        return sorted(due, key=lambda job: (job.priority, job.ready_at, job.order))

    def later(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.run_at is not None and job.run_at > self.now]


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(("new", "new", "new", "drop", "move", "move", "priority", "time")),
        st.integers(0, 5),
        st.integers(-2, 2),
        st.sampled_from((None, None, 0, 1, 3, 7)),
    ),
    max_size=40,
)


@given(steps)
def test_a_line_is_what_a_sorted_list_would_be(steps: list[Step]) -> None:
    lined = Lined()
    for step in steps:
        lined.do(step)
        ready, later = lined.ready(), lined.later()
        assert lined.line.head(lined.now) is next(iter(ready), None)
        assert (lined.line.ready, lined.line.later) == (len(ready), len(later))
        assert lined.line.oldest_ready_at(lined.now) == min((job.ready_at for job in ready), default=None)
        assert lined.line.due_at() == min((job.run_at for job in later if job.run_at), default=None)


@given(steps)
def test_a_line_that_nobody_looked_at_meanwhile_comes_out_in_order(steps: list[Step]) -> None:
    lined = Lined()
    for step in steps:
        lined.do(step)
    for job in lined.ready():
        assert lined.line.head(lined.now) is job
        del lined.jobs[job.id]
        lined.line.leave(job)
    assert lined.line.head(lined.now) is None
    assert lined.line.ready == 0


def test_a_line_of_many_priorities_forgets_those_that_are_empty() -> None:
    lined = Lined()
    for number in range(100):
        lined.do(Step("new", 0, number, None))
    while (job := lined.line.head(lined.now)) is not None:
        del lined.jobs[job.id]
        lined.line.leave(job)
    assert len(lined.line._waiting) < 20
    lined.do(Step("new", 0, 5, None))
    assert lined.line.head(lined.now) is not None
