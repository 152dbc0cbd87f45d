"""keep: the lease lives as long as the body runs, and the body no longer than the lease."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock import Busy, Client, Invalid, Keeper, Lease, LeaseLost, PenstockError, State, Unavailable
from penstock.domain.commands import Command, Heartbeat
from penstock.testing import FakeClock
from tests.client.line import over_a_line
from tests.waiting import begun, settled

# Beats every 10 s; the body must have stopped at 38 s if none gets through.
LEASE_S = 40.0


async def _leased(queue: Client, *, lease_s: float = LEASE_S) -> Lease:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail", lease_s=lease_s)
    return lease


async def _worked(keeper: Keeper, done: asyncio.Event) -> str:
    async with keeper:
        await done.wait()
    return "done"


async def _working(queue: Client, lease: Lease) -> asyncio.Task[str]:
    """A body that works on for ever."""
    task = await begun(_worked(queue.keep(lease), asyncio.Event()))
    assert not task.done()
    return task


async def _pass(clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    await settled()


async def _ended(task: asyncio.Task[str]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Beats:
    """What becomes of the heartbeats of a client, one after the other; then they get through."""

    def __init__(self, clock: FakeClock, *fates: Callable[[], Awaitable[None]]) -> None:
        self.sent_at: list[float] = []
        self._clock = clock
        self._fates = iter(fates)

    async def __call__(self, command: Command) -> None:
        if isinstance(command, Heartbeat):
            self.sent_at.append(self._clock.elapsed())
            fate = next(self._fates, None)
            if fate is not None:
                await fate()


def fails(error: PenstockError) -> Callable[[], Awaitable[None]]:
    async def fate() -> None:
        raise error

    return fate


async def is_never_answered() -> None:
    await asyncio.Event().wait()


async def test_it_beats_at_every_quarter_of_the_lease(queue: Client, clock: FakeClock) -> None:
    beats = Beats(clock)
    body = await _working(over_a_line(queue, clock, before=beats), await _leased(queue))
    for _ in range(80):
        await _pass(clock, 0.5)
    assert beats.sent_at == [10, 20, 30, 40]
    await _ended(body)


async def test_the_lease_is_extended_as_long_as_the_body_runs(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    done = asyncio.Event()
    body = await begun(_worked(queue.keep(lease), done))
    for _ in range(200):
        await _pass(clock, 5)
        assert await queue.expire_now() == 0
    done.set()
    assert await body == "done"
    assert (await queue.ack(lease)).state is State.SUCCEEDED


async def test_nothing_goes_on_after_the_body(queue: Client, clock: FakeClock) -> None:
    before = asyncio.all_tasks()
    beats = Beats(clock)
    async with over_a_line(queue, clock, before=beats).keep(await _leased(queue)):
        await settled()
    assert asyncio.all_tasks() == before
    await _pass(clock, 100)
    assert beats.sent_at == []


async def test_a_lease_that_has_lain_about_is_extended_at_once(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    clock.advance(37)
    body = await _working(queue, lease)
    await _pass(clock, 0)
    await _pass(clock, 37)
    assert not body.done()
    assert await queue.expire_now() == 0
    await _ended(body)


async def test_progress_goes_with_the_next_beat(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    async with queue.keep(lease) as keeper:
        keeper.progress = 0.25
        await _pass(clock, 9.5)
        assert (await queue.get(lease.job.id)).progress is None
        keeper.progress = 0.5
        await _pass(clock, 0.5)
        assert (await queue.get(lease.job.id)).progress == 0.5
        await _pass(clock, 10)
        assert keeper.progress == (await queue.get(lease.job.id)).progress == 0.5


@pytest.mark.parametrize("wrong", [-0.1, 50, "half", float("nan")])
async def test_a_progress_that_is_none_is_refused_where_it_is_set(
    queue: Client, clock: FakeClock, wrong: float
) -> None:
    """And not at every heartbeat, which would cost the lease."""
    lease = await _leased(queue)
    async with queue.keep(lease) as keeper:
        await settled()
        keeper.progress = 0.5
        with pytest.raises(Invalid, match="progress"):
            keeper.progress = wrong
        await _pass(clock, 10)
        assert (await queue.get(lease.job.id)).progress == 0.5


async def test_the_body_stops_when_the_lease_has_expired(queue: Client, clock: FakeClock) -> None:
    """The holder's clock may be slower than that of the store."""
    lease = await _leased(queue)
    holders = FakeClock()
    body = await begun(_worked(Keeper(queue, holders, lease), asyncio.Event()))
    clock.advance(LEASE_S)
    assert await queue.expire_now() == 1
    await _pass(holders, 9.5)
    assert not body.done()
    await _pass(holders, 0.5)
    with pytest.raises(LeaseLost) as lost:
        await body
    assert lost.value.facts["job_id"] == lease.job.id


