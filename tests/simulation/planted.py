"""Planted bugs: each replaces one function of the product by a wrong version that somebody could have written.

A bug names the promise it breaks, and the number of seeds within which the simulation must find it. To be found
quickly, it may bend the worlds it is looked for in; the same seeds, bent alike, must pass without it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from heapq import heappop
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from penstock.broker.broker import Broker
from penstock.client.client import Client
from penstock.domain import apply, decide, due
from penstock.domain.commands import Command, Expire, Heartbeat
from penstock.domain.events import AnyEvent, Failed, Record
from penstock.domain.heap import Heap
from penstock.domain.job import Holding, Job, NewJob, Verb
from penstock.domain.outcome import Holdings, Outcome
from penstock.domain.tables import Tables
from penstock.errors import Unavailable
from penstock.stores.kept import Kept
from penstock.stores.log import record as records
from penstock.stores.log import snapshot
from penstock.stores.log.bucket import Taken
from penstock.stores.log.floor import Floor, Void
from penstock.stores.log.state import State
from penstock.stores.log.store import LogStore


class Bug(Struct, frozen=True):
    """A wrong version of one function."""

    name: str
    breaks: str
    where: Any
    what: str
    wrong: Callable[..., Any]
    seeds: int
    world: dict[str, Any] = {}

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The product with this bug."""
        holder = self.where
        held = holder[self.what] if isinstance(holder, dict) else holder.__dict__[self.what]
        _put(holder, self.what, self.wrong)
        try:
            yield
        finally:
            _put(holder, self.what, held)


def _put(holder: Any, name: Any, value: object) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)


BUGS: Final[list[Bug]] = []


