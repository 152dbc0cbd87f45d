"""The object log's own promises: what is written when, who wins, and what is refused."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest

import penstock
from penstock import BrokerOptions, Busy, Client, Corrupt, Invalid, NewJob, NotFound, State, Unavailable
from penstock.domain.commands import Enqueue, LeaseJobs
from penstock.domain.outcome import Accepted, Leases
from penstock.domain.queries import Everything, Get, Snapshot
from penstock.stores.log import record as records
from penstock.stores.log import snapshot
from penstock.stores.log.bucket import Bucket
from penstock.stores.log.clean import clean
from penstock.stores.log.store import LogOptions, LogStore
from penstock.testing import FakeClock
from penstock.testing.bucket import MemoryBucket
from tests.conftest import QUIET
from tests.stores.log.buckets import Forgetful, LastPutWins, Shared, Silent
from tests.waiting import begun, settled

OFTEN = LogOptions(snapshot_bytes=1, snapshot_records=1)


def _new(clock: FakeClock, payload: object = 1, **options: object) -> Enqueue:
    return Enqueue(jobs=(NewJob("mail", payload, id=clock.job_id(), **options),))  # type: ignore[arg-type] # a test's shorthand


async def _store(bucket: Bucket, clock: FakeClock, options: LogOptions | None = None) -> LogStore:
    store = LogStore(bucket, clock, options or LogOptions())
    await store.open()
    return store


async def _all(store: LogStore) -> Snapshot:
    answer = await store.ask(Everything())
    assert isinstance(answer, Snapshot)
    return answer


@pytest.fixture
def bucket(clock: FakeClock) -> Shared:
    return Shared(clock)


async def test_looking_at_an_empty_place_makes_nothing(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock)
    for query in (Everything(), Get(job_id=clock.job_id())):
        with pytest.raises(NotFound, match="no queue here"):
            await store.ask(query)
    assert bucket.asked["put"] == 0


async def test_a_commit_is_one_put_and_no_read(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock)
    await store.commit([_new(clock)])
    before = bucket.asked.copy()
    await store.commit([_new(clock), _new(clock)])
    assert bucket.asked - before == {"put": 1}
    assert len(bucket.keys("log/")) == 3


async def test_a_batch_that_changes_nothing_is_not_written_but_looks(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock)
    await store.commit([])
    before = bucket.asked.copy()
    [outcome] = await store.commit([LeaseJobs(queues=("mail",), request_id=clock.secret())])
    assert outcome == Leases(())
    assert bucket.asked - before == {"get": 1}


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_lost_answer_neither_loses_nor_doubles_a_batch(
    bucket: Shared, clock: FakeClock, fault: str, times: int
) -> None:
    store = await _store(bucket, clock)
    await store.commit([])
    bucket.faults = [fault] * times
    committing = await begun(store.commit([_new(clock)]))
    for _ in range(10):
        clock.advance(2)
        await settled()
    [outcome] = await committing
    assert isinstance(outcome, Accepted)
    assert len(bucket.keys("log/")) == 2
    assert len((await _all(await _store(bucket, clock))).jobs) == 1


async def test_two_stores_on_one_bucket_take_turns_and_see_each_other(bucket: Shared, clock: FakeClock) -> None:
    one, two = await _store(bucket, clock), await _store(bucket, clock)
    for number in range(5):
        await one.commit([_new(clock, number)])
        await two.commit([_new(clock, number)])
    call = LeaseJobs(queues=("mail",), request_id=clock.secret(), limit=20)
    [leases] = await two.commit([call])
    assert isinstance(leases, Leases)
    assert [lease.job.payload for lease in leases.leases] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    [none] = await one.commit([LeaseJobs(queues=("mail",), request_id=clock.secret())])
    assert none == Leases(())
    await one.refresh()
    assert await _all(one) == await _all(two)


async def test_a_refusal_counts_only_after_a_look(bucket: Shared, clock: FakeClock) -> None:
    one, two = await _store(bucket, clock), await _store(bucket, clock)
    await two.commit([])
    [accepted] = await one.commit([_new(clock)])
    assert isinstance(accepted, Accepted)
    job = await two.ask(Get(job_id=accepted.jobs[0].id))
    assert job == accepted.jobs[0]


async def test_nobody_reads_what_is_not_durable(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock)
    await store.commit([])
    bucket.faults = ["before"]
    committing = await begun(store.commit([_new(clock)]))
    assert (await _all(store)).jobs == ()
    clock.advance(2)
    await committing
    assert len((await _all(store)).jobs) == 1
    assert await _all(store) == await _all(await _store(bucket, clock))


async def test_a_full_bucket_is_a_refusal_and_nothing_is_lost(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock)
    await store.commit([_new(clock)])
    before = await _all(store)
    bucket.faults = ["full"]
    with pytest.raises(Busy):
        await store.commit([_new(clock)])
    assert await _all(store) == before
    await store.commit([_new(clock)])
    assert len((await _all(store)).jobs) == 2


async def test_a_put_that_may_have_been_is_settled_even_when_the_bucket_is_full(
    bucket: Shared, clock: FakeClock
) -> None:
    store = await _store(bucket, clock)
    await store.commit([])
    bucket.faults = ["before", "full"]
    committing = await begun(store.commit([_new(clock)]))
    clock.advance(2)
    await settled()
    clock.advance(2)
    [outcome] = await committing
    assert isinstance(outcome, Accepted)


async def test_a_snapshot_and_the_records_after_it_are_the_state(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock, OFTEN)
    for number in range(4):
        await store.commit([_new(clock, number, idempotency_key=f"k{number}")])
        await settled()
    await store.commit([LeaseJobs(queues=("mail",), request_id=clock.secret(), limit=2)])
    await settled()
    again = await _store(bucket, clock)
    assert bucket.keys("snapshot/")
    assert await _all(again) == await _all(store)
    [same] = await again.commit([_new(clock, 3, idempotency_key="k3")])
    assert isinstance(same, Accepted)
    assert same.new == (False,)


async def test_a_snapshot_without_its_records_is_enough(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock, OFTEN)
    await store.commit([_new(clock)])
    await settled()
    before = await _all(store)
    for key in bucket.keys("log/"):
        bucket.lose(key)
    assert await _all(await _store(bucket, clock)) == before


@pytest.mark.parametrize("what", ["cut", "bit", "foreign", "newer", "empty", "other seq", "unknown event", "no zone"])
async def test_a_damaged_record_is_refused_loudly(bucket: Shared, clock: FakeClock, what: str) -> None:
    store = await _store(bucket, clock)
    for number in range(3):
        await store.commit([_new(clock, number)])
    key = records.key(3)
    data = bucket.bytes_of(key)
    bucket.damage(
        key,
        {
            "cut": data[:-20],
            "bit": data.replace(b'"max_attempts":5', b'"max_attempts":6'),
            "foreign": b"hello\n",
            "newer": data.replace(b'{"v":1', b'{"v":2'),
            "empty": b"",
            "other seq": bucket.bytes_of(records.key(2)),
            "unknown event": data.replace(b'"enqueued"', b'"beamed_up"'),
            "no zone": data.replace(b'Z","lines"', b'","lines"'),
        }[what],
    )
    with pytest.raises(Corrupt, match=key):
        await _store(bucket, clock)


async def test_a_log_with_a_hole_is_refused_rather_than_mended_with_another_record(
    bucket: Shared, clock: FakeClock
) -> None:
    store = await _store(bucket, clock)
    for number in range(4):
        await store.commit([_new(clock, number)])
    bucket.lose(records.key(3))
    with pytest.raises(Corrupt, match=records.key(3)):
        await _store(bucket, clock)


async def test_a_record_of_another_log_is_refused(bucket: Shared, clock: FakeClock) -> None:
    other = Shared(clock)
    for place in (bucket, other):
        store = await _store(place, clock)
        for number in range(3):
            await store.commit([_new(clock, number)])
    bucket.damage(records.key(3), other.bytes_of(records.key(3)))
    with pytest.raises(Corrupt, match="does not follow"):
        await _store(bucket, clock)


@pytest.mark.parametrize("what", ["cut", "newer", "empty", "other seq"])
async def test_a_damaged_snapshot_is_refused_loudly(bucket: Shared, clock: FakeClock, what: str) -> None:
    store = await _store(bucket, clock, OFTEN)
    await store.commit([_new(clock)])
    await settled()
    [key] = bucket.keys("snapshot/")
    data = bucket.bytes_of(key)
    damaged = {
        "cut": data[:-2],
        "newer": data.replace(b'{"v":1', b'{"v":2'),
        "empty": b"",
        "other seq": data.replace(b'"seq":2', b'"seq":3', 1),
    }
    bucket.damage(key, damaged[what])
    with pytest.raises(Corrupt, match=key):
        await _store(bucket, clock)


async def test_a_place_with_other_things_in_it_is_no_empty_queue(bucket: Shared, clock: FakeClock) -> None:
    await bucket.put("holiday.jpg", b"...")
    store = await _store(bucket, clock)
    with pytest.raises(Corrupt, match=r"not empty.*holiday\.jpg"):
        await store.commit([_new(clock)])


async def test_a_log_that_has_lost_its_beginning_is_no_empty_queue(bucket: Shared, clock: FakeClock) -> None:
    store = await _store(bucket, clock)
    await store.commit([_new(clock)])
    bucket.lose(records.key(1))
    with pytest.raises(Corrupt):
        await (await _store(bucket, clock)).commit([_new(clock)])


@pytest.mark.parametrize(("bad", "told"), [(LastPutWins, "two could win"), (Forgetful, "list"), (Silent, "show")])
async def test_a_bucket_that_cannot_hold_a_queue_is_refused(
    clock: FakeClock, bad: type[MemoryBucket], told: str
) -> None:
    store = await _store(bad(clock), clock)
    with pytest.raises(Invalid, match=told):
        await store.commit([_new(clock)])


async def test_a_clock_that_is_far_from_the_buckets_is_refused(bucket: Shared, clock: FakeClock) -> None:
    late = FakeClock(start=clock.now() + timedelta(seconds=31))
    with pytest.raises(Unavailable, match="clock"):
        await (await _store(bucket, late)).commit([_new(late)])
    assert bucket.keys("") == []


async def test_a_log_is_begun_once_however_many_begin_it(bucket: Shared, clock: FakeClock) -> None:
    stores = [await _store(bucket, clock) for _ in range(5)]
    await asyncio.gather(*(store.commit([_new(clock, number)]) for number, store in enumerate(stores)))
    assert len(bucket.keys("log/")) == 6
    assert len((await _all(await _store(bucket, clock))).jobs) == 5


async def test_a_writer_that_stood_still_while_its_record_was_deleted_does_not_win(
    bucket: Shared, clock: FakeClock
) -> None:
    stalled, other = await _store(bucket, clock, LogOptions(listing_s=0)), await _store(bucket, clock, OFTEN)
    await stalled.commit([])
    for _ in range(3):
        await other.commit([_new(clock)])
        await settled()
        await clean(bucket, archived_to=2)
        clock.advance(86_400)
    assert records.key(2) not in bucket.keys("log/")
    await stalled.commit([_new(clock)])
    assert len((await _all(await _store(bucket, clock))).jobs) == 4


async def test_what_a_process_watched_is_not_lost_with_it(bucket: Shared, clock: FakeClock) -> None:
    """A dead worker's lease ends although no process that looks for work lives as long as the lease."""
    async with _connected(bucket, clock) as queue:
        job = await queue.enqueue("mail")
        await queue.lease("mail", lease_s=30)
    for _ in range(2):
        async with _connected(bucket, clock) as queue:
            clock.advance(14)
            assert await queue.lease("mail") == []
    async with _connected(bucket, clock) as queue:
        clock.advance(3)
        assert await queue.expire_now() == 1
        assert (await queue.get(job.id)).state is State.QUEUED


