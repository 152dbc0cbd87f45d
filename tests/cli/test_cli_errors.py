"""Exit codes, and what is said when something goes wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock import (
    Busy,
    Client,
    Conflict,
    Corrupt,
    Denied,
    Fenced,
    Invalid,
    LeaseLost,
    Moved,
    NotFound,
    PenstockError,
    Unavailable,
)
from penstock.cli.session import open_store
from penstock.options import Options

from .harness import Cli

ERRORS = [
    (Invalid("no"), 1),
    (Conflict("no"), 1),
    (LeaseLost("no"), 1),
    (Denied("no"), 1),
    (Busy("no", retry_after_s=1.5), 1),
    (NotFound("no"), 3),
    (Unavailable("no"), 4),
    (Corrupt("no"), 5),
    (Moved("no", address="10.0.0.1:80"), 6),
    (Fenced("no"), 6),
]


def raising(cli: Cli, error: BaseException) -> None:
    @asynccontextmanager
    async def failing(_: Options) -> AsyncIterator[Client]:
        raise error
        yield  # makes it a generator

    cli.opener = failing


def test_every_kind_of_error_is_in_this_test() -> None:
    assert {type(error) for error, _ in ERRORS} == set(PenstockError.__subclasses__())


@pytest.mark.parametrize(("error", "code"), ERRORS)
def test_an_error_has_its_exit_code_and_one_line(cli: Cli, error: PenstockError, code: int) -> None:
    raising(cli, error)
    answer = cli("jobs", "list")
    assert answer.code == code
    assert answer.line == f"error: {error}"


@pytest.mark.parametrize(("error", "code"), ERRORS)
def test_with_json_an_error_is_one_document_on_stderr(cli: Cli, error: PenstockError, code: int) -> None:
    raising(cli, error)
    answer = cli("jobs", "list", "--json")
    assert answer.code == code
    assert answer.error == {"code": error.code, "message": "no", **error.facts}


def test_an_interrupt_is_quiet(cli: Cli) -> None:
    raising(cli, KeyboardInterrupt())
    assert cli("jobs", "list") == (130, "", "")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("frobnicate",), "No such command 'frobnicate'. (see penstock --help)"),
        (("jobs", "lst"), "No such command 'lst'. Did you mean 'list'? (see penstock jobs --help)"),
        (("jobs", "list", "--colour"), "No such option: --colour"),
        (("jobs", "show"), "Missing argument 'ID'. (see penstock jobs show --help)"),
        (("jobs",), "say what to do, as in penstock jobs list"),
        (("queues",), "say what to do, as in penstock queues list"),
    ],
)
def test_a_command_line_that_is_not_right_is_usage(cli: Cli, args: tuple[str, ...], told: str) -> None:
    answer = cli(*args)
    assert answer.code == 2
    assert told in answer.line
    answer = cli(*args, "--json")
    assert (answer.code, answer.error["code"]) == (2, "usage")


def test_without_a_store_it_is_said_how_to_name_one(cli: Cli) -> None:
    cli.opener = open_store
    answer = cli("jobs", "list")
    assert answer.code == 2
    assert answer.line == "error: no store: give --store URL, or set PENSTOCK_STORE"


def test_an_unknown_url_is_refused_without_its_password(cli: Cli) -> None:
    cli.opener = open_store
    for args in (["--store", "ftp://ada:s3cret@host/"], ["--store", "jobs"], ["--store", "memory://x"]):
        answer = cli("jobs", "list", *args)
        assert answer.code == 1
        assert "memory://" in answer.line
        assert "s3cret" not in answer.line


def test_an_error_is_one_line_whatever_it_quotes(cli: Cli) -> None:
    answer = cli("enqueue", "a\nb\x1b[2J")
    assert answer.code == 1
    assert "\x1b" not in answer.line


def test_a_job_in_memory_is_said_to_be_gone_again(cli: Cli) -> None:
    cli.opener = open_store
    answer = cli("enqueue", "mail", "--store", "memory://")
    assert answer.code == 0
    assert "memory:// lives as long as this command" in answer.err
    assert cli("enqueue", "mail", "--store", "memory://", "--json").err == ""
