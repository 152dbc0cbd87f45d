"""What one leg is asked to do: made by the harness, given to the leg as JSON. Standard library only, as ``measure``."""

import json
import sys
from typing import NamedTuple


class Task(NamedTuple):
    """One workload on one store.

    ``store`` is memory; or directory, which is at ``place``; or far, which is in memory behind the delays; or near,
    which is far with the numbers of a directory. The last two serve ours only where time is not real.
    """

    workload: str
    store: str = "memory"
    place: str = ""
    loop: str = "asyncio"
    # Jobs that wait before the measured part begins, those that are done in it, and by how many at once.
    depth: int = 0
    jobs: int = 0
    callers: int = 50
    processes: int = 1
    # Of a far store: how long it takes to answer, and how long a name must rest after a write.
    read_s: float = 0.0
    write_s: float = 0.0
    rest_s: float = 0.0
    # Of a workload that takes as long as it is told.
    seconds: float = 0.0
    jobs_per_s: float = 0.0

    def arguments(self) -> list[str]:
        """The command line of the leg, after the name of its script."""
        return [json.dumps(self._asdict())]


def given() -> Task:
    """The task on this process's command line."""
    return Task(**json.loads(sys.argv[1]))
