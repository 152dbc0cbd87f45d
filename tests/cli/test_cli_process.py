"""The command line as a process of its own, and the demo."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.demo import steps

from .harness import Cli

PENSTOCK = (sys.executable, "-m", "penstock")


def penstock(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return subprocess.run(  # noqa: S603 our own command
        [*PENSTOCK, *args],
        env={**own, "COLUMNS": "80", **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_bare_penstock_says_what_to_do_next() -> None:
    done = penstock()
    assert (done.returncode, done.stderr) == (0, "")
    assert "penstock demo" in done.stdout
    assert len(done.stdout.splitlines()) <= 12
    assert json.loads(penstock("--json").stdout)["next"][0] == "penstock demo"


def test_the_version_is_told() -> None:
    assert penstock("--version").stdout.startswith("penstock 0.")
    assert set(json.loads(penstock("--version", "--json").stdout)) == {"version"}


@pytest.mark.parametrize(
    "args",
    [
        *[(), ("enqueue",), ("expire",), ("config",), ("doctor",), ("demo",)],
        *[("jobs",), *(("jobs", verb) for verb in ("list", "show", "cancel", "requeue", "purge"))],
        *[("queues",), *(("queues", verb) for verb in ("list", "show", "set", "pause", "resume"))],
    ],
)
def test_every_command_has_help_with_the_options_of_every_command(cli: Cli, args: tuple[str, ...]) -> None:
    answer = cli(*args, "--help")
    assert (answer.code, answer.err) == (0, "")
    for flag in ("--json", "--store", "--tenant", "--actor", "--sweep-s"):
        assert flag in answer.out


def test_the_entry_point_runs_a_command_and_exits_with_its_code() -> None:
    done = penstock("jobs", "list", "--store", "memory://", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"jobs": [], "cursor": None})
    done = penstock("jobs", "list", PENSTOCK_STORE="memory://", PENSTOCK_TENANT="a/b")
    assert done.returncode == 1
    assert done.stderr.startswith("error: --tenant (PENSTOCK_TENANT) must be")
    done = penstock("jobs", "list")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_terminal_that_lacks_a_letter_is_no_reason_to_fail() -> None:
    command = ("enqueue", "mail", '"\u2192"', "--store", "memory://")
    done = penstock("config", "--actor", "\u2192", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "actor         ?" in done.stdout
    # JSON is UTF-8 all the same.
    assert json.loads(penstock(*command, "--json", PYTHONIOENCODING="ascii").stdout)["payload"] == "\u2192"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m penstock demo | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602 a pipe is what is tested
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


@pytest.mark.parametrize("args", [("config",), ("config", "--json"), ("demo",), ()])
def test_a_full_disk_is_told_in_one_line(args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PENSTOCK, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 our own command
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "input or output failed (No space left on device)" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_reason_to_fail(closed: str) -> None:
    command = f"{sys.executable} -m penstock enqueue mail 1 --store memory:// {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602 the shell closes it
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_a_command_quietly_with_130() -> None:
    process = subprocess.Popen(  # noqa: S603 our own command
        [*PENSTOCK, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    # The demo is under way, and will wait for a lease to expire.
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("penstock jobs list --state ", ["queued", "leased", "succeeded", "dead", "cancelled"]),
        ("penstock jobs list --reason b", ["bad_payload"]),
        ("penstock queues set mail paus", ["paused="]),
        ("penstock jo", ["jobs"]),
    ],
)
def test_a_shell_completes_states_reasons_settings_and_commands(words: str, completed: list[str]) -> None:
    place = str(len(words.split()) - (not words.endswith(" ")))
    done = penstock(_PENSTOCK_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert done.stdout.split() == completed


def test_completion_can_be_installed() -> None:
    assert "--install-completion" in penstock("--help").stdout


def test_help_imports_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys\nfrom penstock.cli import run\nfrom penstock.cli.session import Edge\n"
        "run(['--help'], Edge.of_process())\nprint('modules', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 our own code
    modules = set(done.stdout.splitlines()[-1].split())
    assert "penstock.cli.app" in modules
    unwanted = {"pydantic", "importlib.metadata", "rich.progress", "penstock.cli.demo", "penstock.cli.story"}
    assert not modules & unwanted


def test_the_demo_ends_by_itself_and_tells_the_whole_story() -> None:
    done = penstock("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for told in (
        "again.id == hello.id is True",
        "held by w1: attempt 1 is at 50%",
        "succeeded with {'sent': True}",
        "attempt 2: dead, because attempts_exhausted",
        "requeued with attempt 0 of 2, then succeeded",
        "w1's lease expired",
        "w1's ack is refused",
        "reason=lease_expired",
        "SUCCEEDED",
    ):
        assert told in done.stdout
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_demo_can_be_told_as_json(cli: Cli) -> None:
    told = cli.ok("demo")["steps"]
    assert [step["title"] for step in told] == [step.title for step in steps()]
    assert told[-2]["history"][-1]["event"] == "succeeded"
    assert [queue["queue"] for queue in told[-1]["queues"]] == ["audit", "email", "reports"]


def test_the_lines_that_the_demo_shows_run_as_they_stand(tmp_path: Path) -> None:
    lines = [f"    {line}" for step in steps() for line in step.code.splitlines()]
    shown = ["import penstock", 'with penstock.connect_sync("memory://", actor="demo") as queue:', *lines]
    (tmp_path / "typed.py").write_text("\n".join([*shown, "print(late)"]))
    done = subprocess.run(  # noqa: S603 our own lines
        [sys.executable, tmp_path / "typed.py"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.startswith("is refused"), done.stderr) == (True, "")
