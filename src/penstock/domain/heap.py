"""Jobs in an order, where a job that has changed since it was put in no longer counts."""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Final

from penstock.domain.job import Job

_SLACK: Final = 64


class Heap:
    """Jobs by (time, order). An entry counts as long as the table still holds that very value of the job.

    So leaving costs nothing, and a rolled-back change makes the old entry count again. Entries that do not count
    are dropped when they reach the head, or all at once when they are more than half.
    """

    __slots__ = ("_entries", "live")

    def __init__(self) -> None:
        self.live = 0
        self._entries: list[tuple[datetime, int, Job]] = []

    def enter(self, at: datetime, job: Job) -> None:
        """Put a job in line."""
        self.live += 1
        heappush(self._entries, (at, job.order, job))

    def leave(self, jobs: Mapping[str, Job]) -> None:
        """Say that a job in here has changed, so that its entry no longer counts."""
        self.live -= 1
        if len(self._entries) > 2 * self.live + _SLACK:
            self._entries = list(
                {id(entry[2]): entry for entry in self._entries if jobs.get(entry[2].id) is entry[2]}.values()
            )
            heapify(self._entries)

    def head(self, jobs: Mapping[str, Job]) -> Job | None:
        """The first job that counts."""
        entries = self._entries
        while entries:
            job = entries[0][2]
            if jobs.get(job.id) is job:
                return job
            heappop(entries)
        return None

    def until(self, at: datetime, jobs: Mapping[str, Job]) -> Iterator[Job]:
        """Take out, in order, the jobs that count and whose time is no later than this."""
        entries = self._entries
        while entries and entries[0][0] <= at:
            job = heappop(entries)[2]
            if jobs.get(job.id) is job:
                yield job

    def early(self, at: datetime, jobs: Mapping[str, Job]) -> list[Job]:
        """The jobs that count and whose time is no later than this, left where they are."""
        found, look = [], [0]
        while look:
            place = look.pop()
            if place < len(self._entries) and self._entries[place][0] <= at:
                look += (2 * place + 1, 2 * place + 2)
                job = self._entries[place][2]
                if jobs.get(job.id) is job:
                    found.append(job)
        return found


class Shelf:
    """Finished jobs in the order they finished, by the same rule of what counts."""

    __slots__ = ("_jobs", "live")

    def __init__(self) -> None:
        self.live = 0
        self._jobs: deque[Job] = deque()

    def enter(self, job: Job) -> None:
        """Put a finished job where it belongs: at the end, or back at the front when its purge was rolled back."""
        self.live += 1
        if self._jobs and job.order < self._jobs[0].order:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)

    def leave(self, jobs: Mapping[str, Job]) -> None:
        """Say that a job in here has changed or gone."""
        self.live -= 1
        while self._jobs and jobs.get(self._jobs[0].id) is not self._jobs[0]:
            self._jobs.popleft()
        if len(self._jobs) > 2 * self.live + _SLACK:
            self._jobs = deque(job for job in self._jobs if jobs.get(job.id) is job)

    def head(self) -> Job | None:
        """The job that finished first."""
        return self._jobs[0] if self._jobs else None

    def until(self, at: datetime, jobs: Mapping[str, Job], *, most: int | None = None) -> list[Job]:
        """The first jobs, as long as they finished no later than this."""
        found: dict[str, Job] = {}
        for job in self._jobs:
            if job.finished_at is None or job.finished_at > at or len(found) == most:
                break
            if jobs.get(job.id) is job:
                found[job.id] = job
        return list(found.values())
