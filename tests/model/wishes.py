"""What a caller could want next: drawn by Hypothesis as plain values, made into a command when its turn comes."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.clock import Clock
from penstock.domain.backoff import Backoff, Policy
from penstock.domain.commands import (
    Ack,
    Beat,
    Cancel,
    Command,
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
    Update,
)
from penstock.domain.job import NewJob, State
from penstock.domain.tables import Tables

TENANTS = ("default", "other")
QUEUES = ("mail", "sms")


@dataclass
class World:
    """What callers know: the jobs, leases and lease calls of all tenants so far."""

    clock: Clock
    tables: Tables
    jobs: list[tuple[str, str]] = field(default_factory=list)
    leases: list[tuple[str, str, str]] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def identified(self, new: NewJob, known: int | None) -> NewJob:
        return replace(new, id=self.clock.job_id() if known is None or not self.jobs else self.job(known)[1])

    def job(self, pick: int) -> tuple[str, str]:
        """Which job so far, counted from the newest; one that nobody knows if there is none."""
        return self.jobs[-1 - pick % len(self.jobs)] if self.jobs else (TENANTS[0], self.clock.job_id())

    def held(self, pick: int) -> tuple[str, str, str]:
        return self.leases[-1 - pick % len(self.leases)]

    def named(self, pick: int, behind: int) -> dict[str, Any]:
        """A job and the life of it that the caller saw, or one so many lives earlier."""
        tenant, job_id = self.job(pick)
        job = self.tables.find(tenant, job_id)
        life = 0 if job is None else job.requeues
        return {"tenant": tenant, "job_id": job_id, "requeues": max(0, life - behind)}


class Wish(Protocol):
    """One thing that a caller could want."""

    def command(self, world: World) -> Command: ...


class ToEnqueue(NamedTuple):
    tenant: str
    news: tuple[NewJob, ...]
    known: int | None

    def command(self, world: World) -> Command:
        first, *rest = self.news
        jobs = (world.identified(first, self.known), *(world.identified(new, None) for new in rest))
        return Enqueue(tenant=self.tenant, jobs=jobs)


class ToLease(NamedTuple):
    tenant: str
    queues: tuple[str, ...]
    options: dict[str, Any]
    repeated: int | None

    def command(self, world: World) -> Command:
        tenant, call = self.tenant, world.clock.secret()
        if self.repeated is not None and world.calls:
            tenant, call = world.calls[-1 - self.repeated % len(world.calls)]
        return LeaseJobs(tenant=tenant, queues=self.queues, request_id=call, **self.options)


A_LEASE = ToLease(TENANTS[0], QUEUES, {}, None)


class ToBeat(NamedTuple):
    pick: int
    progress: float | None

    def command(self, world: World) -> Command:
        if not world.leases:
            return A_LEASE.command(world)
        tenant, job_id, token = world.held(self.pick)
        others = [Beat(job, held) for owner, job, held in world.leases[-2:] if owner == tenant]
        return Heartbeat(tenant=tenant, beats=(Beat(job_id, token, self.progress), *others))


class ToEnd(NamedTuple):
    """To end an attempt; without a lease, the wish to have one."""

    verb: type[Ack | Nack | Release]
    pick: int
    options: dict[str, Any]
    then: tuple[NewJob, ...]

    def command(self, world: World) -> Command:
        if not world.leases:
            return A_LEASE.command(world)
        tenant, job_id, token = world.held(self.pick)
        options = dict(self.options)
        if self.verb is Ack:
            options["then"] = tuple(world.identified(new, None) for new in self.then)
        return self.verb(tenant=tenant, job_id=job_id, token=token, **options)


class ToOperate(NamedTuple):
    verb: type[Cancel | Requeue | Update]
    pick: int
    behind: int
    options: dict[str, Any]
    later_s: float | None

    def command(self, world: World) -> Command:
        options = dict(self.options)
        if self.later_s is not None:
            options |= {"run_at": world.clock.now() + timedelta(seconds=self.later_s), "now": False}
        return self.verb(**world.named(self.pick, self.behind), **options)


class ToPurge(NamedTuple):
    picks: tuple[int, ...]
    queue: tuple[str, str, State, bool] | None
    age_s: float

    def command(self, world: World) -> Command:
        if self.queue is None:
            ids = tuple(world.job(pick)[1] for pick in self.picks)
            return Purge(tenant=world.job(self.picks[0])[0], job_ids=ids)
        tenant, queue, state, keyed = self.queue
        finished_by = world.clock.now() - timedelta(seconds=self.age_s)
        return Purge(tenant=tenant, queue=queue, state=state, keyed=keyed, finished_by=finished_by)


class ToSet(NamedTuple):
    tenant: str
    queue: str
    patch: dict[str, Any] | None

    def command(self, world: World) -> Command:
        del world
        if self.patch is None:
            return DeleteSetting(tenant=self.tenant, kind=SettingKind.QUEUE, name=self.queue)
        return PutSetting(tenant=self.tenant, kind=SettingKind.QUEUE, name=self.queue, patch=self.patch)


def _options(**choices: tuple[Any, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in choices.items()})


_tenants = st.sampled_from(TENANTS[:1] * 4 + TENANTS[1:])
_queues = st.sampled_from(QUEUES)
_picks = st.integers(0, 5)
_behind = st.sampled_from((0, 0, 0, 1, 2))
_new_jobs = st.builds(
    NewJob,
    _queues,
    st.integers(0, 1),
    kind=st.sampled_from((None, None, "send", "read")),
    priority=st.sampled_from((0, 0, -1, 1)),
    delay_s=st.sampled_from((None, None, None, 7.0, 3600.0)),
    deadline_s=st.sampled_from((None, None, None, 8.0, 600.0)),
    idempotency_key=st.sampled_from((None, None, None, None, None, "a", "b")),
    max_attempts=st.sampled_from((None, 1, 2)),
    backoff=st.sampled_from((None, Backoff(Policy.LINEAR, 10.0, 25.0))),
)
_patches: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {"paused": True},
    {"paused": False},
    {"paused": None, "max_depth": None},
    {"max_depth": 5},
    {"results": "discard", "max_attempts": 2},
    {"retain_succeeded_s": 900.0, "retain_dead_s": 900.0},
    {"colour": "red"},
)

to_enqueue = st.builds(
    ToEnqueue,
    _tenants,
    st.lists(_new_jobs, min_size=1, max_size=3).map(tuple),
    st.sampled_from((None, None, None, None, 0, 1)),
)
to_lease = st.builds(
    ToLease,
    _tenants,
    st.sampled_from((QUEUES, QUEUES, QUEUES[:1], QUEUES[::-1])),
    _options(kinds=(None, None, None, ("send",), ("mail", "read")), limit=(1, 2, 3), lease_s=(10.0, 30.0)),
    st.sampled_from((None, None, None, 0, 1)),
)
_no_jobs: st.SearchStrategy[tuple[NewJob, ...]] = st.just(())
to_work = st.one_of(
    st.builds(ToEnd, st.just(Ack), _picks, _options(result=(None, b"1")), st.lists(_new_jobs, max_size=1).map(tuple)),
    st.builds(ToEnd, st.just(Nack), _picks, _options(retry=(True, True, False), delay_s=(None, 0.0)), _no_jobs),
    st.builds(ToEnd, st.just(Release), _picks, _options(delay_s=(None, None, 9.0)), _no_jobs),
    st.builds(ToBeat, _picks, st.sampled_from((None, 0.25, 0.5))),
)
_changes = _options(now=(True, False), priority=(None, -1, 1), max_attempts=(None, None, 1, 3))
_lives = _options(again=(True, False), payload=(None, b"5"), delay_s=(None, 7.0))
_later_s = st.sampled_from((None, None, -5.0, 7.0, 3600.0))
to_operate = st.one_of(
    st.builds(ToOperate, st.just(Cancel), _picks, _behind, st.just({}), st.none()),
    st.builds(ToOperate, st.just(Requeue), _picks, _behind, _lives, st.none()),
    st.builds(ToOperate, st.just(Update), _picks, _behind, _changes, _later_s),
)
to_purge = st.builds(
    ToPurge,
    st.lists(_picks, min_size=1, max_size=2).map(tuple),
    st.one_of(
        st.none(),
        st.tuples(_tenants, _queues, st.sampled_from([state for state in State if state.finished]), st.booleans()),
    ),
    st.sampled_from((0.0, 901.0)),
)
to_set = st.builds(ToSet, _tenants, _queues, st.sampled_from(_patches))
any_wish: st.SearchStrategy[Wish] = st.one_of(
    *(to_enqueue, to_enqueue, to_enqueue, to_lease, to_lease, to_work, to_work, to_work),
    *(to_operate, to_operate, to_purge, to_set),
)
