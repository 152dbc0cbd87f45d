"""All commands in one place, and what ``penstock`` says when it is given none."""

from typing import Annotated, Final

import typer

from penstock.cli import act, enqueue, jobs, machine, purge, queues, verify
from penstock.cli.command import command, group
from penstock.cli.release import release
from penstock.cli.session import Session, Usage

app = typer.Typer(
    help="A durable job queue in which every job ends, and whose history is a data set.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

_NEXT: Final = (
    ("penstock demo", "watch jobs go through a queue"),
    ("penstock doctor --store URL", "check this machine and a store"),
    ("penstock enqueue QUEUE '{\"a\": 1}'", "have a job accepted"),
    ("penstock jobs list", "look at the jobs"),
    ("penstock queues list", "look at the queues"),
    ("penstock --help", "see all commands"),
)

Version = Annotated[bool, typer.Option("--version", help="Say which release this is.")]


def _root(ctx: typer.Context, session: Session, *, version: Version = False) -> None:
    if version:
        session.tell({"version": release()}, f"penstock {release()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        steps = "\n".join(f"  {line:<38}{does}" for line, does in _NEXT)
        session.tell(
            {"version": release(), "next": [line for line, _ in _NEXT]},
            "A durable job queue in which every job ends. What to do next:\n",
            f"{steps}\n",
            "Name the store once with --store URL or PENSTOCK_STORE.",
        )


def _missing(ctx: typer.Context, _: Session) -> None:
    if ctx.invoked_subcommand is None:
        raise Usage(f"say what to do, as in {ctx.command_path} list (see {ctx.command_path} --help)")


def _demo(session: Session) -> None:
    """Watch jobs go through a queue in memory, step by step, with the Python that does it."""
    from penstock.cli import demo  # noqa: PLC0415 read when it is wanted: no other command needs it

    demo.show(session)


group(app, _root)
app.add_typer(enqueue.app)
group(jobs.app, _missing)
jobs.app.add_typer(act.app)
jobs.app.add_typer(purge.app)
app.add_typer(jobs.app, name="jobs")
group(queues.app, _missing)
app.add_typer(queues.app, name="queues")
app.add_typer(machine.app)
app.add_typer(verify.app)
command(app, "demo")(_demo)
