"""The client without ``await``: a bridge to one event loop in a thread of its own, not a second client."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from penstock.client.client import Client
from penstock.client.keep import Keeper
from penstock.client.typed import TypedQueue
from penstock.domain.events import Entry
from penstock.domain.job import Lease
from penstock.errors import Invalid, Unavailable

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Loop:
    """An event loop in a daemon thread, from ``open`` to ``close``. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the loop and its thread."""
        with self._lock:
            if self._loop is not None:
                raise Invalid("this connection is open already; call connect_sync again for another one")
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="penstock", daemon=True)
            self._thread.start()

    def check_open(self) -> None:
        """Refuse what is done before ``open`` or after ``close``."""
        if self._loop is None:
            raise _not_open()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run the coroutine over there and wait for what it gives; an interrupt here cancels it there."""
        return self.result(self.start(work))

    def start(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Begin the coroutine over there."""
        with self._lock:
            if self._loop is None:
                work.close()
                raise _not_open()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def result(self, future: Future[R]) -> R:
        """Wait for what was begun."""
        try:
            return future.result()
        except CancelledError as error:
            raise Unavailable("the connection was closed before this call was answered") from error
        except BaseException:
            future.cancel()
            raise

    def call(self, done: Callable[[], None]) -> None:
        """Make a call over there; after ``close`` there is nobody left to hear it."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(done)

    def close(self) -> None:
        """Break off what still runs over there, so that nobody waits for it, and stop the loop and its thread."""
        with self._lock:
            loop, self._loop = self._loop, None
        assert loop is not None
        assert self._thread is not None
        asyncio.run_coroutine_threadsafe(_break_off(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()


def _not_open() -> Invalid:
    return Invalid("the connection is not open: use the client inside `with connect_sync(...) as queue:`")


async def _break_off() -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class _Bridge:
    """What runs on the loop."""

    def __init__(self, loop: Loop, other: Any) -> None:
        self._loop = loop
        self._other = other


def _sync(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", self._loop.run(method(self._other, *args, **kwargs)))

    return call


class SyncTypedQueue(_Bridge, Generic[T]):
    """TypedQueue without ``await``."""

    enqueue = _sync(TypedQueue[T].enqueue)
    enqueue_many = _sync(TypedQueue[T].enqueue_many)
    lease = _sync(TypedQueue[T].lease)


class SyncClient(_Bridge):
    """Client without ``await``: the same names, arguments and errors."""

    enqueue = _sync(Client.enqueue)
    enqueue_many = _sync(Client.enqueue_many)
    lease = _sync(Client.lease)
    heartbeat = _sync(Client.heartbeat)
    heartbeat_many = _sync(Client.heartbeat_many)
    ack = _sync(Client.ack)
    nack = _sync(Client.nack)
    release = _sync(Client.release)
    cancel = _sync(Client.cancel)
    requeue = _sync(Client.requeue)
    update = _sync(Client.update)
    purge = _sync(Client.purge)
    purge_queue = _sync(Client.purge_queue)
    expire_now = _sync(Client.expire_now)
    pause = _sync(Client.pause)
    resume = _sync(Client.resume)
    queue = _sync(Client.queue)
    set_queue = _sync(Client.set_queue)
    reset_queue = _sync(Client.reset_queue)
    get = _sync(Client.get)
    wait = _sync(Client.wait)
    list = _sync(Client.list)
    stats = _sync(Client.stats)
    history = _sync(Client.history)
    attempts = _sync(Client.attempts)
    snapshot = _sync(Client.snapshot)

    def acting(self, *, tenant: str | None = None, actor: str | None = None) -> "SyncClient":
        """The same connection for another tenant, or under another name in the history."""
        self._loop.check_open()
        return SyncClient(self._loop, self._other.acting(tenant=tenant, actor=actor))

    def typed(self, queue: str, of: type[T]) -> SyncTypedQueue[T]:
        """A queue whose payloads are of one type."""
        self._loop.check_open()
        return SyncTypedQueue(self._loop, self._other.typed(queue, of))

    @contextmanager
    def keep(self, lease: Lease) -> Iterator[Keeper]:
        """Extend the lease while the body runs. A thread cannot be stopped: LeaseLost is raised when the body ends."""
        self._loop.check_open()
        keeper: Keeper = self._other.keep(lease)
        over = asyncio.Event()

        async def hold() -> None:
            async with keeper:
                await over.wait()

        holding = self._loop.start(hold())
        try:
            yield keeper
        finally:
            self._loop.call(over.set)
            wait([holding])
        self._loop.result(holding)

    def watch(self) -> Iterator[Entry]:
        """Every event from now on, until the connection ends."""
        self._loop.check_open()
        return self._follow(self._other.watch())

    def _follow(self, events: AsyncIterator[Entry]) -> Iterator[Entry]:
        while (entry := self._loop.run(_coroutine(anext(events, None)))) is not None:
            yield entry


class SyncConnection(SyncClient):
    """The client of a connection of its own, open in ``with connect_sync(url) as queue``."""

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[Client]]) -> None:
        super().__init__(Loop(), None)
        self._opened = opened
        self._context: AbstractAsyncContextManager[Client] | None = None

    def __enter__(self) -> Self:
        self._loop.open()
        try:
            self._context = self._opened()
            self._other = self._loop.run(_coroutine(self._context.__aenter__()))
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._context is not None
        try:
            self._loop.run(_coroutine(self._context.__aexit__(kind, error, trace)))
        finally:
            self._loop.close()


async def _coroutine(work: Awaitable[R]) -> R:
    return await work
