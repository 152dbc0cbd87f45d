"""``penstock expire``, ``config`` and ``doctor``."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from penstock import Client, Corrupt, Unavailable
from penstock.cli import doctor
from penstock.cli.session import open_store
from penstock.options import Options
from penstock.testing import FakeClock

from .harness import Cli


def test_overdue_leases_and_deadlines_are_expired_now(cli: Cli) -> None:
    job_id = cli.enqueue()
    cli.do(lambda client: client.lease("mail", lease_s=30))
    cli.enqueue("other", deadline_s=20)
    assert cli("expire").out == "expired 0 jobs\n"
    cli.clock.advance(31)
    assert cli.ok("expire") == {"expired": 2}
    assert cli.ok("jobs", "show", job_id)["job"]["lease_lost"] == 1


def test_config_says_of_every_option_its_value_and_where_it_came_from(cli: Cli) -> None:
    cli.environ["PENSTOCK_POLL_S"] = "2.5"
    lines = {line.split()[0]: line.split()[1:] for line in cli("config", "--tenant", "acme").out.splitlines()}
    assert lines["OPTION"] == ["VALUE", "UNIT", "FROM"]
    assert lines["store"] == ["none", "default"]
    assert lines["tenant"] == ["acme", "flag"]
    assert lines["actor"] == ["ada", "default"]
    assert lines["poll_s"] == ["2.5", "seconds", "PENSTOCK_POLL_S"]
    [poll] = [option for option in cli.ok("config")["options"] if option["name"] == "poll_s"]
    assert poll == {
        "name": "poll_s",
        "value": 2.5,
        "unit": "seconds",
        "from": "PENSTOCK_POLL_S",
        "flag": "--poll-s",
        "variable": "PENSTOCK_POLL_S",
    }


def test_config_masks_a_password(cli: Cli) -> None:
    cli.environ["PENSTOCK_STORE"] = "postgresql://ada:s3cret@db/jobs"
    for args in ([], ["--json"]):
        answer = cli("config", *args)
        assert "s3cret" not in answer.out
        assert "postgresql://***@db/jobs" in answer.out


def test_config_refuses_an_option_that_cannot_be_used(cli: Cli) -> None:
    answer = cli("config", "--sweep-s", "never", "--json")
    assert (answer.code, answer.error["code"]) == (1, "invalid")


def status(cli: Cli, *args: str) -> tuple[int, dict[str, str]]:
    answer = cli("doctor", *args, "--json")
    assert answer.json["ok"] is (answer.code == 0)
    return answer.code, {check["name"]: check["status"] for check in answer.json["checks"]}


def test_a_healthy_machine_is_told_as_such(cli: Cli) -> None:
    assert status(cli) == (0, dict.fromkeys(("python", "penstock", "clock", "options", "store"), "ok"))
    assert [line.split()[:2] for line in cli("doctor").out.splitlines()] == [
        ["ok", name] for name in ("python", "penstock", "clock", "options", "store")
    ]


def test_a_missing_or_unknown_store_is_a_missing_part(cli: Cli) -> None:
    cli.opener = open_store
    code, checks = status(cli)
    assert (code, checks["store"]) == (3, "fail")
    assert "no store: give --store URL, or set PENSTOCK_STORE" in cli("doctor").out
    assert status(cli, "--store", "ftp://ada:s3cret@host/")[0] == 3
    assert "s3cret" not in cli("doctor", "--store", "ftp://ada:s3cret@host/").out
    assert status(cli, "--store", "memory://")[0] == 0


def test_an_option_that_cannot_be_used_is_told_beside_the_rest(cli: Cli) -> None:
    code, checks = status(cli, "--sweep-s", "never")
    assert (code, checks["options"], checks["python"]) == (3, "fail", "ok")


def test_a_misspelt_variable_is_told_with_what_was_meant(cli: Cli) -> None:
    cli.environ |= {"PENSTOCK_STOER": "memory://", "PENSTOCK_COLOUR": "red"}
    screen = " ".join(cli("doctor").out.split())
    assert (
        "warn options PENSTOCK_STOER is no variable of penstock and does nothing; did you mean PENSTOCK_STORE?"
        in screen
    )
    assert "PENSTOCK_COLOUR is no variable of penstock" in screen
    assert cli("doctor").code == 0


@pytest.mark.parametrize(("error", "code"), [(Unavailable("away"), 4), (Corrupt("bad bytes"), 5)])
def test_a_store_that_does_not_work_is_told_with_its_code(cli: Cli, error: Exception, code: int) -> None:
    @asynccontextmanager
    async def failing(_: Options) -> AsyncIterator[Client]:
        raise error
        yield  # makes it a generator

    cli.opener = failing
    assert status(cli) == (code, {**dict.fromkeys(("python", "penstock", "clock", "options"), "ok"), "store": "fail"})


def test_a_store_that_does_not_answer_is_unavailable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PATIENCE_S", 0.01)

    @asynccontextmanager
    async def silent(options: Options) -> AsyncIterator[Client]:
        await asyncio.Event().wait()
        async with cli.open(options) as client:
            yield client

    cli.opener = silent
    assert status(cli)[0] == 4


def test_a_clock_that_is_years_behind_is_a_failure(cli: Cli) -> None:
    cli.clock = FakeClock(start=datetime(1970, 1, 1, tzinfo=UTC))
    code, checks = status(cli)
    assert (code, checks["clock"]) == (3, "fail")


def test_a_paused_queue_with_jobs_and_a_nearly_full_one_are_told(cli: Cli) -> None:
    cli.enqueue()
    cli.ok("queues", "set", "mail", "paused=true", "max_depth=1")
    screen = " ".join(cli("doctor").out.split())
    assert "warn queue mail is paused while 1 job could run; penstock queues resume mail" in screen
    assert "warn queue mail holds 1 of at most 1 jobs" in screen
