"""The bucket of the simulation: one shared place, and for every process a network that does to calls what networks do."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from penstock.errors import Busy, PenstockError, Unavailable
from penstock.stores.log import floor
from penstock.stores.log.bucket import Listed, Taken
from penstock.testing.bucket import MemoryBucket
from tests.simulation.clock import BEGUN_AT, SimClock
from tests.simulation.loop import Process, SimLoop
from tests.simulation.swarm import Swarm

T = TypeVar("T")

# How often a call that stands still with its process looks whether it goes on.
_STANDS_S: Final = 0.3


class Created(NamedTuple):
    """One object that came to be, at a moment of the true time line."""

    at_s: float
    key: str
    data: bytes


class Vault(MemoryBucket):
    """The one true bucket. It remembers every object that ever was, also those deleted since.

    Snapshots are stamped by a clock on which a day takes ``day_s``: a run sees many days of deleting.
    """

    def __init__(self, loop: SimLoop, day_s: float) -> None:
        super().__init__(SimClock(loop))
        self._loop = loop
        self._days = 86_400 / day_s
        self.created: list[Created] = []

    async def put(self, key: str, data: bytes | bytearray) -> None:
        """Create the object and remember when."""
        await super().put(key, data)
        self.created.append(Created(self._loop.time(), key, bytes(data)))

    async def close(self) -> None:
        """Stay open: it is everybody's."""

    def lay(self, key: str, data: bytes) -> None:
        """Put something there behind everybody's back, and not into the evidence."""
        self._objects[key] = (data, BEGUN_AT)

    async def list(self, prefix: str) -> Sequence[Listed]:
        """Show what is there, with the snapshots' own stamps."""
        return [
            replace(listed, stamped_at=BEGUN_AT + self._days * (listed.stamped_at - BEGUN_AT))
            if listed.key.startswith(("snapshot/", "gone/"))
            else listed
            for listed in await super().list(prefix)
        ]


class Weather:
    """Faults that hold for a while and for everybody: outages and a full disk. ``clear`` ends all faults for good."""

    def __init__(self, loop: SimLoop, swarm: Swarm) -> None:
        self.swarm = swarm
        self.over = False
        self._loop = loop
        self._outage = _Spell(loop, swarm.outage_every_s, swarm.outage_s)
        self._full = _Spell(loop, swarm.full_every_s, swarm.full_s)

    def strikes(self, rate: float) -> bool:
        """Whether a fault of this rate befalls the call."""
        return rate > 0 and not self.over and self._loop.random.random() < rate

    @property
    def outage(self) -> bool:
        """Whether nothing gets through."""
        return not self.over and self._outage.on()

    @property
    def full(self) -> bool:
        """Whether there is no space."""
        return not self.over and self._full.on()

    def delay_s(self) -> float:
        """How long one way through the network takes."""
        if self.strikes(self.swarm.slow):
            return self._loop.random.uniform(0, 20.0)
        return self._loop.random.uniform(0, self.swarm.latency_s)


class _Spell:
    """Something that comes and goes."""

    def __init__(self, loop: SimLoop, every_s: float, length_s: float) -> None:
        self._loop = loop
        self._every_s = every_s
        self._length_s = length_s
        self._next_s = loop.random.expovariate(1 / every_s) if every_s else float("inf")

    def on(self) -> bool:
        while self._loop.time() >= self._next_s + self._length_s:
            self._next_s += self._length_s + self._loop.random.expovariate(1 / self._every_s)
        return self._loop.time() >= self._next_s


