"""What a command works with: its options, the way to the store, and the two ways to answer."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

import msgspec
import typer
from rich.console import Console, RenderableType

from penstock.cli.exits import USAGE
from penstock.client import Client, connect
from penstock.clock import Clock, SystemClock
from penstock.options import Options, read

Opener = Callable[[Options], AbstractAsyncContextManager[Client]]


class Usage(typer.TyperException):
    """The command line itself is not right."""

    exit_code = USAGE


def open_store(options: Options) -> AbstractAsyncContextManager[Client]:
    """Connect as the options say."""
    if options.store is None:
        raise Usage("no store: give --store URL, or set PENSTOCK_STORE")
    return connect(options.store, tenant=options.tenant, actor=options.actor, options=options.broker)


@dataclass(frozen=True)
class Edge:
    """What the process gives to its command; tests give something else."""

    opener: Opener
    environ: Mapping[str, str]
    clock: Clock
    # Asks the user a question; None where nobody is there to answer.
    ask: Callable[[str], bool] | None

    @classmethod
    def of_process(cls) -> "Edge":
        """The real one."""
        there = sys.stdin.isatty() and sys.stderr.isatty()
        return cls(open_store, os.environ, SystemClock(), _confirmed if there else None)


def _confirmed(question: str) -> bool:
    # The event loop takes the interrupt for itself and would not wake somebody who is asked.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Session:
    """One run of a command."""

    edge: Edge
    flags: Mapping[str, str | None] = field(default_factory=dict)
    json: bool = False

    def given(self, flags: Mapping[str, str | None], *, json: bool) -> "Session":
        """The same with flags that stood further to the right, and win."""
        told = {name: value for name, value in flags.items() if value is not None}
        return replace(self, flags={**self.flags, **told}, json=self.json or json)

    @property
    def options(self) -> Options:
        """The options; raises Invalid for one that cannot be used."""
        return read(self.flags, self.edge.environ)

    def open(self) -> AbstractAsyncContextManager[Client]:
        """The store that the options name."""
        return self.edge.opener(self.options)

    def tell(self, document: object, *screen: RenderableType) -> None:
        """Answer on stdout: one JSON document for a program, or the screen for people."""
        if self.json:
            # JSON is UTF-8 whatever the terminal speaks.
            sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
        elif (console := self.console()).is_terminal:
            _print(console, screen)
        else:
            # Tables are padded to their width, which is of no use in a file.
            with console.capture() as printed:
                _print(console, screen)
            sys.stdout.writelines(f"{line.rstrip()}\n" for line in printed.get().splitlines())
        # Now, for a reader that follows a long command through a pipe.
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Say something beside the answer; programs do not want to hear it."""
        if not self.json:
            typer.echo(typer.style(text, dim=True), err=True)

    def console(self) -> Console:
        """Where screens go: text of users is never markup."""
        return Console(markup=False, highlight=False, emoji=False)

    def sure(self, question: str, *, yes: bool) -> None:
        """Go on only if the user wants it; where nobody can be asked, ``--yes`` must say so."""
        if yes:
            return
        if self.edge.ask is None or self.json:
            raise Usage(f"{question} Say --yes, or see with --dry-run what it would do")
        if not self.edge.ask(question):
            raise typer.Abort


def _print(console: Console, screen: Sequence[RenderableType]) -> None:
    for part in screen:
        # A sentence stays on its line, for whoever cuts or greps it; tables fit the screen.
        console.print(part, soft_wrap=isinstance(part, str))
