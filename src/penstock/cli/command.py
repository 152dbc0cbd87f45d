"""How a command is declared: an ordinary function, and every option of the table comes with it."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, TypeVar

import typer

from penstock.cli.session import Session
from penstock.options import TABLE, Option

Body = TypeVar("Body", bound=Callable[..., Any])

_PANEL: Final = "Options of every command"


def command(app: typer.Typer, name: str) -> Callable[[Body], Body]:
    """Register a function whose first argument is the session; it may be a coroutine, and answer an exit code.

    An argument whose type is a dataclass is one flag per field: flags that belong together are written once.
    """

    def register(body: Body) -> Body:
        own = _own(body, 1)

        def call(ctx: typer.Context, **given: Any) -> Any:
            answer = body(_session(ctx, given), **{name: _argument(own[name], given) for name in own})
            return asyncio.run(answer) if inspect.iscoroutine(answer) else answer

        _declare(call, body, own)
        app.command(name)(call)
        return body

    return register


def group(app: typer.Typer, body: Callable[..., None]) -> None:
    """Let the options of every command also stand before the command. ``body`` runs first, with context and session."""
    own = _own(body, 2)

    def call(ctx: typer.Context, **given: Any) -> None:
        ctx.obj = _session(ctx, given)
        body(ctx, ctx.obj, **{name: _argument(own[name], given) for name in own})

    _declare(call, body, own)
    app.callback(invoke_without_command=True)(call)


def _own(body: Callable[..., Any], given_to_all: int) -> dict[str, Parameter]:
    return dict(list(inspect.signature(body).parameters.items())[given_to_all:])


def _session(ctx: typer.Context, given: Mapping[str, Any]) -> Session:
    before = ctx.obj
    assert isinstance(before, Session)
    return before.given({option.name: given[option.name] for option in TABLE}, json=given["json"])


def _declare(call: Callable[..., Any], body: Callable[..., Any], own: Mapping[str, Parameter]) -> None:
    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    flat = (one for parameter in own.values() for one in _flat(parameter))
    call.__doc__ = body.__doc__
    call.__signature__ = Signature([context, *flat, *_common()])  # type: ignore[attr-defined] # as inspect reads it


def _flat(parameter: Parameter) -> Iterator[Parameter]:
    fields = inspect.signature(parameter.annotation).parameters.values() if _is_flags(parameter) else (parameter,)
    for one in fields:
        yield one.replace(kind=Parameter.KEYWORD_ONLY)


def _argument(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    if not _is_flags(parameter):
        return given[parameter.name]
    return parameter.annotation(**{name: given[name] for name in inspect.signature(parameter.annotation).parameters})


def _is_flags(parameter: Parameter) -> bool:
    return isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)


def _common() -> Iterator[Parameter]:
    json = typer.Option("--json", help="Answer with one JSON document.", rich_help_panel=_PANEL)
    yield Parameter("json", Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, json])
    for option in TABLE:
        # Text for every kind: the table's own reader parses flags and variables alike, and names both when it refuses.
        flag = typer.Option(
            option.flag, help=_help(option), metavar=_metavar(option), show_default=False, rich_help_panel=_PANEL
        )
        yield Parameter(option.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, flag])


def _metavar(option: Option) -> str:
    return "URL" if option.name == "store" else "NUMBER" if option.unit else "TEXT"


def _help(option: Option) -> str:
    return f"{option.help} ({option.variable}; default: {option.default_text})"
