"""connect_sync: the same client without await, on a thread of its own that leaves with it."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

import penstock
from penstock import (
    Client,
    Conflict,
    Invalid,
    Lease,
    LeaseLost,
    MemoryStore,
    NewJob,
    NotFound,
    PenstockError,
    State,
    SyncClient,
    TypedQueue,
    Unavailable,
)
from penstock.client.sync import Loop, SyncConnection, SyncTypedQueue
from penstock.domain.commands import Command
from penstock.domain.outcome import Outcome
from penstock.stores.port import Store
from penstock.testing import FakeClock
from tests.conftest import HUNG_S, QUIET
from tests.waiting import settled


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "penstock"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    assert _threads() == []
    yield
    assert _threads() == []


def _connected(clock: FakeClock, store: Store | None = None) -> SyncConnection:
    store = MemoryStore(clock) if store is None else store
    return SyncConnection(lambda: penstock.connect(store=store, clock=clock, options=QUIET))


def _pass(queue: SyncClient, clock: FakeClock, seconds: float) -> None:
    """Time goes on over there, where those are who wait for it."""

    async def there() -> None:
        await settled()
        clock.advance(seconds)
        await settled()

    queue._loop.run(there())


def _public(of: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def _parameters(method: Callable[..., object]) -> list[tuple[str, object, object]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize(("of", "twin"), [(Client, SyncClient), (TypedQueue, SyncTypedQueue)])
def test_everything_public_has_a_twin_with_the_same_parameters(of: type, twin: type) -> None:
    assert _public(twin) == _public(of)
    for name in _public(of):
        assert _parameters(getattr(twin, name)) == _parameters(getattr(of, name)), name


class Known(NamedTuple):
    """Jobs to call with: one is held, one was acked, one is dead."""

    held: Lease
    acked: str
    dead: str


async def _known(queue: Client, clock: FakeClock) -> Known:
    # The broker has set its timers, so that the clock's ids are the same in every run.
    await settled()
    await queue.enqueue_many(NewJob("mail", number) for number in range(5))
    acked, dead = await queue.lease("mail", limit=2)
    await queue.ack(acked)
    await queue.nack(dead, retry=False)
    clock.advance(900)
    [held] = await queue.lease("mail")
    return Known(held, acked.job.id, dead.job.id)


CALLS: dict[str, Callable[[Any, Known], Any]] = {
    "enqueue": lambda queue, _: queue.enqueue("mail", {"to": "a"}, priority=3, idempotency_key="k"),
    "enqueue_many": lambda queue, _: queue.enqueue_many([NewJob("mail", 1), NewJob("sms", b"2")]),
    "lease": lambda queue, _: queue.lease(["sms", "mail"], limit=5, worker="w1"),
    "heartbeat": lambda queue, known: queue.heartbeat(known.held, progress=0.5),
    "heartbeat_many": lambda queue, known: queue.heartbeat_many([known.held, known.held]),
    "ack": lambda queue, known: queue.ack(known.held, {"sent": True}, then=[NewJob("audit")]),
    "nack": lambda queue, known: queue.nack(known.held, "no", delay_s=5),
    "release": lambda queue, known: queue.release(known.held, delay_s=5),
    "cancel": lambda queue, known: queue.cancel(known.held.job.id),
    "requeue": lambda queue, known: queue.requeue(known.dead),
    "update": lambda queue, known: queue.update(known.held.job.id, priority=1),
    "purge": lambda queue, known: queue.purge(known.acked),
    "purge_queue": lambda queue, _: queue.purge_queue("mail", state="dead", older_than_s=900),
    "expire_now": lambda queue, _: queue.expire_now(),
    "pause": lambda queue, _: queue.pause("mail"),
    "resume": lambda queue, _: queue.resume("mail"),
    "queue": lambda queue, _: queue.queue("mail"),
    "set_queue": lambda queue, _: queue.set_queue("mail", max_depth=5),
    "reset_queue": lambda queue, _: queue.reset_queue("mail"),
    "get": lambda queue, known: queue.get(known.held.job.id),
    "wait": lambda queue, known: queue.wait(known.acked, timeout_s=20),
    "list": lambda queue, _: queue.list(queue="mail", limit=2),
    "stats": lambda queue, _: queue.stats(),
    "history": lambda queue, known: queue.history(known.acked),
    "attempts": lambda queue, known: queue.attempts(known.dead),
    "snapshot": lambda queue, _: queue.snapshot(),
}


def test_every_call_is_tried_below() -> None:
    assert set(CALLS) == {name for name in _public(Client) if inspect.iscoroutinefunction(getattr(Client, name))}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_and_leaves_what_it_does_with_await(runner: asyncio.Runner, name: str) -> None:
    async def awaited() -> tuple[object, object]:
        clock = FakeClock()
        async with penstock.connect(store=MemoryStore(clock), clock=clock, options=QUIET) as queue:
            known = await _known(queue, clock)
            try:
                answer = await CALLS[name](queue, known)
            except PenstockError as error:
                answer = (type(error), str(error))
            return answer, await queue.snapshot()

    def bridged() -> tuple[object, object]:
        clock = FakeClock()
        with _connected(clock) as queue:
            known = queue._loop.run(_known(queue._other, clock))
            try:
                answer = CALLS[name](queue, known)
            except PenstockError as error:
                answer = (type(error), str(error))
            return answer, queue.snapshot()

    assert bridged() == runner.run(awaited())


def test_refusals_are_raised_here_with_their_types(clock: FakeClock) -> None:
    with _connected(clock) as queue:
        job = queue.enqueue("mail", 1, idempotency_key="k")
        [lease] = queue.lease("mail")
        queue.ack(lease)
        with pytest.raises(NotFound):
            queue.get(clock.job_id())
        with pytest.raises(Conflict):
            queue.enqueue("mail", 2, idempotency_key="k")
        with pytest.raises(LeaseLost) as lost:
            queue.heartbeat(lease)
        with pytest.raises(Invalid):
            queue.lease("mail", limit=0)
        assert lost.value.facts["job_id"] == job.id


def test_it_works_on_the_machines_own_clock() -> None:
    with penstock.connect_sync("memory://", tenant="acme", actor="ann") as queue:
        job = queue.enqueue("mail", {"to": "a"})
        [lease] = queue.lease("mail", wait_s=20)
        with queue.keep(lease):
            pass
        queue.ack(lease, "sent")
        done = queue.wait(job.id)
        assert (done.tenant, done.state, done.result) == ("acme", State.SUCCEEDED, "sent")
        assert {entry.event.actor for entry in queue.history(job.id)} == {"ann"}


def test_acting_is_the_same_connection_for_another(clock: FakeClock) -> None:
    with _connected(clock) as queue:
        other = queue.acting(tenant="other", actor="bob")
        job = other.enqueue("mail")
        assert (job.tenant, other.history(job.id)[0].event.actor) == ("other", "bob")
        assert queue.list() == []
        with pytest.raises(Invalid, match="tenant"):
            queue.acting(tenant="a/b")
    with pytest.raises(Invalid, match="not open"):
        other.list()


class Email(Struct):
    to: str


def test_typed_queues_take_and_give_values(clock: FakeClock) -> None:
    with _connected(clock) as queue:
        emails = queue.typed("email", Email)
        bad = queue.enqueue("email", "bad")
        emails.enqueue(Email("a"))
        emails.enqueue_many([Email("b"), Email("c")])
        assert [lease.payload for lease in emails.lease(limit=9)] == [Email("a"), Email("b"), Email("c")]
        assert queue.get(bad.id).state is State.DEAD
        with pytest.raises(Invalid):
            emails.enqueue(Email(5))  # type: ignore[arg-type] # that is the mistake
    with pytest.raises(Invalid, match="not open"):
        emails.lease()


def test_a_lease_is_kept_while_the_body_runs(clock: FakeClock) -> None:
    with _connected(clock) as queue:
        queue.enqueue("mail")
        [lease] = queue.lease("mail", lease_s=40)
        with queue.keep(lease) as keeper:
            keeper.progress = 0.5
            for _ in range(20):
                _pass(queue, clock, 10)
                assert queue.expire_now() == 0
            assert queue.get(lease.job.id).progress == 0.5
        assert queue.ack(lease).state is State.SUCCEEDED


def test_a_lost_lease_is_told_when_the_body_ends(clock: FakeClock) -> None:
    with _connected(clock) as queue:
        queue.enqueue("mail")
        [lease] = queue.lease("mail", lease_s=40)
        ended = []

        def work() -> None:
            with queue.keep(lease):
                queue.cancel(lease.job.id)
                _pass(queue, clock, 10)
                ended.append("by itself")

        with pytest.raises(LeaseLost) as lost:
            work()
        assert ended == ["by itself"]
        assert lost.value.facts == {"job_id": lease.job.id, "state": State.CANCELLED}


@pytest.mark.parametrize("lost", [False, True])
def test_an_error_in_the_body_comes_out_as_it_is(clock: FakeClock, *, lost: bool) -> None:
    with _connected(clock) as queue:
        queue.enqueue("mail")
        [lease] = queue.lease("mail", lease_s=40)

        def work() -> None:
            with queue.keep(lease):
                if lost:
                    queue.cancel(lease.job.id)
                    _pass(queue, clock, 10)
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            work()


def _watched(queue: SyncClient, watching: Future[Any]) -> Any:
    """Something happens until the watcher has seen it."""
    while not watching.done():
        queue.enqueue("mail")
    return watching.result()


def test_a_watcher_sees_what_happens(clock: FakeClock) -> None:
    with _connected(clock) as queue, ThreadPoolExecutor() as pool:
        events = queue.watch()
        first = _watched(queue, pool.submit(next, events))
        job = queue.enqueue("sms")
        later = (entry for entry in events if entry.event.queue == "sms")  # type: ignore[union-attr] # events of jobs
        assert first in queue.history(first.event.id)
        assert [next(later)] == queue.history(job.id)


def test_who_stops_watching_is_forgotten(clock: FakeClock) -> None:
    with _connected(clock) as queue, ThreadPoolExecutor() as pool:
        events = queue.watch()
        _watched(queue, pool.submit(next, events))
        assert len(queue._other._seam._watchers) == 1
        del events
        _pass(queue, clock, 0)
        assert len(queue._other._seam._watchers) == 0


OUTSIDE: dict[str, Callable[[SyncClient, Lease], object]] = {
    "enqueue": lambda queue, _: queue.enqueue("mail"),
    "get": lambda queue, lease: queue.get(lease.job.id),
    "acting": lambda queue, _: queue.acting(actor="ann"),
    "typed": lambda queue, _: queue.typed("email", Email),
    "keep": lambda queue, lease: queue.keep(lease).__enter__(),
    "watch": lambda queue, _: queue.watch(),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_its_block_a_client_says_how_to_use_it(clock: FakeClock, name: str) -> None:
    with _connected(clock) as queue:
        queue.enqueue("mail")
        [lease] = queue.lease("mail")
    for closed in (_connected(clock), queue):
        with pytest.raises(Invalid, match=r"with connect_sync\(\.\.\.\) as queue"):
            OUTSIDE[name](closed, lease)


def test_a_connection_is_not_opened_twice_at_once(clock: FakeClock) -> None:
    with _connected(clock) as queue:
        with pytest.raises(Invalid, match="open already"):
            queue.__enter__()
        assert queue.enqueue("mail").state is State.QUEUED


def test_but_again_when_it_was_closed(clock: FakeClock) -> None:
    connection = _connected(clock)
    with connection as queue:
        job = queue.enqueue("mail")
    with connection as queue:
        assert queue.get(job.id) == job


def test_an_error_in_the_block_comes_out_and_closes_the_connection(clock: FakeClock) -> None:
    connection = _connected(clock)
    with pytest.raises(KeyError, match="mine"), connection:
        raise KeyError("mine")
    with pytest.raises(Invalid, match="not open"):
        connection.list()


class Shut(MemoryStore):
    """A store that cannot be opened."""

    async def open(self) -> None:
        raise Unavailable("no store here")


def test_an_error_on_opening_is_raised_and_leaves_no_thread(clock: FakeClock) -> None:
    for connection, error in (
        (penstock.connect_sync("mongodb://db"), Invalid),
        (penstock.connect_sync("memory://", tenant="a/b"), Invalid),
        (penstock.connect_sync(store=Shut(clock)), Unavailable),
    ):
        with pytest.raises(error), connection:
            pass
        assert _threads() == []


def test_threads_share_a_connection(clock: FakeClock) -> None:
    with _connected(clock) as queue, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> list[int]:
            queue.enqueue_many(NewJob("mail", 10 * number + each) for each in range(10))
            leases = queue.lease("mail", limit=10)
            for lease in leases:
                queue.ack(lease)
            return [lease.job.payload for lease in leases]

        done = [payload for payloads in pool.map(work, range(40)) for payload in payloads]
        assert sorted(done) == list(range(400))
        [stats] = queue.stats()
        assert stats.succeeded == 400


class Signalling(MemoryStore):
    """Tells when it has been asked for something."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.asked = threading.Event()

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = lambda: True) -> list[Outcome]:
        outcomes = await super().commit(batch, awaited)
        self.asked.set()
        return outcomes


