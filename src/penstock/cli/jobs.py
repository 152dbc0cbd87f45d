"""``penstock jobs list`` and ``show``: look at jobs."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from penstock.cli import job_screens
from penstock.cli.command import command
from penstock.cli.flags import Filter, JobId
from penstock.cli.session import Session
from penstock.cli.text import counted
from penstock.domain import view

app = typer.Typer(help="Look at jobs, cancel, requeue or purge them.")

Limit = Annotated[int, typer.Option("--limit", help="At most so many, up to 1000.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on below this id: the last one of the page before.")]


@command(app, "list")
async def list_jobs(session: Session, which: Filter, limit: Limit = 100, cursor: Cursor = None) -> None:
    """List jobs, newest first."""
    async with session.open() as client:
        jobs = await client.list(
            queue=which.queue, state=which.state, kind=which.kind, reason=which.reason, limit=limit, cursor=cursor
        )
    more = jobs[-1].id if len(jobs) == limit else None
    screen: list[RenderableType] = ["no jobs"]
    if jobs:
        screen = [job_screens.many(jobs, session.edge.clock.now(), session.console().width)]
    if more is not None:
        screen.append(Text(f"the first {counted(limit, 'job')}; go on with --cursor {more}", style="dim"))
    session.tell({"jobs": [view.job(job) for job in jobs], "cursor": more}, *screen)


@command(app, "show")
async def show(
    session: Session,
    job_id: JobId,
    *,
    history: Annotated[bool, typer.Option("--history", help="Also every event, with its actor.")] = False,
) -> None:
    """Show one job with its payload and attempts."""
    async with session.open() as client:
        job = await client.get(job_id)
        attempts = await client.attempts(job_id)
        entries = await client.history(job_id) if history else []
    now = session.edge.clock.now()
    document = {"job": view.job(job), "attempts": [view.attempt(attempt) for attempt in attempts]}
    screen = [job_screens.one(job, now), job_screens.payload(job)]
    if attempts:
        screen.append(job_screens.attempts(attempts, session.console().width))
    if history:
        document["history"] = [view.entry(entry) for entry in entries]
        screen.append(job_screens.history(entries))
    session.tell(document, *screen)
