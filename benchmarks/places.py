"""Where legs keep their files, and on what: all of it stays until the last leg is done.

On ext4 without a journal, creating files is slow for minutes after many were deleted.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.environments import KEPT

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 the peer's files are meant to be in memory


class Places(NamedTuple):
    """A directory on the disk of the checkout, for ours, and one in memory, for the peer, which never syncs."""

    disk: Path
    memory: Path

    def facts(self) -> dict[str, str]:
        """Which file system each is on, for the page of results."""
        return {"ours in": _on(self.disk), "the peer's in": _on(self.memory)}


@contextmanager
def places() -> Iterator[Places]:
    """Both, empty; removed at the end."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made = Places(*(Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=home)) for home in (KEPT, _SHARED_MEMORY)))
    try:
        yield made
    finally:
        for place in made:
            shutil.rmtree(place)


def _on(path: Path) -> str:
    """The type and options of the file system, by the longest mount point that leads to the path."""
    lines = (line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines())
    mounts = {point: f"{kind} ({options})" for _, point, kind, options, *_ in lines}
    return mounts[max((point for point in mounts if path.is_relative_to(point)), key=len)]
