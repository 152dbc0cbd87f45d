"""The simulation finds what it must: every planted bug, by the promise it breaks, and nothing without it."""

import pytest
from msgspec.structs import replace

from tests.simulation.planted import BUGS, Bug
from tests.simulation.run import Run, run


def _outcome(bug: Bug, seed: int) -> Run:
    return run(seed, shape=lambda swarm: replace(swarm, silence_s=0.0, **bug.world))


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    with bug.planted():
        for seed in range(bug.seeds):
            faults = _outcome(bug, seed).faults
            if any(fault.startswith(f"{bug.breaks} ") for fault in faults):
                break
        else:
            pytest.fail(f"{bug.name} was not found within {bug.seeds} seeds")
    for innocent in range(seed + 1):
        assert not _outcome(bug, innocent).faults
