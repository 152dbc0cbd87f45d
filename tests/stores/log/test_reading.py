"""Reading a log from its beginning: every record, in order, or the name of the object that is not right."""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace

from penstock.domain.commands import Enqueue, PutSetting, SettingKind
from penstock.domain.events import Record
from penstock.domain.job import NewJob
from penstock.domain.verify import Finding, Verifier
from penstock.errors import Corrupt, NotFound, Unavailable
from penstock.stores.log import floor, snapshot
from penstock.stores.log import record as records
from penstock.stores.log.clean import clean
from penstock.stores.log.reading import Extent, StillStore, extent, read_log
from penstock.stores.log.store import LogOptions, LogStore
from penstock.testing import FakeClock
from penstock.testing.bucket import MemoryBucket

# Some windows' worth of records.
MANY: Final = 150


class ReadOnly(MemoryBucket):
    """Fails the test when it is written to."""

    async def put(self, key: str, data: bytes | bytearray) -> None:
        raise AssertionError(key, data)

    async def delete(self, key: str) -> None:
        raise AssertionError(key)


def reader_of(bucket: MemoryBucket) -> ReadOnly:
    reader = ReadOnly(bucket._clock)
    reader._objects = bucket._objects
    return reader


async def written(clock: FakeClock, count: int, *, snapshot_records: int = 10_000) -> MemoryBucket:
    """A log of a genesis record and so many enqueues."""
    bucket = MemoryBucket(clock)
    store = LogStore(bucket, clock, LogOptions(snapshot_records=snapshot_records))
    await store.open()
    await enqueue(store, clock, count)
    return bucket


async def enqueue(store: LogStore, clock: FakeClock, count: int) -> None:
    """So many records, and the snapshots that come with them."""
    for _ in range(count):
        await store.commit([Enqueue(jobs=(NewJob("mail", 1, id=clock.job_id()),))])
        while store._imaging is not None and not store._imaging.done():
            await asyncio.sleep(0)
            clock.advance(1.0)


async def read(bucket: MemoryBucket, within: Extent | None = None) -> list[Record]:
    found = (await extent(bucket))[0] if within is None else within
    return [record async for record in read_log(bucket, found)]


async def test_every_record_is_read_in_order(clock: FakeClock) -> None:
    bucket = reader_of(await written(clock, MANY))
    within, base = await extent(bucket)
    assert (within.records, base) == (MANY + 1, None)
    found = await read(bucket)
    assert [record.seq for record in found] == list(range(1, MANY + 2))
    assert [len(record.events) for record in found] == [0] + [1] * MANY


async def test_a_place_without_a_log_is_not_found(clock: FakeClock) -> None:
    with pytest.raises(NotFound):
        await extent(reader_of(MemoryBucket(clock)))
    with pytest.raises(NotFound):
        await StillStore.open(reader_of(MemoryBucket(clock)), clock)


async def test_a_log_whose_beginning_is_missing_is_corrupt(clock: FakeClock) -> None:
    bucket = await written(clock, 3)
    await bucket.delete(records.key(1))
    with pytest.raises(Corrupt, match=records.key(1)):
        await extent(bucket)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-1], "cut or damaged"),
        (lambda data: data[:-30], "cut or damaged"),
        (lambda data: data[:-5] + b"#" + data[-4:], "cut or damaged"),
        (lambda _: b"", "does not begin with a header"),
        (lambda data: data.replace(b'{"v":1,', b'{"v":2,'), "a newer release wrote this object"),
        (lambda data: data.replace(b'"seq":70,', b'"seq":71,'), "belongs elsewhere"),
        (lambda data: data.replace(b'"prev":"', b'"prev":"0'), "does not follow the one before it"),
    ],
)
async def test_damaged_bytes_are_corrupt_and_named(
    clock: FakeClock, damage: Callable[[bytes], bytes], says: str
) -> None:
    bucket = await written(clock, MANY)
    data, stamped_at = bucket._objects[records.key(70)]
    bucket._objects[records.key(70)] = (damage(data), stamped_at)
    with pytest.raises(Corrupt, match=says) as told:
        await read(bucket)
    assert told.value.facts["object"] == records.key(70)


async def test_a_record_that_is_missing_is_corrupt_and_named(clock: FakeClock) -> None:
    bucket = await written(clock, MANY)
    await bucket.delete(records.key(70))
    with pytest.raises(Corrupt, match="missing") as told:
        await read(bucket)
    assert told.value.facts["object"] == records.key(70)


