"""Seeds that once failed are kept and run first: one to a line, with the name of its worlds if they were bent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.simulation.planted import BUGS
from tests.simulation.run import Run
from tests.simulation.swarm import Bent

FILE: Final = Path(__file__).with_name("seeds.txt")
PLAIN: Final = Bent()
# Here awaits are counted: no process lives long, everybody is there, and all that is rare elsewhere happens often.
CRASHES: Final = Bent(
    "crashes everywhere",
    {
        "crash_every": 150,
        "stop_every_s": 8.0,
        "pause_every": 400,
        "pause_s": 4.0,
        "silence_s": 0.0,
        "operators": 3,
        "embedded_workers": 2,
        "watchers": 1,
        "processes": 3,
        "queues": 2,
        "sweep_s": 1.0,
        "look_s": 0.1,
        "listing_s": 0.0,
        "clean_every_s": 0.5,
        "day_s": 0.5,
        "snapshot_records": 3,
    },
)
# The same when jobs are forgotten.
CRASHES_LATER: Final = Bent(
    "crashes when jobs are forgotten",
    {
        "crash_every": 60,
        "pause_every": 0,
        "silence_s": 1100.0,
        "operators": 1,
        "embedded_workers": 0,
        "watchers": 0,
        "workers": 1,
        "processes": 2,
        "jobs": 10,
        "sweep_s": 10.0,
        "look_s": 10.0,
        "active_s": 10.0,
    },
)


def worlds() -> dict[str, Bent]:
    """All kinds of worlds by name: the plain ones, those of the planted bugs, and those in which awaits are counted."""
    return {bent.name: bent for bent in (PLAIN, CRASHES, CRASHES_LATER, *(bug.bent for bug in BUGS))}


def kept() -> Iterator[tuple[int, Bent]]:
    """The seeds that once failed, with their worlds."""
    for line in FILE.read_text().splitlines():
        seed, _, name = line.partition(" ")
        yield int(seed), worlds()[name]


def keep(outcome: Run) -> str:
    """Keep the seed of a run that failed; answers what to tell of it."""
    line = f"{outcome.seed} {outcome.bent.name}".strip()
    with FILE.open("a+") as file:
        file.seek(0)
        if line not in file.read().splitlines():
            file.write(f"{line}\n")
    return f"seed {outcome.seed} broke a promise; see how with: {outcome.replay}\n" + "\n".join(outcome.faults)
