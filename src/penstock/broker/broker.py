"""One store, shared by many callers: commands in, outcomes out, and nothing is forgotten when time passes."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from types import TracebackType
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from penstock.broker.bell import Bell
from penstock.broker.commits import GroupCommit
from penstock.clock import Clock, pause
from penstock.domain.check import check, check_query
from penstock.domain.commands import Command, LeaseJobs, SettingKind, Sweep
from penstock.domain.events import (
    AnyEvent,
    Cancelled,
    Died,
    Enqueued,
    Entry,
    Failed,
    Record,
    Released,
    Requeued,
    SettingDeleted,
    SettingPut,
    Succeeded,
    Updated,
)
from penstock.domain.job import Job
from penstock.domain.outcome import Count, Leases, Result
from penstock.domain.queries import Answer, Get, Query
from penstock.errors import Busy
from penstock.stores.port import Store


class BrokerOptions(Struct, frozen=True, kw_only=True):
    """The broker's numbers; ``options.py`` says what each is for."""

    most_waiting: int = 10_000
    sweep_s: float = 1.0
    retention_s: float = 60.0
    poll_s: float = 1.0


DEFAULTS: Final = BrokerOptions()
_WATCHED: Final = 10_000


class Broker:
    """The seam on a store in this process: ``submit`` changes, ``ask`` looks, ``watch`` follows."""

    def __init__(self, store: Store, clock: Clock, options: BrokerOptions = DEFAULTS) -> None:
        self._store = store
        self._clock = clock
        self._options = options
        self._bell = Bell(clock)
        self._commits = GroupCommit(store, most_waiting=options.most_waiting)
        self._watchers: set[_Watcher] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._deaf: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        await self._store.open()
        self._deaf = self._store.listen(self._hear)
        self._tasks = [asyncio.create_task(work) for work in (self._commits.run(), self._sweep(), self._retain())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        committer, *timers = self._tasks
        for timer in timers:
            timer.cancel()
        self._commits.close()
        await asyncio.gather(committer, *timers, return_exceptions=True)
        self._deaf()
        await self._store.close()

    def submit(self, command: Command) -> Awaitable[Result]:
        """Change something; answered when it is durable. Raises the refusal if it is refused."""
        check(command)
        if type(command) is LeaseJobs and command.wait_s > 0:
            return self._lease(command)
        if type(command) is Sweep:
            return self._expire_now()
        return self._commits.submit(command)

    async def ask(self, query: Query) -> Answer:
        """Look at committed state."""
        check_query(query)
        if isinstance(query, Get) and query.wait_s > 0:
            return await self._finished(query)
        return await self._store.ask(query)

    async def watch(self, tenant: str) -> AsyncIterator[Entry]:
        """Every event of the tenant from now on. Raises Busy when the reader has fallen too far behind."""
        watcher = _Watcher(tenant)
        self._watchers.add(watcher)
        try:
            while True:
                yield await watcher.next()
        finally:
            self._watchers.discard(watcher)

    async def _lease(self, command: LeaseJobs) -> Leases:
        began = self._clock.elapsed()
        with self._bell.at(_ropes(command)) as waiter:
            while True:
                answer = await self._commits.submit(command)
                assert isinstance(answer, Leases)
                waited_s = self._clock.elapsed() - began
                if answer.leases or waited_s >= command.wait_s:
                    return Leases(tuple(replace(lease, waited_s=waited_s) for lease in answer.leases), answer.due_in_s)
                due_s = self._options.poll_s if answer.due_in_s is None else answer.due_in_s
                await waiter.wait(min(command.wait_s - waited_s, self._options.poll_s, due_s))

    async def _finished(self, query: Get) -> Job:
        began = self._clock.elapsed()
        with self._bell.at([("job", query.tenant, query.job_id)]) as waiter:
            while True:
                job = await self._store.ask(query)
                assert isinstance(job, Job)
                left_s = query.wait_s - (self._clock.elapsed() - began)
                if job.state.finished or left_s <= 0:
                    return job
                await waiter.wait(min(left_s, self._options.poll_s))

    async def _sweep(self) -> None:
        while True:
            await pause(self._clock, self._options.sweep_s)
            await self._expire()

    async def _expire_now(self) -> Count:
        return Count(await self._expire())

    async def _expire(self) -> int:
        return await self._submit_all(await self._store.overdue())

    async def _submit_all(self, commands: Sequence[Command]) -> int:
        outcomes = await asyncio.gather(*(self._commits.submit(command) for command in commands))
        return sum(outcome.count for outcome in outcomes if isinstance(outcome, Count))

    async def _retain(self) -> None:
        while True:
            await pause(self._clock, self._options.retention_s)
            while await self._submit_all(await self._store.outlived()):
                pass

    def _hear(self, record: Record) -> None:
        if not self._bell.silent:
            for event in record.events:
                self._ring(event)
        for watcher in self._watchers:
            watcher.hear(record)

    def _ring(self, event: AnyEvent) -> None:
        match event:
            case Enqueued() | Failed() | Released() | Requeued() | Updated():
                self._bell.ring((event.tenant, event.queue, None))
                self._bell.ring((event.tenant, event.queue, event.kind))
            case Succeeded() | Died() | Cancelled():
                self._bell.ring_all(("job", event.tenant, event.id))
            case SettingPut(kind=SettingKind.QUEUE) | SettingDeleted(kind=SettingKind.QUEUE):
                self._bell.ring_all(("settings", event.tenant, event.name))
            case _:
                pass


def _ropes(command: LeaseJobs) -> Iterator[Hashable]:
    for queue in command.queues:
        yield "settings", command.tenant, queue
        for kind in command.kinds or (None,):
            yield command.tenant, queue, kind


class _Watcher:
    """The events one reader has still to read."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._unread: deque[Entry] = deque()
        self._arrived = asyncio.Event()
        self._missed = False

    def hear(self, record: Record) -> None:
        for line, event in enumerate(record.events, 1):
            if event.tenant == self._tenant:
                self._missed = self._missed or len(self._unread) >= _WATCHED
                if not self._missed:
                    self._unread.append(Entry(record.seq, line, record.at, event))
        self._arrived.set()

    async def next(self) -> Entry:
        while not self._unread:
            if self._missed:
                raise Busy("the watcher fell too far behind and missed events; watch again", retry_after_s=0.0)
            self._arrived.clear()
            await self._arrived.wait()
        return self._unread.popleft()
