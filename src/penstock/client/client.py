"""Everything a producer, a worker or an operator can do with jobs, in their own words."""

import builtins
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, Unpack

from msgspec import UNSET
from msgspec.structs import replace

from penstock.client.keep import Keeper
from penstock.client.seam import Seam
from penstock.client.typed import TypedQueue
from penstock.clock import Clock
from penstock.domain import limits
from penstock.domain.commands import (
    Ack,
    Beat,
    Cancel,
    DeleteSetting,
    Enqueue,
    Heartbeat,
    LeaseJobs,
    Nack,
    Purge,
    PutSetting,
    Release,
    Requeue,
    SettingKind,
    Sweep,
    Update,
)
from penstock.domain.events import Entry
from penstock.domain.job import (
    DEFAULT_TENANT,
    JSON,
    Ended,
    Holding,
    Job,
    JobOptions,
    Lease,
    NewJob,
    Output,
    Reason,
    State,
    Usage,
    encode,
)
from penstock.domain.outcome import Accepted, Count, Holdings, Leases
from penstock.domain.queries import (
    Attempt,
    Everything,
    Get,
    History,
    ListJobs,
    Page,
    QueueStats,
    Settings,
    Snapshot,
    Stats,
    attempts,
)
from penstock.domain.settings import QueueSettings, queue_settings
from penstock.errors import Invalid, LeaseLost

T = TypeVar("T")
Named = TypeVar("Named", State, Reason)

_CALLS_KNOWN: Final = 1_000


