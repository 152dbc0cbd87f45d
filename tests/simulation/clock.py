"""The clock of one simulated process: wrong about the wall, right about how much time went by."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from penstock.clock import Timer, uuid7
from tests.simulation.loop import SimLoop

BEGUN_AT: Final = datetime(2030, 1, 1, tzinfo=UTC)
# Rule 8 lets a process go on while it is within 30 s of the store's stamps.
FARTHEST_S: Final = 28.0


class SimClock:
    """A wall clock with skew, drift and jumps, an elapsed clock that counts pauses, and chance from the seed."""

    def __init__(self, loop: SimLoop, *, skew_s: float = 0.0, drift: float = 0.0) -> None:
        self._loop = loop
        self._skew_s = skew_s
        self._drift = drift
        # Two machines have not booted at one moment: whoever compares their elapsed clocks is far off.
        self._booted_s = loop.random.uniform(0, 1e6)
        self._ids = 0

    def now(self) -> datetime:
        """What the machine takes for the time."""
        off_s = self._skew_s + self._drift * self._loop.time()
        return BEGUN_AT + timedelta(seconds=self._loop.time() + min(FARTHEST_S, max(-FARTHEST_S, off_s)))

    def elapsed(self) -> float:
        """Seconds since the machine booted."""
        return self._booted_s + self._loop.time()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Make the call on virtual time."""
        return self._loop.call_later(delay_s, call)

    def job_id(self) -> str:
        """A UUIDv7 of the wall clock's time."""
        self._ids += 1
        milliseconds = int(self.now().timestamp() * 1000)
        return uuid7(milliseconds, self._ids & 0xFFF, self._loop.random.getrandbits(62))

    def secret(self) -> str:
        """128 bits from the seed."""
        return f"{self._loop.random.getrandbits(128):032x}"

    def chance(self) -> float:
        """A number from 0 up to, and not including, 1."""
        return self._loop.random.random()

    def jump(self, skew_s: float) -> None:
        """Set the wall clock: it is so far off from now on."""
        self._skew_s = skew_s
