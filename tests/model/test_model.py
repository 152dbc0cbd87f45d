"""Any store against the reference model: the same wishes, the same outcomes, the same state after every step."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.conftest import STORES
from tests.model.machine import Comparing, TakingBack

# Hypothesis takes up to five minutes to make a failing example small.
pytestmark = pytest.mark.timeout(400)

QUICK = settings(
    max_examples=60,
    stateful_step_count=40,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
LONG = settings(QUICK, max_examples=150, stateful_step_count=60)
# The log is the same whatever its bucket is; that a directory is one has tests of its own.
FEW = settings(QUICK, max_examples=10)


def _run(machine: type[Comparing], store: str, how: settings) -> None:
    compared = type(f"{machine.__name__}_{store}", (machine,), {"maker": STORES[store]})
    run_state_machine_as_test(compared, settings=how)


@pytest.mark.parametrize("store", STORES)
def test_a_store_is_as_the_model_is_after_every_step(store: str) -> None:
    _run(Comparing, store, FEW if store == "directory" else QUICK)


@pytest.mark.parametrize("store", ["memory", "log"])
def test_a_batch_that_is_rolled_back_has_never_been(store: str) -> None:
    _run(TakingBack, store, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Comparing, TakingBack])
@pytest.mark.parametrize("store", ["memory", "log"])
def test_the_same_for_longer(machine: type[Comparing], store: str) -> None:
    _run(machine, store, LONG)
