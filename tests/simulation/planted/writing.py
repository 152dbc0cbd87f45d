"""Planted where commits, snapshots and answers are made."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.domain import apply
from penstock.domain.commands import Command
from penstock.domain.events import AnyEvent, Record
from penstock.domain.job import Job
from penstock.domain.outcome import Outcome
from penstock.domain.tables import Tables
from penstock.errors import PenstockError, Unavailable
from penstock.stores.log import record as records
from penstock.stores.log import snapshot
from penstock.stores.log.bucket import Taken
from penstock.stores.log.floor import Void
from penstock.stores.log.state import State
from penstock.stores.log.store import LogStore
from tests.simulation.planted.bug import bug


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
async def _refused_without_a_look(
    store: LogStore, batch: Sequence[Command], awaited: Callable[[], bool]
) -> list[Outcome]:
    async with store._turn:
        await store._prepare()
        while True:
            if not awaited():
                raise Unavailable("nobody waits for this batch any more")
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
    what="_write_snapshot",
    seeds=60,
    processes=3,
    snapshot_records=3,
)
async def _imaged_as_it_is(store: LogStore) -> None:
    state = store._state
    image = snapshot.Image(state.kept.tables, log=state.log, commit=state.head)
    data = await image.encode(store._clock)
    state.notice(image.seq, len(data))
    with suppress(PenstockError, Taken):
        await store._bucket.put(snapshot.key(image.seq), data)


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


@bug(
    "a call given up is decided all the same",
    breaks="G2",
    where=LogStore,
    what="commit",
    seeds=150,
    answer_s=0.5,
    vanish=0.0,
    pause_every=100,
    pause_s=4.0,
    latency_s=0.1,
    processes=3,
    workers=8,
    jobs=40,
    active_s=40.0,
    lease_s=2.0,
    fail=0.5,
    crash_every=0,
)
async def _decided_for_nobody(store: LogStore, batch: Sequence[Command], _: Callable[[], bool]) -> list[Outcome]:
    return await _commit(store, batch)


_commit = LogStore.commit
