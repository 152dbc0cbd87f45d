"""The history in memory: of jobs that are there all of it, of jobs that are gone little."""

from penstock.domain.commands import Cancel, Enqueue, Purge, Update
from penstock.domain.job import DEFAULT_TENANT, NewJob
from penstock.domain.limits import REPEAT_S
from penstock.domain.queries import History
from penstock.stores.memory import MemoryStore
from penstock.testing.clock import FakeClock


async def _enqueue(store: MemoryStore, clock: FakeClock, count: int) -> list[str]:
    ids = [clock.job_id() for _ in range(count)]
    await store.commit([Enqueue(jobs=(NewJob("mail", id=job_id),)) for job_id in ids])
    return ids


async def _events(store: MemoryStore, job_id: str) -> list[tuple[int, int, int]]:
    entries = await store.ask(History(tenant=DEFAULT_TENANT, job_id=job_id))
    return [(entry.seq, entry.line, entry.event.rev) for entry in entries]  # type: ignore[union-attr] # entries, as asked


async def test_the_history_of_a_job_stays_whole_while_its_neighbours_go(clock: FakeClock) -> None:
    store = MemoryStore(clock)
    *others, kept = await _enqueue(store, clock, 10)
    await store.commit([Update(job_id=kept, requeues=0, priority=7)])
    before = await _events(store, kept)
    assert [(line, rev) for _, line, rev in before] == [(10, 1), (1, 2)]
    await store.commit([Cancel(job_id=job_id, requeues=0) for job_id in others])
    clock.advance(REPEAT_S)
    await store.commit([Purge(job_ids=tuple(others))])
    assert await _events(store, kept) == before


async def test_the_events_of_jobs_that_are_gone_do_not_pile_up(clock: FakeClock) -> None:
    store = MemoryStore(clock)
    kept = await _enqueue(store, clock, 10)
    for _ in range(50):
        gone = await _enqueue(store, clock, 10)
        await store.commit([Cancel(job_id=job_id, requeues=0) for job_id in gone])
        clock.advance(REPEAT_S)
        await store.commit([Purge(job_ids=tuple(gone))])
    assert len(store._leaves) < 10
    assert [await _events(store, job_id) for job_id in kept] == [[(1, line, 1)] for line in range(1, 11)]