class FaultyBucket:
    """One process's way to the vault. A call travels, takes effect at one moment, and its answer travels back.

    Some calls are on their way at once, and arrive even if the sender is gone by then. Others wait in a thread of the
    sender's: they stand still with it, and are gone with it. Where the bucket keeps an order, all small ones do so, and
    take effect as they were made.
    """

    def __init__(
        self, vault: Vault, loop: SimLoop, weather: Weather, *, process: Process, note: Callable[[str], None]
    ) -> None:
        self._vault = vault
        self._process = process
        self._loop = loop
        self._weather = weather
        self._note = note
        # Calls that take effect one after the other.
        self._line: deque[Callable[[], None]] = deque()

    async def put(self, key: str, data: bytes | bytearray) -> None:
        """Create the object, unless something comes between."""
        weather, swarm = self._weather, self._weather.swarm

        def effect() -> None:
            if weather.full:
                raise Busy("no space", retry_after_s=1.0, key=key)
            _now(self._vault.put(key, data))

        if weather.strikes(swarm.doubled):
            self._later(weather.delay_s() * 3, _ignoring(effect))
        if weather.strikes(max(swarm.late, swarm.late_floors if key.startswith(floor.FOLDER) else 0.0)):
            self._later(self._loop.random.uniform(0, 30.0), _ignoring(effect))
            raise await self._lost("late", key)
        await self._call("put", key, effect, lost=swarm.lost, size=len(data))

    async def get(self, key: str) -> bytes:
        """Read the object."""
        return await self._call("get", key, lambda: _now(self._vault.get(key)), lost=self._weather.swarm.unread)

    async def list(self, prefix: str) -> Sequence[Listed]:
        """List what is there when the call arrives, in no order."""

        def effect() -> Sequence[Listed]:
            listed = list(_now(self._vault.list(prefix)))
            self._loop.random.shuffle(listed)
            return listed

        return await self._call("list", prefix, effect, lost=self._weather.swarm.unread)

    async def delete(self, key: str) -> None:
        """Delete the object."""
        await self._call("delete", key, lambda: _now(self._vault.delete(key)), lost=self._weather.swarm.lost)

    async def close(self) -> None:
        """Take a moment, as closing does, and let go of nothing: the vault stays."""
        await asyncio.sleep(self._weather.delay_s())

    async def _call(self, verb: str, key: str, effect: Callable[[], T], *, lost: float, size: int = 0) -> T:
        weather = self._weather
        if weather.outage or weather.strikes(weather.swarm.refused):
            raise await self._lost(f"{verb} refused", key)
        answer = self._loop.create_future()

        def arrive() -> None:
            told: object
            try:
                reply, told = answer.set_result, effect()
            except (PenstockError, Taken) as error:
                reply, told = answer.set_exception, error
            if weather.strikes(lost):
                reply, told = answer.set_exception, Unavailable("the answer was lost", key=key)
            self._note(f"{verb} {key} {_short(told)}")
            self._later(weather.delay_s(), lambda: None if answer.done() else reply(told))

        self._send(arrive, size)
        return await answer  # type: ignore[no-any-return] # what the effect returned

    def _send(self, arrive: Callable[[], None], size: int) -> None:
        sent, delay_s = self._loop.random.random() < 0.5, self._weather.delay_s()
        if 0 < self._weather.swarm.in_order_bytes >= size:
            self._line.append(arrive)
            self._later(delay_s, lambda: self._by_thread(self._next_in_line))
        elif sent:
            self._later(delay_s, arrive)
        else:
            self._later(delay_s, lambda: self._by_thread(arrive))

    def _next_in_line(self) -> None:
        # Whichever call's way this was: they were as many as the calls.
        self._line.popleft()()

    def _by_thread(self, arrive: Callable[[], None]) -> None:
        """Stand still with the process, and be gone with it."""
        if self._process.paused and not self._process.dead:
            self._later(_STANDS_S, lambda: self._by_thread(arrive))
        elif not self._process.dead:
            arrive()

    async def _lost(self, what: str, key: str) -> Unavailable:
        self._note(f"{what} {key}")
        answer = self._loop.create_future()
        self._later(2 * self._weather.delay_s(), lambda: None if answer.done() else answer.set_result(None))
        await answer
        return Unavailable("the bucket did not answer", key=key)

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._loop.call_later(delay_s, call, context=self._loop.outside_context)


def _now(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return] # what the coroutine returns
    raise AssertionError("the vault waits for nothing")


def _ignoring(effect: Callable[[], None]) -> Callable[[], None]:
    def arrive() -> None:
        with suppress(PenstockError, Taken):
            effect()

    return arrive


def _short(told: object) -> str:
    if isinstance(told, bytes):
        return f"{len(told)} bytes"
    if isinstance(told, list):
        return f"{len(told)} objects"
    return "ok" if told is None else repr(type(told).__name__)