def bug(
    name: str, *, breaks: str, where: Any, what: Any, seeds: int, **world: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Plant what follows in place of ``where.what``."""

    def plant(wrong: Callable[..., Any]) -> Callable[..., Any]:
        BUGS.append(Bug(name, breaks, where, what, wrong, seeds, world))
        return wrong

    return plant


# Writing


@bug(
    "no own-write detection",
    breaks="G2",
    where=LogStore,
    what="_create",
    seeds=60,
    lost=0.3,
    snapshot_records=10_000,
    snapshot_bytes=1 << 30,
)
async def _always_anothers(store: LogStore, seq: int, _: str, data: bytes) -> bytes | None:
    while True:
        try:
            await store._floor.counting(seq, store._bucket.put(records.key(seq), data), in_order=False)
        except (Taken, Unavailable):
            found = await store._found(seq)
            if found is not None:
                return found
        else:
            return None


@bug("a taken record is taken for our own", breaks="G1", where=LogStore, what="_create", seeds=10, processes=3)
async def _always_ours(store: LogStore, seq: int, commit: str, data: bytes) -> bytes | None:
    await _create(store, seq, commit, data)
    return None


_create = LogStore._create


@bug("unconditional first write", breaks="G1", where=LogStore, what="_begin_log", seeds=30, processes=4)
async def _begin_anyway(store: LogStore) -> None:
    key, commit = records.key(1), store._clock.secret()
    await store._bucket.delete(key)
    genesis = Record(1, store._clock.now(), ())
    await store._create(1, commit, records.encode(genesis, commit=commit, prev="", log=store._clock.secret()))
    await store._look()


@bug(
    "boundary unchecked on delete",
    breaks="G1",
    where=Floor,
    what="counting",
    seeds=200,
    listing_s=0.0,
    day_s=0.5,
    pause_every=150,
    pause_s=8.0,
    clean_every_s=0.5,
    snapshot_records=3,
    processes=3,
    jobs=40,
    workers=4,
    active_s=40.0,
    crash_every=0,
)
async def _counts_always(_: Floor, __: int, answer: Awaitable[Any], **___: bool) -> Any:
    return await answer


@bug(
    "the listing's age is asked before the answer",
    breaks="G1",
    where=Floor,
    what="counting",
    seeds=200,
    listing_s=2.0,
    day_s=2.5,
    pause_every=150,
    pause_s=8.0,
    clean_every_s=0.5,
    snapshot_records=3,
    processes=3,
    jobs=40,
    workers=4,
    active_s=40.0,
    crash_every=0,
)
async def _asked_before(floor: Floor, seq: int, answer: Awaitable[Any], **_: bool) -> Any:
    known = floor._known()
    given = await answer
    if (await floor.look() if known is None else known) >= seq:
        raise Void(seq)
    return given


@bug("half a batch applied", breaks="G10", where=LogStore, what="_put", seeds=60, crash_every=200)
async def _in_two_records(store: LogStore, events: tuple[AnyEvent, ...]) -> bool:
    half = len(events) // 2
    for part in (events[:half], events[half:]) if half else (events,):
        store._state.settle()
        store._state.kept.tables.begin(store._clock.now(), store._state.seq + 1)
        if not await _put_whole(store, part):
            return False
    return True


_put_whole = LogStore._put


@bug("acknowledged before durable", breaks="G1", where=LogStore, what="_put", seeds=20)
async def _adopted_first(store: LogStore, events: tuple[AnyEvent, ...]) -> bool:
    state = store._state
    record = Record(state.seq + 1, state.kept.tables.now, events)
    commit = store._clock.secret()
    data = records.encode(record, commit=commit, prev=state.head)
    asyncio.create_task(store._create(record.seq, commit, data))  # noqa: RUF006 the bug: nobody waits for it
    state.adopt(record, commit, len(data))
    return True


@bug("overlay kept after a lost race", breaks="G1", where=State, what="settle", seeds=20, processes=3)
def _kept(state: State) -> None:
    state.dirty = False


@bug("stale refusal", breaks="G2", where=LogStore, what="commit", seeds=60, processes=4)
async def _refused_without_a_look(store: LogStore, batch: Sequence[Command]) -> list[Outcome]:
    async with store._turn:
        await store._prepare()
        while True:
            try:
                outcomes, events = store._decided(batch)
                if not events or await store._put(tuple(events)):
                    return outcomes
                await store._catch_up(store._state)
            except Void:
                await store._load()
            finally:
                store._state.settle()


@bug(
    "snapshot of an uncommitted state",
    breaks="G1",
    where=LogStore,
    what="_put",
    seeds=60,
    processes=3,
    snapshot_records=3,
)
async def _imaged_first(store: LogStore, events: tuple[AnyEvent, ...]) -> bool:
    state = store._state
    if state.grown(0, most_bytes=1 << 30, most_records=store._options.snapshot_records):
        image = snapshot.Image(state.kept.tables, log=state.log, commit=state.head)
        state.notice(image.seq)
        store._imaging = asyncio.create_task(store._write_image(image))
    return await _put_whole(store, events)


@bug("newer format read as empty", breaks="G14", where=LogStore, what="_read", seeds=5)
async def _newer_is_nothing(store: LogStore, seq: int) -> bytes | None:
    data = await _read(store, seq)
    return None if data is not None and not data.startswith(b'{"v":1,') else data


_read = LogStore._read


@bug("keys lost on snapshot load", breaks="G3", where=Tables, what="load", seeds=60, snapshot_records=3)
def _load_without_key(tables: Tables, job: Job) -> None:
    _load(tables, job)
    if job.lease is not None and job.idempotency_key is not None:
        del tables.tenants[job.tenant].keys[job.idempotency_key]


_load = Tables.load


@bug("a fold by the local clock", breaks="G1", where=State, what="_apply", seeds=20, processes=3)
def _applied_now(state: State, record: Record) -> None:
    tables = state.kept.tables
    tables.begin(state.kept._clock.now(), record.seq)
    for event in record.events:
        apply.apply(tables, event)


# Deciding


@bug("no token check", breaks="G6", where=decide, what="held", seeds=20, vanish=0.0, lease_s=2.0)
def _held_by_anybody(tables: Tables, command: Any, verb: Verb) -> Job | None:
    job = tables.find(command.tenant, command.job_id)
    return job if job is not None and job.lease is not None else _held(tables, command, verb)


_held = decide.held


@bug("expiry not counted", breaks="G4", where=apply.CHANGES, what=Failed, seeds=20, vanish=0.4)
def _failed_for_free(tables: Tables, event: Failed) -> None:
    _failed(tables, event)
    job = tables.tenants[event.tenant].jobs[event.id]
    if event.verb is Verb.EXPIRE:
        tables.put(job, replace(job, attempt=job.attempt - 1))


_failed = apply.CHANGES[Failed]


@bug("time not restored after a lost race", breaks="G1", where=Tables, what="rollback", seeds=40, processes=3)
def _time_goes_on(tables: Tables) -> None:
    after = (tables.now, tables.log_time, tables.order)
    _rollback(tables)
    tables.now, tables.log_time, tables.order = after


_rollback = Tables.rollback


@bug("a job twice in line", breaks="G5", where=Heap, what="head", seeds=20, processes=3)
def _head_by_id(heap: Heap) -> Job | None:
    def gone(job: Job) -> bool:
        return job.id not in heap._jobs or heap._jobs[job.id].state.finished

    while heap._line and gone(heap._line[0][2]):
        heap._line.popleft()
    while heap._heap and gone(heap._heap[0][2]):
        heappop(heap._heap)
    return heap._line[0][2] if heap._line else heap._heap[0][2] if heap._heap else None


# Time


@bug("wall clocks compared", breaks="G5", where=Kept, what="overdue", seeds=20, skew_s=25.0, vanish=0.3, processes=3)
def _by_the_wall(kept: Kept) -> list[Command]:
    now = kept._clock.now()
    return [
        Expire(tenant=name, job_id=job.id, lease_no=job.lease_no, beats=job.lease.beats)
        for name, tenant in kept.tables.tenants.items()
        for job in tenant.jobs.values()
        if job.lease is not None
        and job.heartbeat_at is not None
        and job.heartbeat_at + timedelta(seconds=job.lease.lease_s) <= now
    ]


@bug(
    "a lease restarts with every process",
    breaks="G16",
    where=due.LeaseWatch,
    what="begin",
    seeds=100,
    processes=1,
    crash_every=0,
    pause_every=0,
    stop_every_s=9.0,
    lease_s=12.0,
    vanish=0.5,
    active_s=60.0,
    jobs=10,
    workers=2,
    operators=0,
    slow=0.0,
    refused=0.0,
    lost=0.0,
    late=0.0,
    unread=0.0,
    outage_every_s=0.0,
    full_every_s=0.0,
    down_s=0.0,
)
def _from_the_start(watch: due.LeaseWatch, tables: Tables, elapsed: float, _: due.LeaseWatch) -> None:
    for name, tenant in tables.tenants.items():
        for job in tenant.jobs.values():
            if job.lease is not None:
                length = job.lease.lease_s
                watched = due._Watched(elapsed + length, job.lease_no, job.lease.beats)
                watch._watch((name, job.id), (length, length), watched)


@bug("heartbeat answered before it is durable", breaks="G1", where=Broker, what="submit", seeds=40)
def _beaten_at_once(broker: Broker, command: Command) -> Awaitable[Any]:
    if not isinstance(command, Heartbeat):
        return _submit(broker, command)
    tables = broker._store._state.kept.tables  # type: ignore[attr-defined] # the log store's own
    held = tuple(decide.holding(tables.find(command.tenant, beat.job_id), beat.token) for beat in command.beats)
    if all(holding is Holding.HELD for holding in held):
        _submit(broker, command)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.set_result(Holdings(held))
        return reply
    return _submit(broker, command)


_submit = Broker.submit


# Callers


@bug(
    "id made inside a retried step", breaks="G3", where=Client, what="_identified", seeds=60, lost=0.2, crash_every=300
)
def _new_ids(client: Client, jobs: Sequence[NewJob]) -> tuple[NewJob, ...]:
    return tuple(replace(new, id=client._clock.job_id()) for new in jobs)
