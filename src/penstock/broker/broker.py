"""One store, shared by many callers: commands in, outcomes out, and nothing is forgotten when time passes."""

import asyncio
import logging
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
from penstock.domain.commands import Command, Heartbeat, LeaseJobs, SettingKind, Sweep
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
from penstock.errors import Busy, PenstockError, Unavailable
from penstock.stores.port import Store

_log: Final = logging.getLogger("penstock")


class BrokerOptions(Struct, frozen=True, kw_only=True):
    """The broker's numbers; ``options.py`` says what each is for."""

    most_waiting: int = 10_000
    sweep_s: float = 1.0
    retention_s: float = 60.0
    poll_s: float = 1.0
    answer_s: float = 30.0


DEFAULTS: Final = BrokerOptions()
_WATCHED: Final = 10_000
_OWN_AT_ONCE: Final = 1_000
_CLOSED: Final = "closed"


class Broker:
    """The seam on a store in this process: ``submit`` changes, ``ask`` looks, ``watch`` follows."""

    def __init__(self, store: Store, clock: Clock, options: BrokerOptions = DEFAULTS) -> None:
        self._store = store
        self._clock = clock
        self._options = options
        self._bell = Bell(clock)
        self._commits = GroupCommit(store, clock, most_waiting=options.most_waiting, answer_s=options.answer_s)
        self._watchers: dict[_Watcher, None] = {}
        self._somebody_waits = asyncio.Event()
        self._closed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._deaf: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        await self._store.open()
        self._deaf = self._store.listen(self._hear)
        timers = (
            self._every(self._options.sweep_s, self._expire),
            self._every(self._options.retention_s, self._retain),
            self._follow(self._store.look_s),
        )
        self._tasks = [asyncio.create_task(work) for work in (self._commits.run(), *timers)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        committer, *timers = self._tasks
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)
        self._bell.ring_all(_CLOSED)
        for watcher in self._watchers:
            watcher.end()
        await self._part()
        self._commits.close()
        late = self._clock.call_later(self._options.answer_s, _cancelling(committer))
        await asyncio.gather(committer, return_exceptions=True)
        late.cancel()
        self._deaf()
        await self._store.close()

    def submit(self, command: Command) -> Awaitable[Result]:
        """Change something; answered when it is durable. Raises the refusal if it is refused."""
        check(command)
        # By type and not by pattern: a class pattern asks the structs' metaclass, and every command passes here.
        if type(command) is LeaseJobs:
            if command.wait_s > 0:
                return self._lease(command)
        elif type(command) is Heartbeat:
            if command.ride_s > 0 and self._store.look_s is not None:
                return self._commits.submit(command, ride_s=command.ride_s)
        elif type(command) is Sweep:
            return self._expire_now()
        return self._commits.submit(command)

    async def ask(self, query: Query) -> Answer:
        """Look at committed state."""
        check_query(query)
        if isinstance(query, Get) and query.wait_s > 0:
            return await self._finished(query)
        return await self._store.ask(query)

    async def watch(self, tenant: str) -> AsyncIterator[Entry]:
        """Every event of the tenant until the broker closes. Raises Busy when the reader has fallen too far behind."""
        watcher = _Watcher(tenant)
        self._watchers[watcher] = None
        self._somebody_waits.set()
        try:
            while (entry := await watcher.next()) is not None:
                yield entry
        finally:
            self._watchers.pop(watcher, None)

    async def _lease(self, command: LeaseJobs) -> Leases:
        began = self._clock.elapsed()
        with self._bell.at((_CLOSED, *_ropes(command))) as waiter:
            self._somebody_waits.set()
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
        with self._bell.at([_CLOSED, ("job", query.tenant, query.job_id)]) as waiter:
            self._somebody_waits.set()
            while True:
                job = await self._store.ask(query)
                assert isinstance(job, Job)
                left_s = query.wait_s - (self._clock.elapsed() - began)
                if job.state.finished or left_s <= 0:
                    return job
                if self._closed:
                    raise Unavailable("the broker is closed", job_id=job.id, state=job.state)
                await waiter.wait(min(left_s, self._options.poll_s))

    async def _every(self, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
        """Do this again and again; a time that fails is not the last."""
        while True:
            await pause(self._clock, seconds)
            try:
                await work()
            except PenstockError as error:
                _log.warning("broker_timer_failed work=%s error=%s", work.__name__, error)

    async def _follow(self, look_s: float | None) -> None:
        """Look for what other processes have committed while somebody here waits for it (rule 1)."""
        if look_s is None:
            return
        while True:
            await self._somebody_waits.wait()
            await pause(self._clock, look_s)
            if self._bell.silent and not self._watchers:
                self._somebody_waits.clear()
                continue
            try:
                await self._store.refresh()
            except PenstockError as error:
                _log.warning("broker_look_failed error=%s", error)
                await pause(self._clock, self._options.poll_s)

    async def _part(self) -> None:
        try:
            await self._commit_own(await self._store.parting())
        except PenstockError as error:
            _log.warning("broker_parting_failed error=%s", error)

    async def _expire_now(self) -> Count:
        return Count(await self._expire())

    async def _expire(self) -> int:
        return await self._commit_own(await self._store.overdue())

    async def _retain(self) -> None:
        while await self._commit_own(await self._store.outlived()):
            pass

    async def _commit_own(self, commands: Sequence[Command]) -> int:
        """Commit what time demands, in batches of a fair size; says how many jobs changed."""
        changed = 0
        for first in range(0, len(commands), _OWN_AT_ONCE):
            outcomes = await self._commits.submit_all(commands[first : first + _OWN_AT_ONCE])
            changed += sum(outcome.count for outcome in outcomes if isinstance(outcome, Count))
        return changed

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


def _cancelling(task: asyncio.Task[None]) -> Callable[[], None]:
    def cancel() -> None:
        task.cancel()

    return cancel


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
        self._over = False

    def hear(self, record: Record) -> None:
        for line, event in enumerate(record.events, 1):
            if event.tenant == self._tenant:
                self._missed = self._missed or len(self._unread) >= _WATCHED
                if not self._missed:
                    self._unread.append(Entry(record.seq, line, record.at, event))
        self._arrived.set()

    def end(self) -> None:
        self._over = True
        self._arrived.set()

    async def next(self) -> Entry | None:
        while not self._unread:
            if self._missed:
                raise Busy("the watcher fell too far behind and missed events; watch again", retry_after_s=0.0)
            if self._over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._unread.popleft()
