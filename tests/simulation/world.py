"""One run: processes with real brokers and clients over one bucket, people who use them, then faults stop and all settles."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final, TypeVar

import penstock
from penstock import Client
from penstock.errors import Busy, Corrupt, PenstockError, Unavailable
from penstock.stores.log.store import LogStore
from tests.simulation.bucket import FaultyBucket, Vault, Weather
from tests.simulation.clock import FARTHEST_S, SimClock
from tests.simulation.coverage import Crossed
from tests.simulation.evidence import Evidence
from tests.simulation.ledger import Ledger, Life, Recorder
from tests.simulation.loop import Process, SimLoop, SimTask
from tests.simulation.swarm import Swarm

T = TypeVar("T")

# Whoever starts a process that cannot open its store tries again after so long.
RESTART_S: Final = 1.0


class Gone(Exception):
    """The process did not live to answer."""


class Host:
    """One life of a process: from its start until it crashes or stops."""

    def __init__(self, loop: SimLoop, name: str, clock: SimClock) -> None:
        self.name = name
        self.process: Process
        self.context: contextvars.Context
        self.process, self.context = loop.process(name)
        self.clock = clock
        self.life = Life(name, loop.time())
        self.bucket: FaultyBucket
        self.client: Client | None = None
        self.stop = asyncio.Event()
        self.ended = loop.create_future()
        self.calls: dict[asyncio.Future[Any], None] = {}


class World:
    """Everything of one run that is not the product."""

    def __init__(self, loop: SimLoop, swarm: Swarm, crossed: Crossed, *, speaks: bool = False) -> None:
        self.loop = loop
        self.swarm = swarm
        self.random = loop.random
        self.ledger = Ledger(loop, speaks=speaks)
        self.vault = Vault(loop, swarm.day_s)
        self.evidence = Evidence(self.vault)
        self.weather = Weather(loop, swarm)
        self.clock = SimClock(loop)
        self.hosts: list[Host] = []
        self.crossed = crossed
        self._up = asyncio.Event()
        self._slots: list[SimTask] = []
        self._closing = False

    @property
    def over(self) -> bool:
        """Whether faults have stopped."""
        return self.weather.over

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass, outside all processes."""
        await asyncio.sleep(seconds)

    # Calls into processes

    async def call(self, act: Callable[[Client], Coroutine[Any, Any, T]], host: Host | None = None) -> T:
        """Do this in one of the processes that are up. Raises Gone if the process ends first."""
        host = host or await self.somebody()
        assert host.client is not None
        answer: asyncio.Future[T] = self.loop.create_future()
        host.calls[answer] = None
        task = self.loop.create_task(act(host.client), context=host.context)
        task.add_done_callback(lambda done: _pass_on(done, answer), context=self.loop.outside_context)
        try:
            return await answer
        finally:
            del host.calls[answer]

    async def insist(self, act: Callable[[Client], Coroutine[Any, Any, T]], *, patience: float = 1.0) -> T | None:
        """Do the same again, anywhere, until it is answered; None if it was refused or patience ran out."""
        while True:
            try:
                return await self.call(act)
            except (Unavailable, Busy, Gone):
                if not self.over and self.random.random() > patience:
                    return None
            except PenstockError:
                return None
            await self.sleep(self.random.uniform(0, 1.0))

    async def somebody(self) -> Host:
        """A process that is up, as soon as there is one."""
        while True:
            up = [host for host in self.hosts if host.client is not None]
            if up:
                return self.random.choice(up)
            self._up.clear()
            await self._up.wait()

    # Processes

    def start(self) -> None:
        """Begin all processes, and keep them running."""
        self._slots = [self.loop.create_task(self._keep_running(n)) for n in range(self.swarm.processes)]

    async def finish(self) -> None:
        """Stop all processes as an operator would, and wait until they have."""
        self._closing = True
        for host in self.hosts:
            host.stop.set()
        await asyncio.gather(*self._slots)

    def clear(self) -> None:
        """End all faults for good."""
        self.weather.over = True
        for host in self.hosts:
            host.process.calls_left = None
            self._resume(host)

    async def _keep_running(self, number: int) -> None:
        skew_s = self.random.uniform(-1, 1) * self.swarm.skew_s
        clock = SimClock(self.loop, skew_s=skew_s, drift=self.random.uniform(-1, 1) * self.swarm.drift)
        jumps = self.loop.create_task(self._jump(clock)) if self.swarm.jump_every_s else None
        for life in count(1):
            host = self._boot(f"p{number}.{life}", clock)
            await host.ended
            self.hosts.remove(host)
            if self._closing:
                break
            await self.sleep(RESTART_S + self.random.uniform(0, self.swarm.down_s))
            if self._closing:
                break
        if jumps is not None:
            jumps.cancel()

    def _boot(self, name: str, clock: SimClock) -> Host:
        host = Host(self.loop, name, clock)
        host.bucket = FaultyBucket(
            self.vault,
            self.loop,
            self.weather,
            process=host.process,
            note=lambda line: self.ledger.note(f"{name} {line}"),
        )
        self.hosts.append(host)
        self.ledger.lives.append(host.life)
        self.ledger.note(f"{name} starts")
        serving = self.loop.create_task(self._serve(host), context=host.context)
        serving.add_done_callback(lambda done: self._ended(host, done), context=self.loop.outside_context)
        host.process.mishap = lambda: self._mishap(host)
        self._threaten(host)
        if self.swarm.stop_every_s and not self.over:
            self.loop.call_later(self.random.expovariate(1 / self.swarm.stop_every_s), self._stop, host)
        return host

    async def _serve(self, host: Host) -> None:
        store = LogStore(host.bucket, host.clock, self.swarm.log())
        async with penstock.connect(store=store, clock=host.clock, options=self.swarm.broker()) as client:
            host.client = Client(Recorder(client._seam, self.ledger, self.loop, host.name), host.clock)
            host.life.up_s = self.loop.time()
            self._up.set()
            await host.stop.wait()
            host.client = None

    def _ended(self, host: Host, serving: asyncio.Task[None]) -> None:
        error = serving.exception()
        self.ledger.note(f"{host.name} ends {error!r}")
        if isinstance(error, Corrupt):
            self.ledger.faults.append(f"G1 {host.name} cannot read what was written: {error!r}")
        elif error is not None and not isinstance(error, Unavailable | Busy):
            self.ledger.faults.append(f"unhandled: {host.name} ended: {error!r}")
        self._bury(host)

    def _stop(self, host: Host) -> None:
        if not self.over:
            host.stop.set()

    def _threaten(self, host: Host) -> None:
        """Draw how many calls the process makes before something befalls it."""
        every = [often for often in (self.swarm.crash_every, self.swarm.pause_every) if often]
        if every and not self.over:
            host.process.calls_left = 1 + int(self.random.expovariate(sum(1 / often for often in every)))

    def _mishap(self, host: Host) -> None:
        crash, pause = (1 / often if often else 0.0 for often in (self.swarm.crash_every, self.swarm.pause_every))
        if self.random.random() < crash / (crash + pause):
            self.ledger.note(f"{host.name} crashes")
            host.life.crashed = True
            self.crossed.note(host.process.tasks)
            self._bury(host)
            return
        self._threaten(host)
        pause_s = self.random.expovariate(1 / self.swarm.pause_s)
        self.ledger.note(f"{host.name} stands still for {pause_s:.1f} s")
        host.process.paused = True
        self.loop.call_later(pause_s, self._resume, host)

    def _resume(self, host: Host) -> None:
        host.process.paused = False

    def _bury(self, host: Host) -> None:
        if not host.process.dead:
            host.client = None
            host.life.ended_s = self.loop.time()
            self.loop.crash(host.process)
            host.ended.set_result(None)
            for answer in host.calls:
                if not answer.done():
                    answer.set_exception(Gone(host.name))

    async def _jump(self, clock: SimClock) -> None:
        while not self.over:
            await self.sleep(self.random.expovariate(1 / self.swarm.jump_every_s))
            if not self.over:
                clock.jump(self.random.uniform(-FARTHEST_S, FARTHEST_S))


def _pass_on(done: asyncio.Task[T], answer: asyncio.Future[T]) -> None:
    if answer.done():
        return
    if done.cancelled():
        answer.set_exception(Gone("cancelled"))
    elif (error := done.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())