def test_a_thread_that_still_waits_when_the_connection_ends_is_told(clock: FakeClock) -> None:
    store = Signalling(clock)
    with ThreadPoolExecutor() as pool:
        with _connected(clock, store) as queue:
            leasing = pool.submit(queue.lease, "mail", wait_s=20)
            assert store.asked.wait(HUNG_S)
        with pytest.raises(Unavailable, match="closed"):
            leasing.result(HUNG_S)


def test_a_thread_that_still_keeps_a_lease_when_the_connection_ends_is_told(clock: FakeClock) -> None:
    with ThreadPoolExecutor() as pool:
        with _connected(clock) as queue:
            queue.enqueue("mail")
            [lease] = queue.lease("mail")
            kept, over = threading.Event(), threading.Event()

            def work() -> None:
                with queue.keep(lease):
                    kept.set()
                    assert over.wait(HUNG_S)

            working = pool.submit(work)
            assert kept.wait(HUNG_S)
        over.set()
        with pytest.raises(Unavailable, match="closed"):
            working.result(HUNG_S)


class Interrupted(Future[None]):
    """A wait into which the user strikes Ctrl-C."""

    def __init__(self, future: Future[None]) -> None:
        super().__init__()
        self._future = future

    def result(self, timeout: float | None = None) -> None:
        del timeout
        raise KeyboardInterrupt

    def cancel(self) -> bool:
        return self._future.cancel()


def test_an_interrupt_here_stops_the_call_there() -> None:
    began, stopped = threading.Event(), threading.Event()

    async def call() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    loop = Loop()
    loop.open()
    future = loop.start(call())
    assert began.wait(HUNG_S)
    with pytest.raises(KeyboardInterrupt):
        loop.result(Interrupted(future))
    assert stopped.wait(HUNG_S)
    loop.close()