async def test_the_body_stops_when_the_job_was_cancelled_and_is_told_so(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    body = await _working(queue, lease)
    await queue.cancel(lease.job.id)
    await _pass(clock, 10)
    with pytest.raises(LeaseLost, match="cancelled") as lost:
        await body
    assert lost.value.facts == {"job_id": lease.job.id, "state": State.CANCELLED}


@pytest.mark.parametrize(("lease_s", "stops_s"), [(5.0, 4.0), (20.0, 19.0), (40.0, 38.0), (1000.0, 950.0)])
@pytest.mark.parametrize("fate", ["fails", "is never answered"])
async def test_the_body_stops_shortly_before_the_end_if_no_heartbeat_gets_through(
    queue: Client, clock: FakeClock, fate: str, lease_s: float, stops_s: float
) -> None:
    """A second before it, or 5 % of the lease if that is more (rule 12)."""
    failing = [fails(Unavailable("no answer")) if fate == "fails" else is_never_answered] * 9
    lease = await _leased(queue, lease_s=lease_s)
    body = await _working(over_a_line(queue, clock, before=Beats(clock, *failing)), lease)
    for _ in range(4):
        await _pass(clock, stops_s / 4 - 0.125)
    assert not body.done()
    await _pass(clock, 0.5)
    with pytest.raises(LeaseLost, match="no heartbeat") as lost:
        await body
    assert lost.value.facts["job_id"] == lease.job.id


@pytest.mark.parametrize("error", [Unavailable("no answer"), Busy("full", retry_after_s=1.0)])
async def test_one_heartbeat_that_fails_does_not_stop_the_body(
    queue: Client, clock: FakeClock, error: PenstockError
) -> None:
    lease = await _leased(queue)
    beats = Beats(clock, fails(error), fails(error))
    body = await _working(over_a_line(queue, clock, before=beats), lease)
    for _ in range(10):
        await _pass(clock, 10)
        assert await queue.expire_now() == 0
    assert not body.done()
    assert len(beats.sent_at) == 10
    await _ended(body)


async def test_a_heartbeat_extends_the_lease_from_when_it_was_sent(queue: Client, clock: FakeClock) -> None:
    """Not from when its answer arrived (rule 12)."""
    answered = asyncio.Event()
    beats = Beats(clock, answered.wait, *[is_never_answered] * 9)  # type: ignore[arg-type] # what it waits for is no matter
    body = await _working(over_a_line(queue, clock, before=beats), await _leased(queue))
    await _pass(clock, 10)
    await _pass(clock, 20)
    answered.set()
    await settled()
    await _pass(clock, 10 + 38 - 30 - 0.5)
    assert not body.done()
    await _pass(clock, 0.5)
    with pytest.raises(LeaseLost, match="no heartbeat"):
        await body


async def test_an_error_in_the_body_comes_out_as_it_is(queue: Client) -> None:
    lease = await _leased(queue)
    with pytest.raises(KeyError, match="mine"):
        async with queue.keep(lease):
            raise KeyError("mine")
    assert (await queue.ack(lease)).state is State.SUCCEEDED


class Body:
    """Work that has to clear up when it is stopped."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.stopped = asyncio.Event()
        self.cleared = asyncio.Event()
        self._error = error

    async def __call__(self, keeper: Keeper) -> None:
        async with keeper:
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.set()
                await self.cleared.wait()
                if self._error is not None:
                    raise self._error


async def test_so_does_one_that_it_raises_when_it_is_stopped(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    body = Body(KeyError("mine"))
    body.cleared.set()
    task = await begun(body(queue.keep(lease)))
    await queue.release(lease)
    await _pass(clock, 10)
    with pytest.raises(KeyError, match="mine"):
        await task
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_stays_one(queue: Client) -> None:
    body = await _working(queue, await _leased(queue))
    body.cancel()
    with pytest.raises(asyncio.CancelledError):
        await body
    assert body.cancelled()


async def test_so_it_does_when_the_lease_is_lost_too(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    body = Body()
    task = await begun(body(queue.keep(lease)))
    await queue.release(lease)
    await _pass(clock, 10)
    assert body.stopped.is_set()
    task.cancel()
    await settled()
    assert task.cancelled()


async def test_a_timeout_around_it_stays_a_timeout_when_the_lease_is_lost_too(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)
    body = Body()

    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            await body(queue.keep(lease))

    limits: list[asyncio.Timeout] = []
    task = await begun(limited())
    await queue.release(lease)
    await _pass(clock, 10)
    limits[0].reschedule(asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError):
        await task
    assert task.cancelling() == 0


async def test_a_body_that_ignores_being_stopped_is_told_at_its_end(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)

    async def stubborn() -> None:
        async with queue.keep(lease):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await settled()

    task = await begun(stubborn())
    await queue.release(lease)
    await _pass(clock, 10)
    with pytest.raises(LeaseLost):
        await task


async def test_a_lease_lost_at_the_instant_the_body_ends_is_lost(queue: Client, clock: FakeClock) -> None:
    """The body has what it waited for, and is stopped before it can go on."""
    done = asyncio.Event()

    async def both() -> None:
        done.set()
        raise LeaseLost("gone")

    line = over_a_line(queue, clock, before=Beats(clock, both))
    body = await begun(_worked(line.keep(await _leased(queue)), done))
    await _pass(clock, 10)
    with pytest.raises(LeaseLost, match="gone"):
        await body
    assert body.cancelling() == 0


async def test_a_body_that_ends_before_it_is_told_of_the_loss_has_ended_well(queue: Client, clock: FakeClock) -> None:
    """The store has the last word: the ack that follows is refused."""
    done = asyncio.Event()
    lease = await _leased(queue)

    async def done_meanwhile() -> None:
        done.set()
        await asyncio.sleep(0)
        raise LeaseLost("gone")

    line = over_a_line(queue, clock, before=Beats(clock, done_meanwhile))
    body = await begun(_worked(line.keep(lease), done))
    await queue.release(lease)
    await _pass(clock, 10)
    assert await body == "done"
    with pytest.raises(LeaseLost):
        await queue.ack(lease)


@pytest.mark.parametrize("error", [None, KeyError("mine")])
async def test_a_worker_goes_on_with_its_next_job_after_a_lost_one(
    queue: Client, clock: FakeClock, error: BaseException | None
) -> None:
    leases = [await _leased(queue) for _ in range(3)]
    ends: list[str] = []

    async def worker() -> None:
        for lease in leases:
            body = Body(error)
            body.cleared.set()
            try:
                await body(queue.keep(lease))
            except (LeaseLost, KeyError) as end:
                ends.append(type(end).__name__)

    task = await begun(worker())
    for lease in leases:
        await queue.cancel(lease.job.id)
    for _ in leases:
        await _pass(clock, 10)
    await task
    assert ends == ["LeaseLost" if error is None else "KeyError"] * 3


async def test_a_task_that_is_being_cancelled_may_still_keep_a_lease(queue: Client, clock: FakeClock) -> None:
    lease = await _leased(queue)

    async def last_wish() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(LeaseLost):
                await _worked(queue.keep(lease), asyncio.Event())

    task = await begun(last_wish())
    task.cancel()
    await queue.cancel(lease.job.id)
    await _pass(clock, 10)
    with pytest.raises(asyncio.CancelledError):
        await task