async def test_what_is_before_a_damaged_record_is_given_first(clock: FakeClock) -> None:
    bucket = await written(clock, MANY)
    await bucket.delete(records.key(70))
    reading = read_log(bucket, (await extent(bucket))[0])
    assert [(await anext(reading)).seq for _ in range(69)] == list(range(1, 70))
    with pytest.raises(Corrupt):
        await anext(reading)


DAY_S: Final = 25 * 3600.0


async def cleaned(clock: FakeClock) -> MemoryBucket:
    """A log of which only a snapshot, and what came after it, is left: the floor was put two days ago."""
    bucket = await written(clock, 25, snapshot_records=10)
    await clean(bucket, archived_to=1_000)
    for _ in range(2):
        clock.advance(DAY_S)
        store = LogStore(bucket, clock, LogOptions(snapshot_records=10))
        await store.open()
        await store.commit([PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"max_attempts": clock.now().day})])
        await enqueue(store, clock, 12)
        await clean(bucket, archived_to=1_000)
    assert records.key(1) not in bucket._objects
    return bucket


async def test_a_log_whose_older_records_were_deleted_is_read_from_its_oldest_snapshot(clock: FakeClock) -> None:
    bucket = reader_of(await cleaned(clock))
    within, base = await extent(bucket)
    assert base is not None
    assert within.after == base.seq > 1
    assert await findings(bucket, clock) == []
    assert [record.seq for record in await read(bucket)] == list(range(base.seq + 1, within.last + 1))


async def test_a_record_above_the_floor_is_not_gone_but_missing(clock: FakeClock) -> None:
    bucket = await cleaned(clock)
    within, _ = await extent(bucket)
    await bucket.delete(records.key(within.last - 1))
    with pytest.raises(Corrupt, match=records.key(within.last - 1)):
        await read(bucket)


async def test_records_that_are_gone_without_a_snapshot_are_corrupt(clock: FakeClock) -> None:
    bucket = await written(clock, 5)
    await bucket.put(floor.key(3), b"")
    assert (await extent(bucket))[0].after == 0
    await bucket.delete(records.key(2))
    with pytest.raises(Corrupt, match=records.key(2)):
        await extent(bucket)


async def findings(bucket: MemoryBucket, clock: FakeClock) -> list[Finding]:
    """All that is wrong with a log and with the store that opens it."""
    store = await StillStore.open(bucket, clock)
    within, base = await extent(bucket)
    verifier = Verifier(base)
    found: list[Finding] = []
    async for record in read_log(bucket, replace(within, last=store.seq)):
        found += verifier.check(record)
    return [*found, *verifier.finish(await store.live(verifier.tenants))]


async def test_records_that_are_deleted_while_they_are_read_are_to_be_read_again(clock: FakeClock) -> None:
    bucket = await written(clock, 25, snapshot_records=10)
    within, _ = await extent(bucket)
    await bucket.put(floor.key(11), b"")
    for seq in range(1, 12):
        await bucket.delete(records.key(seq))
    with pytest.raises(Unavailable, match="read again"):
        await read(bucket, within)


async def test_a_store_stands_still_while_others_go_on(clock: FakeClock) -> None:
    bucket = await written(clock, 3)
    store = await StillStore.open(reader_of(bucket), clock)
    other = LogStore(bucket, clock)
    await other.open()
    await other.commit([Enqueue(tenant="other", jobs=(NewJob("mail", 1, id=clock.job_id()),))])
    clock.advance(3600)
    live = await store.live(["default", "other"])
    assert live.seq == store.seq == 4
    assert {name: len(jobs.jobs) for name, (jobs, _) in live.tenants.items()} == {"default": 3, "other": 0}


async def test_a_snapshot_that_holds_more_than_the_log_is_found_out(clock: FakeClock) -> None:
    bucket = await written(clock, 12, snapshot_records=10)
    [image] = [found.key for found in await bucket.list(snapshot.FOLDER)]
    seq = snapshot.seq_of(image)
    header, tables = snapshot.decode(await bucket.get(image), seq)
    [job, *_] = tables.tenants["default"].jobs.values()
    tables.begin(tables.now, seq)
    tables.put(None, replace(job, tenant="stranger"))
    tables.put(job, replace(job, rev=7))
    made = snapshot.Image(tables, log=header.log, commit=header.commit)
    bucket._objects[image] = (bytes(await made.encode(clock)), clock.now())
    found = await findings(bucket, clock)
    assert {(one.rule, one.job_id) for one in found} == {("state", job.id), ("extra", job.id), ("counters", None)}
