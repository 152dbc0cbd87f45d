"""watch, wait and snapshot: looking while things happen, at what is committed."""

from collections.abc import AsyncIterator

import pytest

from penstock import Busy, Client, Entry, NewJob, State
from penstock.testing import FakeClock
from tests.waiting import begun, settled


async def _next(events: AsyncIterator[Entry]) -> Entry:
    return await anext(events)


async def test_a_watcher_sees_every_event_from_now_on(queue: Client) -> None:
    await queue.enqueue("sms")
    events = queue.watch()
    first = await begun(_next(events))
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.ack(lease)
    assert [await first, await anext(events), await anext(events)] == await queue.history(job.id)


async def test_two_watchers_see_the_same(queue: Client) -> None:
    watchers = [queue.watch(), queue.watch()]
    firsts = [await begun(_next(events)) for events in watchers]
    await queue.enqueue("mail")
    assert await firsts[0] == await firsts[1]


async def test_a_watcher_sees_its_own_tenant_only(queue: Client, other: Client) -> None:
    first = await begun(_next(queue.watch()))
    await other.enqueue("mail")
    await settled()
    assert not first.done()
    job = await queue.enqueue("mail")
    assert [await first] == await queue.history(job.id)


async def test_a_watcher_sees_settings_change_and_jobs_leave(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail")
    await queue.cancel(job.id)
    clock.advance(900)
    events = queue.watch()
    first = await begun(_next(events))
    await queue.pause("mail")
    await queue.purge(job.id)
    seen = [await first, await anext(events)]
    assert [type(entry.event).__name__ for entry in seen] == ["SettingPut", "Purged"]


async def test_a_watcher_that_falls_too_far_behind_is_told_after_what_it_can_still_read(queue: Client) -> None:
    begins = (await queue.snapshot()).seq + 1
    events = queue.watch()
    first = await begun(_next(events))
    for _ in range(11):
        await queue.enqueue_many(NewJob("mail") for _ in range(1_000))
    seen = [await first]
    seen += [await anext(events) for _ in range(9_999)]
    assert [(entry.seq, entry.line) for entry in seen] == [(begins + n // 1_000, 1 + n % 1_000) for n in range(10_000)]
    with pytest.raises(Busy, match="watch again"):
        await _rest(events)


async def _rest(events: AsyncIterator[Entry]) -> None:
    async for _ in events:
        pass


async def test_waiting_for_a_job_ends_when_it_has_finished(queue: Client) -> None:
    job = await queue.enqueue("mail")
    waiting = await begun(queue.wait(job.id, timeout_s=20))
    [lease] = await queue.lease("mail")
    await settled()
    assert not waiting.done()
    await queue.ack(lease, "done")
    done = await waiting
    assert (done.state, done.result) == (State.SUCCEEDED, "done")


@pytest.mark.parametrize("end", ["dead", "cancelled", "lapsed"])
async def test_so_it_does_when_the_job_ends_badly(queue: Client, clock: FakeClock, end: str) -> None:
    job = await queue.enqueue("mail", deadline_s=10)
    waiting = await begun(queue.wait(job.id, timeout_s=20))
    if end == "dead":
        [lease] = await queue.lease("mail")
        await queue.nack(lease, retry=False)
    elif end == "cancelled":
        await queue.cancel(job.id)
    else:
        clock.advance(10)
        await queue.expire_now()
    assert (await waiting).state.finished


async def test_everybody_who_waits_for_a_job_is_woken(queue: Client) -> None:
    job = await queue.enqueue("mail")
    waiting = [await begun(queue.wait(job.id, timeout_s=20)) for _ in range(3)]
    await queue.cancel(job.id)
    assert [(await task).state for task in waiting] == [State.CANCELLED] * 3


async def test_a_job_that_has_finished_is_not_waited_for(queue: Client) -> None:
    job = await queue.enqueue("mail")
    await queue.cancel(job.id)
    assert (await queue.wait(job.id, timeout_s=20)).state is State.CANCELLED


@pytest.mark.parametrize("timeout_s", [20, 200])
async def test_a_wait_that_is_too_short_gives_the_job_as_it_is(
    queue: Client, clock: FakeClock, timeout_s: float
) -> None:
    """Also one that is longer than a single question may be held."""
    job = await queue.enqueue("mail")
    waiting = await begun(queue.wait(job.id, timeout_s=timeout_s))
    clock.advance(timeout_s - 1)
    await settled()
    assert not waiting.done()
    clock.advance(1)
    assert (await waiting).state is State.QUEUED


async def test_a_snapshot_is_all_there_is_of_a_tenant_after_one_commit(queue: Client, other: Client) -> None:
    empty = await queue.snapshot()
    assert (empty.jobs, empty.settings) == ((), ())
    jobs = await queue.enqueue_many(NewJob(name) for name in ("mail", "sms"))
    await queue.set_queue("mail", max_depth=5)
    await other.enqueue("mail")
    snapshot = await queue.snapshot()
    assert (snapshot.seq, snapshot.jobs) == (empty.seq + 3, tuple(sorted(jobs, key=lambda job: job.id)))
    assert [(setting.name, setting.value) for setting in snapshot.settings] == [("mail", {"max_depth": 5})]


async def test_a_snapshot_stays_as_it_is(queue: Client) -> None:
    job = await queue.enqueue("mail")
    before = await queue.snapshot()
    await queue.cancel(job.id)
    assert [job.state for job in before.jobs] == [State.QUEUED]
