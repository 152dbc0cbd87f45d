"""``make sim``: new seeds for some minutes, or one seed again with everything that happened in it."""

import sys
import time

from tests.simulation.run import Run, run
from tests.simulation.test_simulation import kept


def main(argv: list[str]) -> int:
    """Answer 1 if a promise broke."""
    what, number = argv
    return _replay(int(number)) if what == "seed" else _explore(float(number))


def _replay(seed: int) -> int:
    outcome = run(seed, speaks=True)
    _say("\n".join([*outcome.trace, str(outcome.swarm)]))
    return _told(outcome)


def _explore(minutes: float) -> int:
    clock = time.monotonic  # noqa: TID251 how long to look is a matter of real time
    began, first = clock(), time.time_ns() // 1_000_000  # noqa: TID251 seeds nobody has run before
    seed = first
    while clock() - began < 60 * minutes:
        outcome = run(seed)
        seed += 1
        if outcome.faults:
            _say(kept(outcome))
            return 1
        if (seed - first) % 20 == 0:
            _say(f"{seed - first} seeds, {clock() - began:.0f} s, no promise broken", end="\r")
    _say("")
    return 0


def _told(outcome: Run) -> int:
    _say("\n".join(outcome.faults or [f"seed {outcome.seed}: {outcome.commits} commits, no promise broken"]))
    return 1 if outcome.faults else 0


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
