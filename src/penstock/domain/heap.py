"""Jobs in an order, where a job that has changed since it was put in no longer counts."""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush
from itertools import takewhile
from typing import Final

from penstock.domain.job import Job

_SLACK: Final = 64
_Entry = tuple[datetime, int, Job]


class Heap:
    """Jobs by (time, order). An entry counts as long as the table still holds that very value of the job.

    So leaving is taking one off ``live``, and a rolled-back change makes the old entry count again. Entries that do
    not count are dropped when they reach the head, or all at once when they are more than half. Most jobs come in
    their order: those stand in a plain line, the others in a heap, and the earlier of the two heads is the head.
    """

    __slots__ = ("_heap", "_jobs", "_line", "live")

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self.live = 0
        self._jobs = jobs
        self._line: deque[_Entry] = deque()
        self._heap: list[_Entry] = []

    def enter(self, at: datetime, job: Job) -> None:
        """Put a job in line."""
        self.live += 1
        line = self._line
        entry = (at, job.order, job)
        if not line or line[-1] < entry:
            line.append(entry)
        else:
            heappush(self._heap, entry)
        if len(line) + len(self._heap) > 2 * self.live + _SLACK:
            self._tidy()

    def head(self) -> Job | None:
        """The first job that counts."""
        line, heap, jobs = self._line, self._heap, self._jobs
        while line and jobs.get(line[0][2].id) is not line[0][2]:
            line.popleft()
        while heap and jobs.get(heap[0][2].id) is not heap[0][2]:
            heappop(heap)
        if line and not (heap and heap[0] < line[0]):
            return line[0][2]
        return heap[0][2] if heap else None

    def pop_until(self, at: datetime) -> Iterator[Job]:
        """Take out, in order, the jobs that count and whose time is no later than this."""
        while (job := self.head()) is not None:
            from_line = bool(self._line) and self._line[0][2] is job
            if (self._line if from_line else self._heap)[0][0] > at:
                return
            self.live -= 1
            if from_line:
                self._line.popleft()
            else:
                heappop(self._heap)
            yield job

    def until(self, at: datetime) -> list[Job]:
        """The jobs that count and whose time is no later than this, left where they are."""
        found = [entry[2] for entry in takewhile(lambda entry: entry[0] <= at, self._line)]
        look = [0]
        while look:
            place = look.pop()
            if place < len(self._heap) and self._heap[place][0] <= at:
                look += (2 * place + 1, 2 * place + 2)
                found.append(self._heap[place][2])
        return [job for job in found if self._jobs.get(job.id) is job]

    def _tidy(self) -> None:
        counting = {
            id(entry[2]): entry for entry in (*self._line, *self._heap) if self._jobs.get(entry[2].id) is entry[2]
        }
        self._line = deque(sorted(counting.values(), key=lambda entry: entry[:2]))
        self._heap = []


class Shelf:
    """Finished jobs in the order they finished, by the same rule of what counts."""

    __slots__ = ("_finished", "_jobs", "live")

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self.live = 0
        self._jobs = jobs
        self._finished: deque[Job] = deque()

    def enter(self, job: Job) -> None:
        """Put a finished job where it belongs: at the end, or back at the front when its purge was rolled back."""
        self.live += 1
        if self._finished and job.order < self._finished[0].order:
            self._finished.appendleft(job)
        else:
            self._finished.append(job)

    def leave(self) -> None:
        """Say that a job in here has changed or gone."""
        self.live -= 1
        self.head()
        if len(self._finished) > 2 * self.live + _SLACK:
            self._finished = deque(job for job in self._finished if self._jobs.get(job.id) is job)

    def head(self) -> Job | None:
        """The job that finished first."""
        while self._finished and self._jobs.get(self._finished[0].id) is not self._finished[0]:
            self._finished.popleft()
        return self._finished[0] if self._finished else None

    def until(self, at: datetime, *, most: int | None = None) -> list[Job]:
        """The first jobs, as long as they finished no later than this."""
        found: dict[str, Job] = {}
        for job in self._finished:
            if job.finished_at is None or job.finished_at > at or len(found) == most:
                break
            if self._jobs.get(job.id) is job:
                found[job.id] = job
        return list(found.values())
