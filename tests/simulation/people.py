"""Who uses the queue in a simulation: producers, workers, operators and a cleaner. They live outside and never crash."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from penstock import Backoff, Client, Lease, NewJob, Policy
from penstock.clock import pause
from penstock.domain.job import State
from penstock.domain.limits import REPEAT_S
from penstock.errors import LeaseLost, PenstockError, Unavailable
from penstock.stores.log import clean as cleaning
from tests.simulation.ledger import Wish
from tests.simulation.world import Gone, World

# So many follow-up jobs are made at most, so that a run ends.
MOST_WISHES: Final = 80
SOON: Final = Backoff(Policy.FIXED, 0.5)


def everybody(world: World) -> list[Coroutine[Any, Any, None]]:
    """All the people of this world."""
    swarm = world.swarm
    return [
        *(worker(world) for _ in range(swarm.workers)),
        *(embedded_worker(world) for _ in range(swarm.embedded_workers)),
        *(operator(world) for _ in range(swarm.operators)),
        *(watcher(world) for _ in range(swarm.watchers)),
        *(cleaner(world) for _ in range(swarm.cleaners if swarm.clean_every_s else 0)),
    ]


async def producer(world: World) -> None:
    """Want jobs, and send the same command until it is answered, whichever process answers."""
    chance, share = world.random, world.swarm.jobs // world.swarm.producers + 1
    silence_s = world.swarm.silence_s
    while share > 0:
        if share <= world.swarm.jobs // world.swarm.producers // 2 and silence_s:
            await world.sleep(silence_s)
            silence_s = 0.0
        await world.sleep(chance.uniform(0, 2 * world.swarm.active_s / world.swarm.jobs))
        wish = _wish(world, chance.choice((1, 1, 1, 2, 5)))
        share -= len(wish.jobs)
        await enqueue(world, wish)
        if chance.random() < 0.1 and _repeatable(wish):
            # A repeat long after the answer, and another body under the same name.
            await world.sleep(chance.uniform(0, 5))
            await world.insist(lambda client, jobs=wish.jobs: client.enqueue_many(jobs))  # type: ignore[misc] # bound at once
            other = NewJob(
                "q0",
                {"wish": -1, "part": wish.number},
                id=wish.jobs[0].id,
                idempotency_key=wish.jobs[0].idempotency_key,
            )
            await world.insist(lambda client, job=other: client.enqueue_many([job]))  # type: ignore[misc] # bound at once


async def enqueue(world: World, wish: Wish) -> None:
    """Send one wish until it is answered; one that names neither id nor key can be sent only once."""

    async def send(client: Client) -> None:
        if len(wish.jobs) == 1 and wish.jobs[0].id is None:
            new = wish.jobs[0]
            job = await client.enqueue(
                new.queue, new.payload, max_attempts=new.max_attempts, idempotency_key=new.idempotency_key
            )
            wish.accepted = (job,)
        else:
            wish.accepted = tuple(await client.enqueue_many(wish.jobs))

    if _repeatable(wish):
        await world.insist(send)
    else:
        with suppress(PenstockError, Gone):
            await world.call(send)


def _repeatable(wish: Wish) -> bool:
    return all(new.id or new.idempotency_key for new in wish.jobs)


def _wish(world: World, many: int) -> Wish:
    chance = world.random
    number = len(world.ledger.wishes)
    named = chance.choice(("id", "key", "both", "neither" if many == 1 else "id"))
    return world.ledger.wish(*(_job(world, number, part, named) for part in range(many)))


def _job(world: World, number: int, part: int, named: str) -> NewJob:
    chance = world.random
    return NewJob(
        f"q{chance.randrange(world.swarm.queues)}",
        {"wish": number, "part": part},
        id=world.clock.job_id() if named in {"id", "both"} else None,
        kind=chance.choice((None, None, "a", "b")) if named != "neither" else None,
        idempotency_key=f"k{number}.{part}" if named in {"key", "both"} else None,
        priority=chance.choice((0, 0, 0, 1, -1)),
        delay_s=chance.choice((None, None, None, 0.5, 5.0)),
        deadline_s=chance.choice((None, None, None, None, 20.0)),
        max_attempts=chance.choice((1, 2, 3, 5)),
        backoff=chance.choice((SOON, SOON, Backoff(Policy.JITTER, 1.0, 10.0))),
    )


async def worker(world: World) -> None:
    """Lease through any process and work outside, as one behind a network would; sometimes vanish."""
    chance, swarm = world.random, world.swarm
    while True:
        leases = await world.insist(_lease(world), patience=0.8) or []
        for lease in leases:
            if world.over or chance.random() > swarm.vanish:
                await work(world, lease)
        # A long silence is not filled with lease calls that find nothing.
        await world.sleep(chance.uniform(0, 30.0 if swarm.silence_s and not leases else 0.5))


def _lease(world: World) -> Callable[[Client], Coroutine[Any, Any, list[Lease]]]:
    """A lease call, drawn once: whoever repeats it repeats it as it was."""
    chance, queues = world.random, [f"q{n}" for n in range(world.swarm.queues)]
    picky = not world.over and chance.random() < 0.2
    wanted: dict[str, Any] = {
        "queues": chance.sample(queues, chance.randint(1, len(queues))) if picky else queues,
        "kinds": ("a", "q0") if picky else None,
        "limit": chance.randint(1, 4),
        "lease_s": world.swarm.lease_s,
        "wait_s": chance.choice((0.0, 0.5, 3.0, 10.0)),
        "worker": f"w{chance.randrange(5)}",
        "request_id": world.clock.secret(),
    }
    return lambda client: client.lease(**wanted)


async def work(world: World, lease: Lease) -> None:
    """Hold the job for a while, with heartbeats or without, and end the attempt one way or another, perhaps twice."""
    chance, swarm = world.random, world.swarm
    beats = chance.choice((0, 0, 1, 3)) if not world.over else 0
    for _ in range(beats):
        await world.sleep(chance.uniform(0, swarm.lease_s * 0.6))
        if (
            await world.insist(
                lambda client: client.heartbeat(lease, progress=chance.choice((None, 0.5))), patience=0.5
            )
            is None
        ):
            break
    if not world.over:
        await world.sleep(chance.choice((0.0, 0.1, 0.5, 1.0, swarm.lease_s * 1.5)))
    end = _ending(world, lease)
    for _ in range(chance.choice((1, 1, 1, 2))):
        await world.insist(end, patience=0.9)


def _ending(world: World, lease: Lease) -> Callable[[Client], Coroutine[Any, Any, object]]:
    chance, swarm = world.random, world.swarm
    if world.over or chance.random() >= swarm.fail:
        then: tuple[NewJob, ...] = ()
        wishes = world.ledger.wishes
        if not world.over and len(wishes) < MOST_WISHES and chance.random() < 0.2:
            then = _wish(world, 2).jobs
        return lambda client: client.ack(lease, {"ok": lease.job.attempt}, then=then)
    match chance.randrange(4):
        case 0:
            return lambda client: client.release(lease)
        case 1:
            return lambda client: client.release(lease, delay_s=1.0)
        case 2:
            return lambda client: client.nack(lease, "no good", retry=False)
        case _:
            return lambda client: client.nack(lease, "bad luck")


async def embedded_worker(world: World) -> None:
    """Lease and work inside one process, with a keeper; dies with it."""

    async def turn(client: Client) -> None:
        clock = client._clock
        for lease in await client.lease("q0", lease_s=world.swarm.lease_s, wait_s=5.0, worker="embedded"):
            try:
                async with client.keep(lease) as keeper:
                    keeper.progress = 0.3
                    await pause(clock, world.random.uniform(0, world.swarm.lease_s * (0 if world.over else 1.5)))
                await client.ack(lease)
            except LeaseLost:
                pass

    while True:
        try:
            await world.call(turn)
        except (PenstockError, Gone):
            await world.sleep(0.5)


async def operator(world: World) -> None:
    """Look at jobs and meddle with them, until faults stop."""
    chance = world.random
    if world.swarm.silence_s:
        kept = dict.fromkeys(("retain_succeeded_s", "retain_cancelled_s", "retain_dead_s"), REPEAT_S)
        for number in range(world.swarm.queues):
            await world.insist(lambda client, queue=f"q{number}": client.set_queue(queue, **kept))  # type: ignore[misc] # bound at once
    while not world.over:
        await world.sleep(chance.uniform(0, 3 if not world.swarm.silence_s else 200))
        known = [job.id for wish in world.ledger.wishes for job in wish.accepted or ()]
        job_id = chance.choice(known) if known else world.clock.job_id()
        act, queue = chance.choice(_MEDDLING), f"q{chance.randrange(world.swarm.queues)}"
        await world.insist(lambda client, act=act, of=(job_id, queue): act(client, *of), patience=0.5)  # type: ignore[misc] # bound at once


# What an operator can do, with a job and a queue; the more often it stands here, the more often it is done.
_MEDDLING: Final[tuple[Callable[[Client, str, str], Coroutine[Any, Any, object]], ...]] = (
    lambda client, job_id, _: client.cancel(job_id),
    lambda client, job_id, _: client.requeue(job_id, again=True),
    lambda client, job_id, _: client.requeue(job_id, payload={"wish": -1, "part": 0}, delay_s=0.5),
    lambda client, job_id, _: client.update(job_id, now=True, priority=-3),
    lambda client, job_id, _: client.update(job_id, max_attempts=4),
    lambda client, _, queue: client.pause(queue),
    lambda client, _, queue: client.resume(queue),
    lambda client, _, queue: client.resume(queue),
    lambda client, _, queue: client.reset_queue(queue),
    lambda client, job_id, _: client.purge(job_id),
    lambda client, _, queue: client.purge_queue(queue, state=State.SUCCEEDED, older_than_s=REPEAT_S),
    lambda client, _, queue: client.list(queue=queue, state=State.QUEUED, limit=5),
    lambda client, _, queue: client.queue(queue),
    lambda client, _, __: client.stats(),
    lambda client, job_id, _: client.history(job_id),
    lambda client, job_id, _: client.attempts(job_id),
    lambda client, _, __: client.snapshot(),
    lambda client, _, queue: client.set_queue(queue, max_depth=1_000),
    lambda client, job_id, _: client.wait(job_id, timeout_s=3.0),
    lambda client, _, __: client.expire_now(),
    lambda client, job_id, _: client.get(job_id),
    lambda client, job_id, _: client.get(job_id),
    lambda client, job_id, _: client.get(f"{job_id[:-12]}{'0' * 12}"),
)


async def watcher(world: World) -> None:
    """Follow the events of one process as long as it lives."""

    async def watch(client: Client) -> None:
        async for _ in client.watch():
            pass

    while True:
        try:
            await world.call(watch)
        except (Unavailable, Gone):
            await world.sleep(1.0)


async def cleaner(world: World) -> None:
    """Delete what rule 2 lets go, as if some part of the log had been archived."""
    chance = world.random
    while True:
        await world.sleep(chance.uniform(0, 2 * world.swarm.clean_every_s))
        host = await world.somebody()
        head = world.evidence.catch_up().head
        archived_to = chance.choice((head, chance.randint(0, head)))
        with suppress(PenstockError, Gone):
            await world.call(lambda _, bucket=host.bucket, to=archived_to: cleaning.clean(bucket, archived_to=to), host)  # type: ignore[misc] # bound at once
