"""The client without ``await``: a bridge to one event loop in a thread of its own, not a second client."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from penstock.client.client import Client
from penstock.client.keep import Keeper
from penstock.client.typed import TypedQueue
from penstock.domain.events import Entry
from penstock.domain.job import Lease

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Loop:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run the coroutine over there and wait for what it gives; an interrupt here cancels it there."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Begin the coroutine over there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, done: Callable[[], None]) -> None:
        """Make a call over there."""
        self._loop.call_soon_threadsafe(done)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
    """Client without ``await``: the same names, arguments and errors. Use as ``with connect_sync(url) as queue``."""

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[Client]]) -> None:
        self._opened = opened
        self._context: AbstractAsyncContextManager[Client] | None = None

    def __enter__(self) -> Self:
        self._loop = Loop()
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

    def typed(self, queue: str, of: type[T]) -> SyncTypedQueue[T]:
        """A queue whose payloads are of one type."""
        return SyncTypedQueue(self._loop, self._other.typed(queue, of))

    @contextmanager
    def keep(self, lease: Lease) -> Iterator[Keeper]:
        """Extend the lease while the body runs. A thread cannot be stopped: LeaseLost is raised when the body ends."""
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
            holding.result()

    def watch(self) -> Iterator[Entry]:
        """Every event from now on."""
        events: AsyncIterator[Entry] = self._other.watch()
        while True:
            yield self._loop.run(_coroutine(events.__anext__()))


async def _coroutine(work: Awaitable[R]) -> R:
    return await work
