"""The only place that asks for time, ids or chance; everything else is given a Clock."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Protocol
from weakref import WeakSet

_SECRETS_AT_ONCE: Final = 256


class Timer(Protocol):
    """A call that is due later and can be taken back."""

    def cancel(self) -> None:
        """Take the call back; harmless when it has been made."""
        ...


class Clock(Protocol):
    """Time, ids and chance, as one thing that tests and simulations replace."""

    def now(self) -> datetime:
        """Wall-clock time in UTC. Serves delays, backoff and retention; leases never use it."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that never goes back and counts the time a machine sleeps."""
        ...

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Make the call once, after the delay. Read ``elapsed`` again then: a machine may have slept."""
        ...

    def job_id(self) -> str:
        """A new UUIDv7; those of one process rise."""
        ...

    def secret(self) -> str:
        """128 random bits as 32 hexadecimal digits, which nobody can guess."""
        ...

    def chance(self) -> float:
        """A number from 0 up to 1, for waits that must not keep step with each other."""
        ...


class SystemClock:
    """The machine's own time and chance."""

    def __init__(self) -> None:
        self._begin_anew()
        _clocks.add(self)

    def _begin_anew(self) -> None:
        self._stamp = _stamp(0)
        # Those that nobody has been given yet: one request to the operating system serves many lease calls.
        self._secrets: list[str] = []

    def now(self) -> datetime:
        """Wall-clock time in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Seconds since boot, suspended time included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Make the call on the running event loop after the delay."""
        return asyncio.get_running_loop().call_later(delay_s, call)

    def job_id(self) -> str:
        """Put milliseconds first, then a counter within the millisecond, then chance, drawn once for each millisecond.

        As RFC 9562, method 1, has it: two ids of one clock differ before their chance, those of two clocks in it.
        """
        millisecond = time.time_ns() // 1_000_000
        stamped, head, counts, tail = self._stamp
        if millisecond > stamped:
            stamped, head, counts, tail = self._stamp = _stamp(millisecond)
        # One step, so that no two threads are given the same.
        count = next(counts, None)
        if count is None:
            _, head, counts, tail = self._stamp = _stamp(stamped + 1)
            count = next(counts)
        return f"{head}{count:x}{tail}"

    def secret(self) -> str:
        """128 bits of the operating system's chance."""
        try:
            # One step, so that no two threads are given the same.
            return self._secrets.pop()
        except IndexError:
            digits = os.urandom(16 * _SECRETS_AT_ONCE).hex()
            secret, *others = [digits[first : first + 32] for first in range(0, len(digits), 32)]
            self._secrets.extend(others)
            return secret

    def chance(self) -> float:
        """A number from 0 up to 1."""
        return random.random()


def _stamp(millisecond: int) -> tuple[int, str, Iterator[int], str]:
    """The millisecond, how its ids begin, the counts that come next (behind the version) and how its ids end."""
    made = uuid7(millisecond, 0, random.getrandbits(62))
    return millisecond, made[:14], iter(range(7 << 12, 8 << 12)), made[18:]


# The clocks of this process, which a forked child must wind anew: it would give out what its parent does.
_clocks: Final[WeakSet[SystemClock]] = WeakSet()


def _after_fork() -> None:
    for clock in _clocks:
        clock._begin_anew()  # noqa: SLF001 the class's own helper


os.register_at_fork(after_in_child=_after_fork)


def uuid7(milliseconds: int, counter: int, chance: int) -> str:
    """A UUIDv7 of 48 bits of time, 12 bits of counter and 62 bits of chance."""
    digits = (milliseconds << 80 | 7 << 76 | counter << 64 | 2 << 62 | chance).to_bytes(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


async def pause(clock: Clock, seconds: float) -> None:
    """Sleep on the given clock; for no time at all, let others have a turn."""
    if seconds <= 0:
        await asyncio.sleep(0)
        return
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
