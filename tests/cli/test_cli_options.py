"""The table of options: what beats what, what is refused, what is masked, and its page."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import BrokerOptions, Invalid
from penstock.options import TABLE, Kind, masked, read, unknown

from .harness import Cli

PROJECT = Path(__file__).resolve().parents[2]


def test_a_flag_beats_a_variable_beats_the_default() -> None:
    environ = {"PENSTOCK_SWEEP_S": "2.5", "PENSTOCK_POLL_S": "3", "PENSTOCK_TENANT": ""}
    options = read({"sweep_s": "0.5", "poll_s": None}, environ)
    assert (options.sweep_s, options.came_from["sweep_s"]) == (0.5, "flag")
    assert (options.poll_s, options.came_from["poll_s"]) == (3.0, "PENSTOCK_POLL_S")
    assert (options.tenant, options.came_from["tenant"]) == ("default", "default")


def test_without_flags_and_variables_the_broker_gets_its_own_defaults() -> None:
    assert read({}, {}).broker == BrokerOptions()


def test_the_actor_is_the_login_name_unless_one_is_given() -> None:
    assert read({}, {"USER": "ada"}).actor == "ada"
    assert read({}, {"LOGNAME": "eve", "USER": "ada"}).actor == "eve"
    assert read({"actor": "bot"}, {"USER": "ada"}).actor == "bot"
    assert read({}, {}).actor


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("most_waiting", value) for value in ("0", "1.5", "many", "1000001", "")],
        *[("sweep_s", value) for value in ("0", "-1", "nan", "inf", "61", "1 s")],
        *[("tenant", value) for value in ("a/b", "", "x" * 129)],
        *[("actor", value) for value in ("", "x" * 257)],
    ],
)
def test_a_value_out_of_range_is_refused_naming_flag_variable_value_and_range(name: str, value: str) -> None:
    [option] = [option for option in TABLE if option.name == name]
    with pytest.raises(Invalid) as refused:
        read({name: value}, {})
    told = str(refused.value)
    assert option.flag in told
    assert option.variable in told
    assert option.range in told
    assert value[:40] in told


def test_a_variable_out_of_range_is_refused_as_a_flag_is() -> None:
    with pytest.raises(Invalid, match=r"--poll-s \(PENSTOCK_POLL_S\) must be a number from 0\.05 to 60"):
        read({}, {"PENSTOCK_POLL_S": "soon"})


def test_every_default_is_within_its_own_range() -> None:
    for option in TABLE:
        if option.kind in {Kind.NUMBER, Kind.WHOLE}:
            read({option.name: str(option.default)}, {})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://", "memory://"),
        ("postgresql://ada:s3cret@db/jobs", "postgresql://***@db/jobs"),
        ("postgresql://ada:s3@c/r?et@db/jobs", "postgresql://***@db/jobs"),
        ("postgresql://db/jobs?user=ada&password=s3cret&x=1", "postgresql://db/jobs?user=ada&password=***&x=1"),
        ("s3://bucket/jobs?access_key_id=s3cret&layout=single", "s3://bucket/jobs?access_key_id=***&layout=single"),
        ("az://bucket/jobs?SIG=s3cret", "az://bucket/jobs?SIG=***"),
        ("file:///home/me@work/jobs", "file:///home/me@work/jobs"),
        ("ada:s3cret@db", "***"),
    ],
)
def test_what_could_be_a_password_in_a_url_is_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_a_misspelt_variable_is_noticed() -> None:
    assert unknown({"PENSTOCK_STOER": "x", "PENSTOCK_STORE": "y", "PATH": "z"}) == ["PENSTOCK_STOER"]


def test_the_page_of_options_is_fresh() -> None:
    script = PROJECT / "scripts" / "options_page.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)  # noqa: S603 our own script
    assert (checked.returncode, checked.stderr) == (0, "")


def test_an_option_may_stand_before_or_behind_the_command_and_the_last_one_wins(cli: Cli) -> None:
    def tenant(*args: str) -> str:
        return str({option["name"]: option["value"] for option in cli.ok(*args)["options"]}["tenant"])

    assert tenant("config", "--tenant", "a") == "a"
    assert tenant("--tenant", "b", "config") == "b"
    assert tenant("--tenant", "b", "config", "--tenant", "a") == "a"


def test_an_option_may_stand_between_a_group_and_its_command(cli: Cli) -> None:
    cli.enqueue()
    assert len(cli.ok("jobs", "--tenant", "default", "list")["jobs"]) == 1
    assert cli.ok("jobs", "--tenant", "other", "list")["jobs"] == []


def test_the_actor_stands_in_the_history(cli: Cli) -> None:
    cli.environ["PENSTOCK_ACTOR"] = "grace"
    job_id = cli.ok("enqueue", "mail")["id"]
    assert cli.ok("jobs", "show", job_id, "--history")["history"][0]["actor"] == "grace"
