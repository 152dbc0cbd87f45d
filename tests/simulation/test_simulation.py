"""A thousand worlds with faults in them; no promise breaks in any."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.simulation.coverage import Crossed, awaits
from tests.simulation.run import Run, run
from tests.simulation.swarm import Swarm

SEEDS = Path(__file__).with_name("seeds.txt")
CHUNK = 25
CHUNKS = 40
CROSSED_AT_LEAST = 0.95


def kept(outcome: Run) -> str:
    """What to tell of a seed that failed; it is kept, to be run first from now on."""
    with SEEDS.open("a+") as file:
        file.seek(0)
        if str(outcome.seed) not in file.read().split():
            file.write(f"{outcome.seed}\n")
    return f"seed {outcome.seed} broke a promise; see how with: {outcome.replay}\n" + "\n".join(outcome.faults)


def test_seeds_that_once_failed_pass() -> None:
    for seed in map(int, SEEDS.read_text().split()):
        outcome = run(seed)
        assert not outcome.faults, kept(outcome)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_promise_breaks(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        outcome = run(seed)
        assert not outcome.faults, kept(outcome)


def test_the_same_seed_gives_the_same_history() -> None:
    for seed in range(5):
        assert run(seed).digest == run(seed).digest


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history_in_another_interpreter() -> None:
    # Sets of texts are in another order there.
    ask = "from tests.simulation.run import run; print(*(run(seed).digest for seed in range(5)))"
    told = subprocess.run(  # noqa: S603 this interpreter, with what stands here
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert told.stdout.split() == [run(seed).digest for seed in range(5)]


def _often(swarm: Swarm) -> Swarm:
    return replace(swarm, crash_every=150, silence_s=0.0, operators=2, embedded_workers=2, watchers=1, processes=3)


@pytest.mark.slow
def test_crashes_cross_nearly_every_await() -> None:
    crossed, everywhere = Crossed(), len(awaits())
    for seed in range(5_000, 5_150):
        outcome = run(seed, shape=_often, crossed=crossed)
        assert not outcome.faults, f"seed {seed}, with crashes as often as here: {outcome.faults}"
    missing = crossed.missing()
    share = 1 - len(missing) / everywhere
    assert share >= CROSSED_AT_LEAST, f"{share:.0%} of {everywhere}; never crossed: " + ", ".join(map(str, missing))
