"""A clock that stands still until it is told to move, with ids and chance from a seed."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

from penstock.clock import uuid7


class FakeTimer:
    """A call that is due later on a fake clock."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Take the call back."""
        self.call = None


class FakeClock:
    """Time as the test says. Timers fire in their order while it moves; what they wake runs at the next ``await``."""

    def __init__(self, *, start: datetime = datetime(2030, 1, 1, tzinfo=UTC), seed: int = 0) -> None:
        self._start = start
        self._chance = random.Random(seed)
        self._elapsed = 0.0
        self._ids = count()
        self._timers: list[tuple[float, int, FakeTimer]] = []

    def now(self) -> datetime:
        """Wall-clock time."""
        return self._start + timedelta(seconds=self._elapsed)

    def elapsed(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def call_later(self, delay_s: float, call: Callable[[], None]) -> FakeTimer:
        """Make the call once time has moved so far."""
        timer = FakeTimer(call)
        heappush(self._timers, (self._elapsed + delay_s, next(self._ids), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move time on, and fire the timers that are due on the way."""
        until = self._elapsed + seconds
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heappop(self._timers)
            self._elapsed = max(self._elapsed, due)
            if timer.call is not None:
                timer.call()
        self._elapsed = until

    def job_id(self) -> str:
        """A UUIDv7 of the clock's own time; they rise."""
        milliseconds = int(self.now().timestamp() * 1000)
        return uuid7(milliseconds, next(self._ids) & 0xFFF, self._chance.getrandbits(62))

    def secret(self) -> str:
        """128 bits from the seed."""
        return f"{self._chance.getrandbits(128):032x}"

    def chance(self) -> float:
        """A number from 0 up to 1, from the seed."""
        return self._chance.random()
