"""The only place that asks for time, ids or chance; everything else is given a Clock."""

import asyncio
import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

_MOST_IN_MILLISECOND: Final = 0xFFF
_SECRETS_AT_ONCE: Final = 256

# Secrets that nobody has been given yet: one request to the operating system serves many lease calls.
# A forked child begins without those of its parent.
_unused_secrets: Final[list[str]] = []
os.register_at_fork(after_in_child=_unused_secrets.clear)


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
        self._millisecond = 0
        self._head = ""
        self._counter = 0

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
        """Put milliseconds first, then a counter within the millisecond, then chance (RFC 9562, method 1)."""
        millisecond = time.time_ns() // 1_000_000
        if millisecond > self._millisecond:
            self._begin(millisecond)
        self._counter += 1
        if self._counter > _MOST_IN_MILLISECOND:
            self._begin(self._millisecond + 1)
        # The version and variant bits come first in their groups, so these have the width they need.
        count, chance = hex(7 << 12 | self._counter), hex(2 << 62 | random.getrandbits(62))
        return f"{self._head}{count[2:]}-{chance[2:6]}-{chance[6:]}"

    def _begin(self, millisecond: int) -> None:
        self._millisecond = millisecond
        self._head = f"{millisecond >> 16:08x}-{millisecond & 0xFFFF:04x}-"
        self._counter = 0

    def secret(self) -> str:
        """128 bits of the operating system's chance."""
        try:
            # One step, so that no two threads are given the same.
            return _unused_secrets.pop()
        except IndexError:
            digits = os.urandom(16 * _SECRETS_AT_ONCE).hex()
            secret, *others = (digits[first : first + 32] for first in range(0, len(digits), 32))
            _unused_secrets.extend(others)
            return secret

    def chance(self) -> float:
        """A number from 0 up to 1."""
        return random.random()


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
