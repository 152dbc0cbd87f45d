"""The simulation finds what it must: every planted bug, by the promise it breaks, and nothing without it."""

import pytest

from tests.simulation.planted import BUGS, Bug
from tests.simulation.run import run
from tests.simulation.seeds import keep


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    with bug.planted():
        found = next((seed for seed in range(bug.seeds) if bug.found(run(seed, bug.bent).faults)), None)
    assert found is not None, f"{bug.name} was not found within {bug.seeds} seeds"
    for seed in range(found + 1):
        innocent = run(seed, bug.bent)
        assert not innocent.faults, keep(innocent)
