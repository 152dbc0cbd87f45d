"""Planted where time is measured, and where callers are answered or send again."""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from penstock.broker.broker import Broker
from penstock.client.client import Client
from penstock.domain import decide, due
from penstock.domain.commands import Command, Expire, Heartbeat
from penstock.domain.job import Holding, NewJob
from penstock.domain.outcome import Holdings
from penstock.domain.tables import Tables
from penstock.stores.kept import Kept
from tests.simulation.planted.bug import bug


@bug("wall clocks compared", breaks="G5", where=Kept, what="overdue", seeds=20, skew_s=25.0, vanish=0.3, processes=3)
def _by_the_wall(kept: Kept) -> list[Command]:
    now = kept._clock.now()
    return [
        Expire(tenant=name, job_id=job.id, lease_no=job.lease_no, beats=job.lease.beats)
        for name, tenant in kept.tables.tenants.items()
        for job in tenant.jobs.values()
        if job.lease is not None
        and job.heartbeat_at is not None
        and job.heartbeat_at + timedelta(seconds=job.lease.lease_s) <= now
    ]


@bug(
    "a lease restarts with every process",
    breaks="G16",
    where=due.LeaseWatch,
    what="begin",
    seeds=100,
    processes=1,
    crash_every=0,
    pause_every=0,
    stop_every_s=9.0,
    lease_s=12.0,
    vanish=0.5,
    active_s=60.0,
    jobs=10,
    workers=2,
    operators=0,
    slow=0.0,
    refused=0.0,
    lost=0.0,
    late=0.0,
    unread=0.0,
    outage_every_s=0.0,
    full_every_s=0.0,
    down_s=0.0,
)
def _from_the_start(watch: due.LeaseWatch, tables: Tables, elapsed: float, _: due.LeaseWatch) -> None:
    forgetful = Tables()
    for tenant in tables.tenants.values():
        for job in tenant.jobs.values():
            if job.lease is not None:
                forgetful.load(replace(job, lease=replace(job.lease, left_s=job.lease.lease_s)))
    _begin(watch, forgetful, elapsed, due.LeaseWatch())


_begin = due.LeaseWatch.begin


@bug("heartbeat answered before it is durable", breaks="G1", where=Broker, what="submit", seeds=40)
def _beaten_at_once(broker: Broker, command: Command) -> Awaitable[Any]:
    if not isinstance(command, Heartbeat):
        return _submit(broker, command)
    tables = broker._store._state.kept.tables  # type: ignore[attr-defined] # the log store's own
    held = tuple(decide.holding(tables.find(command.tenant, beat.job_id), beat.token) for beat in command.beats)
    if all(holding is Holding.HELD for holding in held):
        _submit(broker, command)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.set_result(Holdings(held))
        return reply
    return _submit(broker, command)


_submit = Broker.submit


@bug(
    "id made inside a retried step", breaks="G3", where=Client, what="_identified", seeds=60, lost=0.2, crash_every=300
)
def _new_ids(client: Client, jobs: Sequence[NewJob]) -> tuple[NewJob, ...]:
    return tuple(replace(new, id=client._clock.job_id()) for new in jobs)
