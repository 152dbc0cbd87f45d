"""One seed from beginning to end: a world, its people, the calm after, and what the checks say."""

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

import penstock
from penstock import Client
from penstock.domain.job import DEFAULT_TENANT as TENANT
from penstock.domain.queries import Snapshot
from penstock.domain.verify import Live
from penstock.errors import Corrupt, NotFound
from penstock.stores.log import snapshot
from penstock.stores.log.store import LogStore
from tests.simulation import checks, people
from tests.simulation.clock import SimClock
from tests.simulation.coverage import Crossed
from tests.simulation.evidence import Broken
from tests.simulation.loop import SimLoop, Stuck
from tests.simulation.swap import swapped
from tests.simulation.swarm import Bent, Swarm, draw
from tests.simulation.world import World

# A snapshot is written in slices of so many lines, so that even these small ones have several.
SLICE: Final = 3
# Once faults have stopped, all jobs are finished and all processes stopped within this.
SETTLED_S: Final = 400.0


class Run(Struct):
    """What one seed led to."""

    seed: int
    bent: Bent
    swarm: Swarm
    faults: list[str]
    digest: str
    commits: int
    calls: int
    virtual_s: float
    trace: list[str]

    @property
    def replay(self) -> str:
        """The command that does the same again, with its trace."""
        return f"make sim SEED={self.seed}" + (f' WORLD="{self.bent.name}"' if self.bent.name else "")


def run(seed: int, bent: Bent = Bent(), *, crossed: Crossed | None = None, speaks: bool = False) -> Run:  # noqa: B008 a value
    """Run one seed in the world it draws, perhaps bent."""
    loop = SimLoop(seed)  # type: ignore[abstract] # it has what is used of a loop, and no more
    swarm = replace(draw(loop.random), **bent.so)
    with _quiet(), swapped(snapshot, "_SLICE", SLICE):
        world, faults = _lived(loop, swarm, crossed or Crossed(), speaks=speaks)
    faults += [*world.ledger.faults, *(f"unhandled: {what}" for what in loop.unhandled)]
    try:
        faults += checks.all_faults(world.evidence.catch_up(), world.ledger, swarm)
    except Exception as error:  # noqa: BLE001 a log that cannot be read or folded is what was looked for
        faults.append(f"G1 the log is broken: {error!r}")
    return Run(
        seed=seed,
        bent=bent,
        swarm=swarm,
        faults=faults,
        digest=_digest(loop, world),
        commits=world.evidence.head,
        calls=len(loop.order),
        virtual_s=loop.time(),
        trace=world.ledger.lines,
    )


def _lived(loop: SimLoop, swarm: Swarm, crossed: Crossed, *, speaks: bool) -> tuple[World, list[str]]:
    worlds: list[World] = []
    faults: list[str] = []

    async def live() -> None:
        worlds.append(World(loop, swarm, crossed, speaks=speaks))
        await _live(worlds[0], faults)

    try:
        loop.run_until_complete(live())
    except Stuck as stuck:
        faults.append(f"did not settle: {stuck}")
    except (Broken, Corrupt) as error:
        faults.append(f"G1 the log is broken: {error!r}")
    except Exception as error:  # noqa: BLE001 whatever it is, this seed has found it
        faults.append(f"unhandled: {error!r}")
    return worlds[0], faults


@contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger("penstock")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _digest(loop: SimLoop, world: World) -> str:
    digest = hashlib.sha256(bytes(loop.order) + "\n".join(world.ledger.lines).encode())
    for created in world.vault.created:
        digest.update(created.data)
    return digest.hexdigest()


