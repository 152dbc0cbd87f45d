"""From the arguments of a process to its exit code: every error becomes one line and one number here."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
import typer
from typer.main import get_command

from penstock.cli.app import app
from penstock.cli.exits import INTERRUPTED, REFUSED, exit_code
from penstock.cli.session import Edge, Session
from penstock.cli.text import one_line
from penstock.errors import PenstockError


def main() -> NoReturn:
    """Run this process's arguments and exit."""
    _steady_streams()
    sys.exit(run(sys.argv[1:], Edge.of_process()))


def _steady_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # Whoever started us closed it.
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 open as long as the process
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            # A letter that the terminal's encoding lacks is no reason to fail.
            stream.reconfigure(errors="replace")


def run(args: Sequence[str], edge: Edge) -> int:
    """Run one command; answers its exit code. What a user did wrong is told in one line on stderr."""
    json = "--json" in args
    try:
        code = get_command(app).main(list(args), prog_name="penstock", standalone_mode=False, obj=Session(edge))
    except PenstockError as error:
        _tell({"code": error.code, "message": error.message} | error.facts, str(error), json=json)
        return exit_code(error)
    except typer.TyperException as error:
        _tell({"code": "usage", "message": error.format_message()}, _with_hint(error), json=json)
        return error.exit_code
    except typer.Abort:
        _tell({"code": "aborted", "message": "nothing was changed"}, "nothing was changed", json=json)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        # What is left to flush at exit goes nowhere. A reader that has seen enough (| head) needs not be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            line = f"input or output failed ({error.strerror})"
            _tell({"code": "io", "message": line}, line, json=json)
        return REFUSED
    return code if isinstance(code, int) else 0


def _tell(error: dict[str, object], line: str, *, json: bool) -> None:
    if json:
        sys.stderr.write(f"{msgspec.json.encode({'error': error}, enc_hook=str).decode()}\n")
    else:
        typer.echo(f"{typer.style('error:', fg=typer.colors.RED, bold=True)} {one_line(line)}", err=True)


def _with_hint(error: typer.TyperException) -> str:
    told = error.format_message()
    context = getattr(error, "ctx", None)
    return told if context is None else f"{told} (see {context.command_path} --help)"
