"""``penstock jobs purge``: take finished jobs out of the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer

from penstock.cli.command import command
from penstock.cli.flags import Care, JobIds, QueueFlag, StateFlag
from penstock.cli.paging import every, slices
from penstock.cli.progress import progress
from penstock.cli.session import Session, Usage
from penstock.cli.text import counted, span
from penstock.client import Client
from penstock.domain.decide import kept_until
from penstock.domain.job import Job, State
from penstock.domain.limits import KEY_KEPT_S, MAX_PURGE, REPEAT_S

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class Old:
    """Which finished jobs."""

    queue: QueueFlag = None
    state: StateFlag = None
    older_than_s: Annotated[
        float | None, typer.Option("--older-than-s", help="Only jobs that finished so many seconds ago.")
    ] = None

    @property
    def empty(self) -> bool:
        """Whether nothing is said, so that every finished job fits."""
        return self == Old()


@command(app, "purge")
async def purge(session: Session, which: Old, care: Care, ids: JobIds = None) -> None:
    """Take finished jobs out of the store, by id or by filter."""
    if bool(ids) is not which.empty:
        raise Usage("say which jobs to purge: either ids, or a filter such as --queue")
    async with session.open() as client:
        if care.dry_run:
            count = await _countable(session, client, ids or [], which)
            session.tell({"dry_run": True, "count": count}, f"would purge {counted(count, 'job')}")
            return
        if ids:
            count = sum([await client.purge(*some) for some in slices(ids, MAX_PURGE)])
        else:
            if not care.yes:
                there = await _countable(session, client, [], which)
                session.sure(f"Purge {counted(there, 'job')}?", yes=False)
            count = await _purged(session, client, which)
    session.tell({"count": count}, f"purged {counted(count, 'job')}")
    if ids and count < len(set(ids)):
        session.note(f"{counted(len(set(ids)) - count, 'job')} not there")
    elif not count:
        session.note(f"a finished job stays for {span(REPEAT_S)}, with an idempotency key for {span(KEY_KEPT_S)}")


async def _purged(session: Session, client: Client, which: Old) -> int:
    lines = await _lines(client, which)
    count = 0
    with progress(session, "purge", len(lines)) as advance:
        for queue, state in lines:
            count += await client.purge_queue(queue, state=state, older_than_s=which.older_than_s or 0.0)
            advance(1)
    return count


async def _countable(session: Session, client: Client, ids: Sequence[str], which: Old) -> int:
    now = session.edge.clock.now()
    finished_by = now - timedelta(seconds=which.older_than_s or 0.0)

    def goes(job: Job) -> bool:
        return job.finished_at is not None and job.finished_at <= finished_by and kept_until(job) <= now

    if ids:
        return sum([goes(await client.get(job_id)) for job_id in dict.fromkeys(ids)])
    count = 0
    for queue, state in await _lines(client, which):
        async for job in every(client, queue=queue, state=state):
            count += goes(job)
    return count


async def _lines(client: Client, which: Old) -> list[tuple[str, str]]:
    queues = [which.queue] if which.queue else [stats.queue for stats in await client.stats()]
    states = [which.state] if which.state else [state for state in State if state.finished]
    return [(queue, state) for queue in queues for state in states]
