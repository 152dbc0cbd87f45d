"""Jobs in an order, where a job that has changed since it was put in no longer counts."""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush, merge
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
        line, heap, counts = self._line, self._heap, self._jobs.get
        while line:
            job = line[0][2]
            if counts(job.id) is job:
                if not heap:
                    return job
                break
            line.popleft()
        while heap and counts(heap[0][2].id) is not heap[0][2]:
            heappop(heap)
        if line and not (heap and heap[0] < line[0]):
            return line[0][2]
        return heap[0][2] if heap else None

    def pop(self, at: datetime) -> Job | None:
        """Take out the first job that counts, if its time is no later than this; ``live`` is the caller's to mind."""
        job = self.head()
        if job is None:
            return None
        if self._line and self._line[0][2] is job:
            return self._line.popleft()[2] if self._line[0][0] <= at else None
        return heappop(self._heap)[2] if self._heap[0][0] <= at else None

    def until(self, at: datetime) -> Iterator[Job]:
        """The jobs that count and whose time is no later than this, in order, left where they are."""
        last: Job | None = None
        for _, _, job in merge(takewhile(lambda entry: entry[0] <= at, self._line), sorted(self._early(at))):
            # A change that was rolled back may have put the same value in twice.
            if job is not last and self._jobs.get(job.id) is job:
                last = job
                yield job

    def _early(self, at: datetime) -> Iterator[_Entry]:
        look = [0]
        while look:
            place = look.pop()
            if place < len(self._heap) and self._heap[place][0] <= at:
                look += (2 * place + 1, 2 * place + 2)
                yield self._heap[place]

    def _tidy(self) -> None:
        counting = {
            id(entry[2]): entry for entry in (*self._line, *self._heap) if self._jobs.get(entry[2].id) is entry[2]
        }
        self._line = deque(sorted(counting.values(), key=lambda entry: entry[:2]))
        self._heap = []
