"""What a planted bug is: one function of the product in a wrong version that somebody could have written."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from msgspec import Struct

from tests.simulation.swap import swapped
from tests.simulation.swarm import Bent


class Bug(Struct, frozen=True):
    """A wrong version of one function.

    It names the promise it breaks, as the checks do, and the number of seeds within which they must say so. To be found
    quickly, it may bend the worlds it is looked for in; the same seeds, bent alike, must pass without it.
    """

    name: str
    breaks: str
    where: Any
    what: Any
    wrong: Callable[..., Any]
    seeds: int
    world: dict[str, Any] = {}

    @property
    def bent(self) -> Bent:
        """The worlds it is looked for in."""
        return Bent(self.name, {"silence_s": 0.0, **self.world})

    def planted(self) -> AbstractContextManager[None]:
        """The product with this bug."""
        return swapped(self.where, self.what, self.wrong)

    def found(self, faults: list[str]) -> bool:
        """Whether the promise it breaks is among these."""
        return any(fault.startswith((f"{self.breaks} ", f"{self.breaks}:")) for fault in faults)


BUGS: Final[list[Bug]] = []


def bug(
    name: str, *, breaks: str, where: Any, what: Any, seeds: int, **world: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Plant what follows in place of ``where.what``."""

    def plant(wrong: Callable[..., Any]) -> Callable[..., Any]:
        BUGS.append(Bug(name, breaks, where, what, wrong, seeds, world))
        return wrong

    return plant
