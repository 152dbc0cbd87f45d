"""``make sim``: new seeds for some minutes, or one seed again with everything that happened in it."""

import argparse
import sys
import time
from contextlib import nullcontext

from tests.simulation.planted import BUGS
from tests.simulation.run import run
from tests.simulation.seeds import PLAIN, keep, worlds
from tests.simulation.swarm import Bent


def main(argv: list[str]) -> int:
    """Answer 1 if a promise broke."""
    bugs = {bug.name: bug for bug in BUGS}
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to look at new seeds")
    parser.add_argument("--seed", type=int, help="show this one instead")
    parser.add_argument("--world", choices=sorted(worlds()), metavar="NAME", default="", help="the seed's worlds")
    parser.add_argument("--bug", choices=sorted(bugs), metavar="NAME", help="plant this bug, in its own worlds")
    asked = parser.parse_args(argv)
    if asked.seed is None:
        return _explore(asked.minutes)
    bug = bugs.get(asked.bug)
    with bug.planted() if bug else nullcontext():
        return _replay(asked.seed, bug.bent if bug else worlds()[asked.world])


def _replay(seed: int, bent: Bent) -> int:
    outcome = run(seed, bent, speaks=True)
    _say("\n".join([*outcome.trace, str(outcome.swarm)]))
    _say("\n".join(outcome.faults or [f"seed {seed}: {outcome.commits} commits, no promise broken"]))
    return 1 if outcome.faults else 0


def _explore(minutes: float) -> int:
    clock = time.monotonic  # noqa: TID251 how long to look is a matter of real time
    began, first = clock(), time.time_ns() // 1_000_000  # noqa: TID251 seeds nobody has run before
    seed, bent = first, list(worlds().values())
    while clock() - began < 60 * minutes:
        # Every fourth in a bent world: those are where something was once hard to find.
        outcome = run(seed, PLAIN if seed % 4 else bent[seed // 4 % len(bent)])
        seed += 1
        if outcome.faults:
            _say("\n" + keep(outcome))
            return 1
        if (seed - first) % 20 == 0:
            _say(f"{seed - first} seeds, {clock() - began:.0f} s, no promise broken", end="\r")
    _say(f"{seed - first} seeds, {clock() - began:.0f} s, no promise broken")
    return 0


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