async def _live(world: World, faults: list[str]) -> None:
    world.start()
    producing = [world.loop.create_task(people.producer(world)) for _ in range(world.swarm.producers)]
    others = [world.loop.create_task(person) for person in people.everybody(world)]
    await asyncio.sleep(world.swarm.active_s + world.swarm.silence_s)
    world.ledger.note("faults stop")
    world.clear()
    try:
        async with asyncio.timeout(SETTLED_S):
            await asyncio.gather(*producing)
            await _settle(world)
            for person in others:
                person.cancel()
            answers = await asyncio.gather(*others, return_exceptions=True)
            faults += [f"unhandled: {answer!r}" for answer in answers if isinstance(answer, Exception)]
            faults += await _compare(world)
            await world.finish()
            faults += await _reopen(world)
    except TimeoutError:
        evidence = world.evidence.catch_up()
        unfinished = [job for job in evidence.state(evidence.head).jobs if not job.state.finished]
        faults.append(f"did not settle: {SETTLED_S:g} s after the last fault there is still unfinished {unfinished}")


async def _settle(world: World) -> None:
    """Wait until all jobs are finished, as the log says."""
    while True:
        await asyncio.sleep(2.0)
        evidence = world.evidence.catch_up()
        if all(job.state.finished for job in evidence.state(evidence.head).jobs):
            return
        for name, queue in evidence.tables.tenant(TENANT).queues.items():
            if queue.settings.paused:
                # A pause whose answer was lost can come after the operator has given up and resumed.
                await world.insist(lambda client, queue=name: client.resume(queue))  # type: ignore[misc] # bound at once


async def _compare(world: World) -> list[str]:
    """All processes, made to look at the log's end, hold what the log says."""
    faults = []
    for host in [host for host in world.hosts if host.client is not None]:
        seen = await world.call(_everything, host)
        expected = world.evidence.catch_up().state(seen.seq)
        if seen != expected:
            faults.append(
                f"G1 {host.name} holds another state than the log at seq={seen.seq}: {_differ(seen, expected)}"
            )
    return faults


async def _everything(client: Client) -> Snapshot:
    # What is refused is refused after a look at the end of the log (rule 1).
    with suppress(NotFound):
        await client.get("0" * 8 + "-0000-7000-8000-" + "0" * 12)
    return await client.snapshot()


async def _reopen(world: World) -> list[str]:
    """A process that opens now finds what the log says, also in its indexes."""
    evidence = world.evidence.catch_up()
    if not evidence.head:
        return []
    _, context = world.loop.process("last")
    clock = SimClock(world.loop)
    store = LogStore(world.vault, clock, world.swarm.log())

    async def look() -> list[str]:
        async with penstock.connect(store=store, clock=clock, options=world.swarm.broker()) as client:
            seen, expected = await client.snapshot(), evidence.state(evidence.head)
            faults = [] if seen == expected else [f"G1 opened anew it is another state: {_differ(seen, expected)}"]
            faults += checks.indexes(store._state.kept.tables, evidence.tables)
            return faults + checks.verified(evidence, Live(seen.seq, {TENANT: (seen, await client.stats())}))

    faults: list[str] = await world.loop.create_task(look(), context=context)
    return faults + await _refuse(world, evidence.head)


async def _refuse(world: World, head: int) -> list[str]:
    """G14: a record that a newer release has written stops whoever opens the log, and so does a damaged one."""
    faults = []
    for name, data in {"newer": b'{"v":99,"seq":0}\n', "damaged": b'{"v":1,"seq"', "empty": b""}.items():
        world.vault.lay(f"log/{head + 1:020}.jsonl", data)
        try:
            await LogStore(world.vault, world.clock, world.swarm.log()).open()
        except Corrupt:
            continue
        faults.append(f"G14 a {name} record was taken for nothing")
    return faults


def _differ(seen: Snapshot, expected: Snapshot) -> str:
    jobs, wanted = {job.id: job for job in seen.jobs}, {job.id: job for job in expected.jobs}
    for job_id in sorted(jobs.keys() | wanted.keys()):
        if jobs.get(job_id) != wanted.get(job_id):
            return f"{jobs.get(job_id)} instead of {wanted.get(job_id)}"
    return f"seq {seen.seq} {seen.settings} instead of seq {expected.seq} {expected.settings}"
