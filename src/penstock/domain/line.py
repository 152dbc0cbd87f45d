"""The queued jobs of one queue and kind: those ready now in their order, and those that are due later."""

from bisect import insort
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from penstock.domain.heap import Heap
from penstock.domain.job import Job

_PRIORITIES_KEPT: Final = 16


class Line:
    """Ready jobs by priority, then (ready_at, order); later ones by the time they are due."""

    __slots__ = ("_jobs", "_later", "_ready", "_scheduled", "_waiting")

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._ready: dict[int, Heap] = {}
        self._waiting: list[int] = []
        self._later = Heap(jobs)
        # Who stands among the later ones: a wall clock may go back, so the time alone does not tell.
        self._scheduled: set[str] = set()

    def enter(self, job: Job, now: datetime) -> None:
        """Put a queued job in line."""
        if job.run_at is not None and job.run_at > now:
            self._scheduled.add(job.id)
            self._later.enter(job.run_at, job)
            return
        heap = self._ready.get(job.priority)
        if heap is None:
            heap = self._ready[job.priority] = Heap(self._jobs)
            insort(self._waiting, job.priority)
        heap.enter(job.ready_at, job)

    def leave(self, job: Job) -> None:
        """Say that a job in this line has changed."""
        if job.run_at is not None and job.id in self._scheduled:
            self._scheduled.discard(job.id)
            self._later.live -= 1
        else:
            self._ready[job.priority].live -= 1

    def head(self, now: datetime) -> Job | None:
        """The job to run first, if one is ready."""
        if self._later.live:
            self._promote(now)
        for priority in self._waiting:
            heap = self._ready[priority]
            if heap.live:
                return heap.head()
        if len(self._waiting) > _PRIORITIES_KEPT:
            self._ready.clear()
            self._waiting.clear()
        return None

    def due_at(self) -> datetime | None:
        """When the next of the later jobs is due."""
        job = self._later.head()
        return None if job is None else job.run_at

    def oldest_ready_at(self, now: datetime) -> datetime | None:
        """Since when the longest-waiting ready job has been ready."""
        if self.head(now) is None:
            return None
        heads = (heap.head() for heap in self._ready.values())
        return min(job.ready_at for job in heads if job is not None)

    @property
    def ready(self) -> int:
        """How many jobs are ready, as of the last look at the head."""
        return sum(heap.live for heap in self._ready.values())

    @property
    def later(self) -> int:
        """How many jobs are due later, as of the last look at the head."""
        return self._later.live

    def _promote(self, now: datetime) -> None:
        while (job := self._later.pop(now)) is not None:
            # A change that was rolled back may have put it among the later ones twice.
            if job.id in self._scheduled:
                self._scheduled.discard(job.id)
                self._later.live -= 1
                self.enter(job, now)
