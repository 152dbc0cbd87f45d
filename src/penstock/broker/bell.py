"""Wakes whoever waits for something to happen. A ring is a hint: who is woken looks again for himself."""

import asyncio
from collections.abc import Hashable, Iterable
from types import TracebackType
from typing import Self

from penstock.clock import Clock


class Bell:
    """Ropes by name, each with those who wait at it, first come first woken."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ropes: dict[Hashable, dict[Waiter, None]] = {}

    @property
    def silent(self) -> bool:
        """Whether nobody waits at all."""
        return not self._ropes

    def at(self, ropes: Iterable[Hashable]) -> "Waiter":
        """Stand at these ropes: whoever rings one from now on is heard, also before the wait begins."""
        return Waiter(self, self._clock, tuple(ropes))

    def ring(self, rope: Hashable, times: int = 1) -> None:
        """Wake so many of those who wait at the rope and have not been woken yet."""
        waiters = self._ropes.get(rope)
        if waiters is None:
            return
        for waiter in list(waiters):
            if times == 0:
                return
            if waiter.wake(rope):
                times -= 1

    def ring_all(self, rope: Hashable) -> None:
        """Wake everybody at the rope."""
        self.ring(rope, len(self._ropes.get(rope, ())))

    def join(self, waiter: "Waiter") -> None:
        """Put a waiter at the end of its ropes."""
        for rope in waiter.ropes:
            self._ropes.setdefault(rope, {})[waiter] = None

    def leave(self, waiter: "Waiter") -> None:
        """Take a waiter from its ropes."""
        for rope in waiter.ropes:
            waiters = self._ropes.get(rope)
            if waiters is not None and waiters.pop(waiter, self) is None and not waiters:
                del self._ropes[rope]


class Waiter:
    """One who waits. Woken but gone before he could look, he passes the ring on to the next."""

    def __init__(self, bell: Bell, clock: Clock, ropes: tuple[Hashable, ...]) -> None:
        self.ropes = ropes
        self._bell = bell
        self._clock = clock
        self._rung: Hashable | None = None
        self._asleep: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        self._bell.join(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bell.leave(self)
        if self._rung is not None:
            self._bell.ring(self._rung)

    def wake(self, rope: Hashable) -> bool:
        """Wake up; False if already awake."""
        if self._rung is not None:
            return False
        self._rung = rope
        if self._asleep is not None and not self._asleep.done():
            self._asleep.set_result(None)
        return True

    async def wait(self, seconds: float) -> None:
        """Sleep until woken, or so long; then it is on the caller to look."""
        if self._rung is None:
            self._asleep = asyncio.get_running_loop().create_future()
            timer = self._clock.call_later(seconds, self._time_is_up)
            try:
                await self._asleep
            finally:
                timer.cancel()
                self._asleep = None
        self._rung = None

    def _time_is_up(self) -> None:
        if self._asleep is not None and not self._asleep.done():
            self._asleep.set_result(None)