class Client:
    """One tenant's jobs. Every call is safe to repeat: see what each promises in docs/protocol.md."""

    def __init__(self, seam: Seam, clock: Clock, *, tenant: str = DEFAULT_TENANT, actor: str | None = None) -> None:
        limits.name("tenant", tenant)
        self._seam = seam
        self._clock = clock
        self._tenant = tenant
        self._actor = actor
        # When lease calls with a request id of the caller's own were first sent: a repeat counts from there (rule 12).
        self._calls: dict[str, float] = {}

    def acting(self, *, tenant: str | None = None, actor: str | None = None) -> "Client":
        """The same connection for another tenant, or under another name in the history."""
        return Client(
            self._seam,
            self._clock,
            tenant=self._tenant if tenant is None else tenant,
            actor=self._actor if actor is None else actor,
        )

    def typed(self, queue: str, of: type[T]) -> TypedQueue[T]:
        """A queue whose payloads are of one type: a msgspec struct, a dataclass, a pydantic model, ..."""
        return TypedQueue(self, queue, of)

    # Producers

    async def enqueue(self, queue: str, payload: Any = None, **options: Unpack[JobOptions]) -> Job:
        """Have a job accepted. To be able to repeat the call yourself, give it an ``id`` or ``idempotency_key``."""
        # Most calls bring no options, and by name a job to be costs twice as much as by place.
        if not options:
            new = NewJob(queue, payload, self._clock.job_id())
        else:
            if options.get("id") is None:
                options["id"] = self._clock.job_id()
            new = NewJob(queue, payload, **options)
        answer = await self._seam.submit(Enqueue(tenant=self._tenant, actor=self._actor, jobs=(new,)))
        assert isinstance(answer, Accepted)
        return answer.jobs[0]

    async def enqueue_many(self, jobs: Iterable[NewJob]) -> builtins.list[Job]:
        """Have these jobs accepted, all or none; at most 1,000."""
        answer = await self._seam.submit(Enqueue(tenant=self._tenant, actor=self._actor, jobs=self._identified(jobs)))
        assert isinstance(answer, Accepted)
        return list(answer.jobs)

    # Workers

    async def lease(
        self,
        queues: str | Sequence[str],
        *,
        kinds: Iterable[str] | None = None,
        limit: int = 1,
        lease_s: float = 30.0,
        wait_s: float = 0.0,
        worker: str = "",
        request_id: str | None = None,
    ) -> builtins.list[Lease]:
        """Take the first ready jobs: of one queue, or of several in order of preference. Waits up to ``wait_s`` for one."""
        sent_at = self._clock.elapsed()
        first_sent_at = sent_at if request_id is None else self._first_sent_at(request_id, sent_at)
        answer = await self._seam.submit(
            LeaseJobs(
                tenant=self._tenant,
                actor=self._actor,
                queues=(queues,) if isinstance(queues, str) else _several("queues", queues),
                request_id=self._clock.secret() if request_id is None else request_id,
                kinds=None if kinds is None else _several("kinds", kinds),
                limit=limit,
                lease_s=lease_s,
                wait_s=wait_s,
                worker=worker,
            )
        )
        assert isinstance(answer, Leases)
        if request_id is not None and not answer.leases:
            self._calls.pop(request_id, None)
        return [
            Lease(
                lease.job,
                lease.token,
                lease.expires_in_s,
                lease.waited_s,
                (first_sent_at if first_sent_at < sent_at else sent_at + lease.waited_s) + lease.expires_in_s,
            )
            for lease in answer.leases
        ]

    def keep(self, lease: Lease) -> Keeper:
        """``async with`` this around the work: it extends the lease, and stops the work when the lease is lost."""
        return Keeper(self, self._clock, lease)

    async def heartbeat(self, lease: Lease, *, progress: float | None = None, ride_s: float = 0.0) -> Holding:
        """Extend the lease, and say how far the work is. Answers whether the job was cancelled; raises LeaseLost.

        It may wait ``ride_s`` for another command to share a commit with.
        """
        [holding] = await self.heartbeat_many([lease], progress=progress, ride_s=ride_s)
        if holding is Holding.LOST:
            raise LeaseLost("this lease does not hold the job any more: stop working on it", job_id=lease.job.id)
        return holding

    async def heartbeat_many(
        self, leases: Iterable[Lease], *, progress: float | None = None, ride_s: float = 0.0
    ) -> builtins.list[Holding]:
        """Extend many leases at once, answered one by one."""
        beats = tuple(Beat(lease.job.id, lease.token, progress) for lease in leases)
        answer = await self._seam.submit(Heartbeat(tenant=self._tenant, actor=self._actor, beats=beats, ride_s=ride_s))
        assert isinstance(answer, Holdings)
        return list(answer.jobs)

    async def ack(
        self,
        lease: Lease,
        result: Any = None,
        *,
        then: Iterable[NewJob] = (),
        ran_s: float | None = None,
        usage: Usage | None = None,
        output: Output | None = None,
    ) -> Ended:
        """The attempt worked: finish the job, and have follow-up jobs accepted in the same commit."""
        command = Ack(
            tenant=self._tenant,
            actor=self._actor,
            job_id=lease.job.id,
            token=lease.token,
            result=None if result is None else encode(result),
            then=self._identified(then) if then else (),
            ran_s=ran_s,
            usage=usage,
            output=output,
        )
        answer = await self._seam.submit(command)
        assert isinstance(answer, Ended)
        return answer

    async def nack(  # noqa: PLR0913 the fields of the command, all optional
        self,
        lease: Lease,
        error: str = "",
        *,
        retry: bool = True,
        delay_s: float | None = None,
        reason: Reason | str | None = None,
        ran_s: float | None = None,
        usage: Usage | None = None,
        output: Output | None = None,
    ) -> Ended:
        """The attempt failed: the job waits for its next one, or is dead if there is none or ``retry`` is false."""
        command = Nack(
            tenant=self._tenant,
            actor=self._actor,
            job_id=lease.job.id,
            token=lease.token,
            error=limits.cut("error", error, limits.MAX_ERROR_CHARS),
            retry=retry,
            delay_s=delay_s,
            reason=_named(Reason, reason),
            ran_s=ran_s,
            usage=usage,
            output=output,
        )
        answer = await self._seam.submit(command)
        assert isinstance(answer, Ended)
        return answer

    async def release(self, lease: Lease, *, delay_s: float | None = None, ran_s: float | None = None) -> Ended:
        """Give the job back unfinished, now or for later; the attempt is not charged."""
        answer = await self._seam.submit(
            Release(
                tenant=self._tenant,
                actor=self._actor,
                job_id=lease.job.id,
                token=lease.token,
                delay_s=delay_s,
                ran_s=ran_s,
            )
        )
        assert isinstance(answer, Ended)
        return answer

    # Operators

    async def cancel(self, job_id: str, *, requeues: int | None = None) -> Job:
        """Nobody shall run this job; who runs it now learns it at the next heartbeat."""
        life = await self._life(job_id, requeues)
        return self._job(
            await self._seam.submit(Cancel(tenant=self._tenant, actor=self._actor, job_id=job_id, requeues=life))
        )

    async def requeue(
        self,
        job_id: str,
        *,
        again: bool = False,
        payload: Any = UNSET,
        content_type: str | None = None,
        delay_s: float | None = None,
        requeues: int | None = None,
    ) -> Job:
        """Run a dead or cancelled job from attempt 1 (a succeeded one with ``again``), perhaps with another payload."""
        data = None if payload is UNSET else payload if isinstance(payload, bytes) else encode(payload)
        command = Requeue(
            tenant=self._tenant,
            actor=self._actor,
            job_id=job_id,
            requeues=await self._life(job_id, requeues),
            again=again,
            payload=data,
            content_type=content_type if data is None or data is payload else JSON,
            delay_s=delay_s,
        )
        return self._job(await self._seam.submit(command))

    async def update(
        self,
        job_id: str,
        *,
        run_at: datetime | None = None,
        now: bool = False,
        priority: int | None = None,
        max_attempts: int | None = None,
        requeues: int | None = None,
    ) -> Job:
        """Change when a queued job runs (``now`` for at once), its priority or its attempts."""
        command = Update(
            tenant=self._tenant,
            actor=self._actor,
            job_id=job_id,
            requeues=await self._life(job_id, requeues),
            run_at=run_at,
            now=now,
            priority=priority,
            max_attempts=max_attempts,
        )
        return self._job(await self._seam.submit(command))

    async def purge(self, *job_ids: str) -> int:
        """Take these finished jobs out of the store; answers how many. Refused while repeats may still ask for them."""
        return self._count(await self._seam.submit(Purge(tenant=self._tenant, actor=self._actor, job_ids=job_ids)))

    async def purge_queue(self, queue: str, *, state: State | str, older_than_s: float) -> int:
        """Take the queue's jobs of one finished state out of the store if they finished that long ago."""
        limits.between("older_than_s", older_than_s, 0, 10 * limits.MAX_DELAY_S)
        finished_by = self._clock.now() - timedelta(seconds=older_than_s)
        gone = 0
        for keyed in (False, True):
            command = Purge(
                tenant=self._tenant,
                actor=self._actor,
                queue=queue,
                state=_named(State, state),
                keyed=keyed,
                finished_by=finished_by,
            )
            while count := self._count(await self._seam.submit(command)):
                gone += count
        return gone

    async def expire_now(self) -> int:
        """Expire overdue leases and deadlines without waiting for the sweep; answers how many."""
        return self._count(await self._seam.submit(Sweep(tenant=self._tenant, actor=self._actor)))

    async def pause(self, queue: str) -> QueueSettings:
        """Hand out no more jobs of this queue; what runs goes on."""
        return await self.set_queue(queue, paused=True)

    async def resume(self, queue: str) -> QueueSettings:
        """Hand out this queue's jobs again."""
        return await self.set_queue(queue, paused=False)

    async def queue(self, queue: str) -> QueueSettings:
        """How the queue behaves."""
        found = await self._seam.ask(Settings(tenant=self._tenant, kind=SettingKind.QUEUE, name=queue))
        assert isinstance(found, tuple)
        return queue_settings(found[0].value) if found else QueueSettings()  # type: ignore[union-attr] # settings, as asked

    async def set_queue(self, queue: str, /, **changes: Any) -> QueueSettings:
        """Change settings of a queue; None resets one, the others stay."""
        await self._seam.submit(
            PutSetting(tenant=self._tenant, actor=self._actor, kind=SettingKind.QUEUE, name=queue, patch=changes)
        )
        return await self.queue(queue)

    async def reset_queue(self, queue: str) -> None:
        """Put all settings of a queue back to the defaults."""
        await self._seam.submit(
            DeleteSetting(tenant=self._tenant, actor=self._actor, kind=SettingKind.QUEUE, name=queue)
        )

    # Anyone who looks

    async def get(self, job_id: str) -> Job:
        """The job as it is. Raises NotFound."""
        return self._job(await self._seam.ask(Get(tenant=self._tenant, job_id=job_id)))

    async def wait(self, job_id: str, *, timeout_s: float = 60.0) -> Job:
        """The job once it is finished, or as it is when the time is up: look at its ``state``."""
        limits.between("timeout_s", timeout_s, 0, limits.MAX_DELAY_S)
        until = self._clock.elapsed() + timeout_s
        while True:
            wait_s = min(max(0.0, until - self._clock.elapsed()), limits.MAX_WAIT_S)
            job = self._job(await self._seam.ask(Get(tenant=self._tenant, job_id=job_id, wait_s=wait_s)))
            if job.state.finished or self._clock.elapsed() >= until:
                return job

    async def list(
        self,
        *,
        queue: str | None = None,
        state: State | str | None = None,
        kind: str | None = None,
        reason: Reason | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> builtins.list[Job]:
        """Jobs, newest first. To go on, give the last job's id as ``cursor``; fewer than ``limit`` are the last ones."""
        query = ListJobs(
            tenant=self._tenant,
            queue=queue,
            state=_named(State, state),
            kind=kind,
            reason=_named(Reason, reason),
            limit=limit,
            cursor=cursor,
        )
        jobs: builtins.list[Job] = []
        while True:
            page = await self._seam.ask(query)
            assert isinstance(page, Page)
            jobs += page.jobs
            if page.cursor is None or len(jobs) == limit:
                return jobs
            query = replace(query, cursor=page.cursor, limit=limit - len(jobs))

    async def stats(self, queue: str | None = None) -> builtins.list[QueueStats]:
        """How many jobs are in which state, by queue."""
        answer = await self._seam.ask(Stats(tenant=self._tenant, queue=queue))
        assert isinstance(answer, tuple)
        return list(answer)  # type: ignore[arg-type] # stats, as asked

    async def history(self, job_id: str) -> builtins.list[Entry]:
        """Every event of the job, in order."""
        answer = await self._seam.ask(History(tenant=self._tenant, job_id=job_id))
        assert isinstance(answer, tuple)
        return list(answer)  # type: ignore[arg-type] # entries, as asked

    async def attempts(self, job_id: str) -> builtins.list[Attempt]:
        """Every lease of the job and what came of it."""
        return list(attempts(await self.history(job_id)))

    async def snapshot(self) -> Snapshot:
        """All jobs and settings, as they are together after one commit."""
        answer = await self._seam.ask(Everything(tenant=self._tenant))
        assert isinstance(answer, Snapshot)
        return answer

    def watch(self) -> AsyncIterator[Entry]:
        """Every event from now on, as it becomes durable. A hint for eyes and caches; the history is the truth."""
        return self._seam.watch(self._tenant)

    def _first_sent_at(self, request_id: str, sent_at: float) -> float:
        first_sent_at = self._calls.setdefault(request_id, sent_at)
        if len(self._calls) > _CALLS_KNOWN:
            del self._calls[next(iter(self._calls))]
        return first_sent_at

    def _identified(self, jobs: Iterable[NewJob]) -> tuple[NewJob, ...]:
        several = _several("jobs", jobs)
        if not all(isinstance(new, NewJob) for new in several):
            raise Invalid("jobs must be NewJob values")
        return tuple(replace(new, id=self._clock.job_id()) if new.id is None else new for new in several)

    async def _life(self, job_id: str, requeues: int | None) -> int:
        return (await self.get(job_id)).requeues if requeues is None else requeues

    @staticmethod
    def _job(answer: object) -> Job:
        assert isinstance(answer, Job)
        return answer

    @staticmethod
    def _count(answer: object) -> int:
        assert isinstance(answer, Count)
        return answer.count


def _named(names: type[Named], value: Named | str | None) -> Named | None:
    try:
        return None if value is None else names(value)
    except ValueError as error:
        what = names.__name__.lower()
        raise Invalid(f"unknown {what}; known are: {', '.join(names)}", **{what: repr(value)[:80]}) from error


def _several(what: str, items: Iterable[T]) -> tuple[T, ...]:
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise Invalid(f"{what} must be several in a list, tuple or the like", **{what: repr(items)[:80]})
    return tuple(items)
