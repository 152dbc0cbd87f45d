"""Group commit: callers share a batch, hear their own outcome, and nobody is left hanging, whatever the store does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from penstock import Busy, Conflict, NewJob, PenstockError, Unavailable
from penstock.broker.commits import GroupCommit
from penstock.domain.commands import Enqueue
from penstock.domain.outcome import Accepted, Result
from penstock.stores.port import Store
from penstock.testing import FakeClock
from tests.broker.stores import FailingStore, ForgetfulStore, SlowStore
from tests.waiting import begun, settled

ANSWER_S = 30.0


@asynccontextmanager
async def _running(store: Store, clock: FakeClock, *, most_waiting: int = 100) -> AsyncIterator[GroupCommit]:
    commits = GroupCommit(store, clock, most_waiting=most_waiting, answer_s=ANSWER_S)
    task = asyncio.create_task(commits.run())
    try:
        yield commits
    finally:
        commits.close()
        await asyncio.gather(task, return_exceptions=True)


async def _answer(reply: Awaitable[Result]) -> Result:
    return await reply


def _enqueue(clock: FakeClock, payload: int = 1, *, key: str | None = None) -> Enqueue:
    return Enqueue(jobs=(NewJob("mail", payload, id=clock.job_id(), idempotency_key=key),))


async def _outcome(reply: Awaitable[Result]) -> str:
    try:
        return type(await reply).__name__
    except PenstockError as error:
        return type(error).__name__


async def test_an_idle_broker_commits_at_once_and_a_busy_one_gathers(clock: FakeClock) -> None:
    store = SlowStore(clock)
    async with _running(store, clock) as commits:
        first = await begun(_answer(commits.submit(_enqueue(clock))))
        rest = [await begun(_answer(commits.submit(_enqueue(clock, number)))) for number in range(3)]
        assert store.batches == [1]
        store.go.set()
        await asyncio.gather(first, *rest)
        assert store.batches == [1, 3]


async def test_everybody_hears_the_outcome_of_his_own_command(clock: FakeClock) -> None:
    store = SlowStore(clock)
    async with _running(store, clock) as commits:
        calls = [await begun(_outcome(commits.submit(_enqueue(clock, payload, key="k")))) for payload in (1, 1, 2)]
        store.go.set()
        assert await asyncio.gather(*calls) == ["Accepted", "Accepted", Conflict.__name__]


async def test_one_who_gives_up_does_not_disturb_his_neighbours(clock: FakeClock) -> None:
    store = SlowStore(clock)
    async with _running(store, clock) as commits:
        first = await begun(_answer(commits.submit(_enqueue(clock))))
        second, third = [await begun(_answer(commits.submit(_enqueue(clock)))) for _ in range(2)]
        first.cancel()
        second.cancel()
        await settled()
        store.go.set()
        assert isinstance(await third, Accepted)


async def test_a_full_broker_refuses_and_goes_on(clock: FakeClock) -> None:
    store = SlowStore(clock)
    async with _running(store, clock, most_waiting=2) as commits:
        calls = [await begun(_answer(commits.submit(_enqueue(clock)))) for _ in range(3)]
        with pytest.raises(Busy) as refused:
            commits.submit(_enqueue(clock))
        assert refused.value.retry_after_s > 0
        store.go.set()
        await asyncio.gather(*calls)
        await commits.submit(_enqueue(clock))


async def test_a_store_that_is_unavailable_for_a_moment_is_asked_again_and_nobody_notices(clock: FakeClock) -> None:
    store = FailingStore(clock, Unavailable("try again"), times=2)
    async with _running(store, clock) as commits:
        call = await begun(_answer(commits.submit(_enqueue(clock))))
        for _ in range(2):
            assert not call.done()
            clock.advance(1)
            await settled()
        assert isinstance(await call, Accepted)


async def test_nobody_waits_for_ever_for_a_store_that_does_not_answer(clock: FakeClock) -> None:
    store = SlowStore(clock)
    async with _running(store, clock) as commits:
        under_way = await begun(_outcome(commits.submit(_enqueue(clock))))
        behind = await begun(_outcome(commits.submit(_enqueue(clock))))
        clock.advance(ANSWER_S)
        assert [await under_way, await behind] == ["Unavailable", "Unavailable"]
        store.go.set()
        assert isinstance(await commits.submit(_enqueue(clock)), Accepted)
    # The one behind was given up before it was begun.
    assert store.batches == [1, 1]


async def test_a_store_that_stays_unavailable_is_not_asked_for_ever(clock: FakeClock) -> None:
    store = FailingStore(clock, Unavailable("try again"), times=1_000)
    async with _running(store, clock) as commits:
        call = await begun(_outcome(commits.submit(_enqueue(clock))))
        for _ in range(int(ANSWER_S) + 3):
            clock.advance(1)
            await settled()
        assert await call == "Unavailable"
        asked = store.times
        clock.advance(60)
        await settled()
        assert store.times == asked


async def test_a_full_store_is_told_at_once_to_those_of_that_batch_alone(clock: FakeClock) -> None:
    store = FailingStore(clock, Busy("full", retry_after_s=1.0), times=1)
    async with _running(store, clock) as commits:
        calls = [_outcome(commits.submit(_enqueue(clock))) for _ in range(2)]
        assert await asyncio.gather(*calls) == ["Busy", "Busy"]
        assert isinstance(await commits.submit(_enqueue(clock)), Accepted)


async def test_one_that_may_ride_waits_for_another_and_no_longer_than_it_may(clock: FakeClock) -> None:
    store = SlowStore(clock)
    store.go.set()
    async with _running(store, clock) as commits:
        rider = await begun(_answer(commits.submit(_enqueue(clock), ride_s=5)))
        clock.advance(4)
        await settled()
        assert not rider.done()
        await commits.submit(_enqueue(clock))
        assert rider.done()
        late = await begun(_answer(commits.submit(_enqueue(clock), ride_s=5)))
        clock.advance(5)
        await late
    assert store.batches == [2, 1]


async def test_a_fault_in_the_store_is_told_to_everybody_and_nobody_hangs(clock: FakeClock) -> None:
    async with _running(FailingStore(clock, RuntimeError("a fault"), times=1), clock) as commits:
        calls = [_outcome(commits.submit(_enqueue(clock))) for _ in range(2)]
        assert await asyncio.gather(*calls) == ["Unavailable", "Unavailable"]
        with pytest.raises(Unavailable):
            await commits.submit(_enqueue(clock))


async def test_those_who_are_told_of_a_fault_are_told_which(clock: FakeClock) -> None:
    fault = RuntimeError("a fault")
    async with _running(FailingStore(clock, fault, times=1), clock) as commits:
        with pytest.raises(Unavailable) as told:
            await commits.submit(_enqueue(clock))
        assert told.value.__cause__ is fault


async def test_a_store_that_answers_too_little_leaves_nobody_hanging(clock: FakeClock) -> None:
    async with _running(ForgetfulStore(clock), clock) as commits:
        calls = [_outcome(commits.submit(_enqueue(clock))) for _ in range(3)]
        assert (await asyncio.gather(*calls))[-1] == "Unavailable"


async def test_closing_commits_what_waits_and_takes_no_more(clock: FakeClock) -> None:
    store = SlowStore(clock)
    async with _running(store, clock) as commits:
        calls = [await begun(_answer(commits.submit(_enqueue(clock)))) for _ in range(3)]
        commits.close()
        with pytest.raises(Unavailable, match="closed"):
            commits.submit(_enqueue(clock))
        store.go.set()
        assert all(isinstance(answer, Accepted) for answer in await asyncio.gather(*calls))
    assert store.batches == [1, 2]


async def test_whoever_waits_when_the_loop_is_broken_off_is_told(clock: FakeClock) -> None:
    commits = GroupCommit(SlowStore(clock), clock, most_waiting=100, answer_s=ANSWER_S)
    running = await begun(commits.run())
    calls = [await begun(_outcome(commits.submit(_enqueue(clock)))) for _ in range(3)]
    running.cancel()
    assert await asyncio.gather(*calls) == ["Unavailable"] * 3
    with pytest.raises(Unavailable):
        commits.submit(_enqueue(clock))
