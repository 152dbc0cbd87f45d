"""``penstock jobs cancel`` and ``requeue``: change some jobs by id, or many by filter."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

import typer

from penstock.cli.command import command
from penstock.cli.enqueue import parse_json
from penstock.cli.exits import exit_code
from penstock.cli.flags import Care, Filter, JobIds
from penstock.cli.paging import every, slices
from penstock.cli.progress import progress
from penstock.cli.session import Session, Usage
from penstock.cli.text import counted
from penstock.client import Client
from penstock.domain.job import JSON, Job, State, encode
from penstock.errors import Conflict, Invalid, NotFound, PenstockError

app = typer.Typer()

# So many are sent at once, for one commit to take them; small enough to show progress.
_SLICE: Final = 200


class Target(NamedTuple):
    """A job to change, and the life in which it was seen; None when only its id is known."""

    job_id: str
    requeues: int | None = None


@dataclass(frozen=True)
class Change:
    """What to do to each job: in words, to jobs of which states, and how."""

    verb: str
    done: str
    states: tuple[State, ...]
    make: Callable[[Client, Target], Awaitable[Job]]


@dataclass(frozen=True)
class Report:
    """What came of it, job by job."""

    done: list[str] = field(default_factory=list)
    refused: list[tuple[str, PenstockError]] = field(default_factory=list)


@command(app, "cancel")
async def cancel(session: Session, which: Filter, care: Care, ids: JobIds = None) -> int:
    """Cancel jobs: nobody runs them any more, and who runs one now learns it at the next heartbeat."""
    return await change(
        session,
        Change(
            "cancel",
            "cancelled",
            (State.QUEUED, State.LEASED),
            lambda client, target: client.cancel(target.job_id, requeues=target.requeues),
        ),
        ids or [],
        which,
        care,
    )


@dataclass(frozen=True, kw_only=True)
class Again:
    """How a job shall run again."""

    again: Annotated[bool, typer.Option("--again", help="Also jobs that succeeded.")] = False
    payload: Annotated[str | None, typer.Option("--payload", help="Another payload, as JSON.")] = None
    delay_s: Annotated[float | None, typer.Option("--delay-s", help="Run so many seconds from now.")] = None


@command(app, "requeue")
async def requeue(session: Session, which: Filter, how: Again, care: Care, ids: JobIds = None) -> int:
    """Run dead or cancelled jobs from attempt 1, perhaps with another payload."""
    options: dict[str, Any] = {"again": how.again, "delay_s": how.delay_s}
    if how.payload is not None:
        # As bytes, because null is a payload too, and None would leave the old one.
        value = parse_json(how.payload.encode(errors="surrogateescape"))
        options |= {"payload": encode(value), "content_type": JSON}
    states = (State.DEAD, State.CANCELLED, State.SUCCEEDED) if how.again else (State.DEAD, State.CANCELLED)
    return await change(
        session,
        Change(
            "requeue",
            "requeued",
            states,
            lambda client, target: client.requeue(target.job_id, requeues=target.requeues, **options),
        ),
        ids or [],
        which,
        care,
    )


async def change(session: Session, what: Change, ids: Sequence[str], which: Filter, care: Care) -> int:
    """Do it to the jobs named, or to all that fit; answers the exit code."""
    if bool(ids) is not which.empty:
        raise Usage(f"say which jobs to {what.verb}: either ids, or a filter such as --queue")
    async with session.open() as client:
        targets = await _targets(client, what, ids, which, count_only=care.dry_run)
        if care.dry_run:
            session.tell({"dry_run": True, "count": len(targets)}, f"would {what.verb} {counted(len(targets), 'job')}")
            return 0
        if targets and not ids:
            session.sure(f"{what.verb.capitalize()} {counted(len(targets), 'job')}?", yes=care.yes)
        report = await _all(session, client, what, targets)
    return _told(session, what, report)


async def _targets(
    client: Client, what: Change, ids: Sequence[str], which: Filter, *, count_only: bool
) -> list[Target]:
    if not ids:
        return [Target(job.id, job.requeues) async for job in _fitting(client, what, which)]
    named = [Target(job_id) for job_id in dict.fromkeys(ids)]
    if not count_only:
        return named
    return [target for target in named if (await client.get(target.job_id)).state in what.states]


async def _fitting(client: Client, what: Change, which: Filter) -> AsyncIterator[Job]:
    if which.state in set(State) - set(what.states):
        raise Invalid(f"only jobs that are {' or '.join(what.states)} can be {what.done}", state=which.state)
    for state in what.states if which.state is None else (which.state,):
        async for job in every(client, state=state, queue=which.queue, kind=which.kind, reason=which.reason):
            yield job


async def _all(session: Session, client: Client, what: Change, targets: Sequence[Target]) -> Report:
    report = Report()
    with progress(session, what.verb, len(targets)) as advance:
        for some in slices(targets, min(_SLICE, session.options.most_waiting)):
            outcomes = await asyncio.gather(*(what.make(client, target) for target in some), return_exceptions=True)
            for target, outcome in zip(some, outcomes, strict=True):
                if isinstance(outcome, Conflict | NotFound | Invalid):
                    report.refused.append((target.job_id, outcome))
                elif isinstance(outcome, BaseException):
                    session.note(f"{counted(len(report.done), 'job')} {what.done} before this")
                    raise outcome
                else:
                    report.done.append(target.job_id)
            advance(len(some))
    return report


def _told(session: Session, what: Change, report: Report) -> int:
    if len(report.refused) == 1 and not report.done:
        raise report.refused[0][1]
    refused = [{"id": job_id, "code": error.code, "message": str(error)} for job_id, error in report.refused]
    session.tell(
        {"count": len(report.done), "ids": report.done, "refused": refused},
        f"{what.done} {counted(len(report.done), 'job')}",
    )
    for job_id, error in report.refused:
        session.note(f"refused {job_id}: {error}")
    return exit_code(report.refused[0][1]) if report.refused else 0