def _connected(bucket: Shared, clock: FakeClock, options: BrokerOptions = QUIET) -> AbstractAsyncContextManager[Client]:
    return penstock.connect(store=LogStore(bucket, clock), clock=clock, options=options)


async def test_a_waiting_call_hears_of_a_job_from_another_process(bucket: Shared, clock: FakeClock) -> None:
    async with _connected(bucket, clock) as here, _connected(bucket, clock) as there:
        await there.enqueue("sms")
        waiting = await begun(here.lease("mail", wait_s=20))
        await there.enqueue("mail")
        clock.advance(1)
        await settled()
        assert waiting.done()
        [lease] = await waiting
        ended = await begun(there.wait(lease.job.id, timeout_s=20))
        await here.ack(lease)
        clock.advance(1)
        await settled()
        assert ended.done()


async def test_an_idle_hour_writes_nothing_and_without_callers_reads_nothing(bucket: Shared, clock: FakeClock) -> None:
    async with _connected(bucket, clock, BrokerOptions()) as queue:
        await queue.enqueue("sms")
        before = bucket.asked.copy()
        await _hour(clock)
        assert bucket.asked - before == {}
        waiting = await begun(_worker(queue))
        before = bucket.asked.copy()
        await _hour(clock)
        waiting.cancel()
        spent = bucket.asked - before
        assert spent["put"] == 0
        assert spent["get"] <= 2 * 3600 + 200


async def _hour(clock: FakeClock) -> None:
    for _ in range(3600):
        clock.advance(1)
        for _ in range(20):
            await asyncio.sleep(0)


async def _worker(queue: Client) -> None:
    while True:
        await queue.lease("mail", wait_s=20)


def test_the_key_of_a_snapshot_names_its_commit_and_nothing_else_does() -> None:
    assert snapshot.seq_of(snapshot.key(42)) == 42
    assert [
        snapshot.seq_of(name) for name in ("snapshot/42.jsonl", "snapshot/x", "log/00000000000000000042.jsonl")
    ] == [
        -1,
        -1,
        -1,
    ]


async def test_a_process_that_only_looks_writes_nothing(bucket: Shared, clock: FakeClock) -> None:
    async with _connected(bucket, clock) as queue:
        job = await queue.enqueue("mail")
        await queue.lease("mail", lease_s=30)
    before = bucket.asked["put"]
    async with _connected(bucket, clock) as queue:
        clock.advance(14)
        assert (await queue.get(job.id)).state is State.LEASED
        await queue.stats()
    assert bucket.asked["put"] == before
