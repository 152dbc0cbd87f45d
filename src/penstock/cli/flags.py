"""Flags that several commands share, with their completion."""

from dataclasses import dataclass
from typing import Annotated

import typer

from penstock.domain.job import Reason, State


def _states(incomplete: str) -> list[str]:
    return [state for state in State if state.startswith(incomplete)]


def _reasons(incomplete: str) -> list[str]:
    return [reason for reason in Reason if reason.startswith(incomplete)]


# States and reasons are text here: an unknown one is refused by the queue itself, in the words of every other way in.
QueueFlag = Annotated[str | None, typer.Option("--queue", help="Only jobs of this queue.")]
StateFlag = Annotated[
    str | None, typer.Option("--state", help=f"Only jobs in this state: {', '.join(State)}.", autocompletion=_states)
]
JobIds = Annotated[list[str] | None, typer.Argument(help="The ids of jobs.", metavar="ID", show_default=False)]
JobId = Annotated[str, typer.Argument(help="The id of a job.", metavar="ID")]
QueueName = Annotated[str, typer.Argument(help="The name of a queue.", metavar="QUEUE")]


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which jobs: those that fit everything said here."""

    queue: QueueFlag = None
    state: StateFlag = None
    kind: Annotated[str | None, typer.Option("--kind", help="Only jobs of this kind.")] = None
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            help="Only jobs whose latest failure has this reason.",
            autocompletion=_reasons,
        ),
    ] = None

    @property
    def empty(self) -> bool:
        """Whether nothing is said, so that every job fits."""
        return self == Filter()


@dataclass(frozen=True, kw_only=True)
class Care:
    """How careful to be with many jobs."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the jobs and change nothing.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
