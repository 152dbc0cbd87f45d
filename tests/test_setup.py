"""scripts/setup, run for real in a copy of the project whose PATH holds stand-ins for python3, apt-get, id and sudo."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parent.parent

# What the script may use besides its stand-ins; all of it is essential on Debian.
TOOLS = (
    *("cat", "cp", "cut", "date", "df", "dirname", "du", "env", "flock", "grep", "mkdir", "paste", "rm"),
    *("sed", "sha256sum", "stat", "tail", "tr", "true"),
)

# Writes down how it was called, and leaves the files that the real one would.
PYTHON = """#!/bin/sh
echo "python3 $*" >>"$CALLS"
case "$*" in
*version_info*) echo "${VERSION:-3.12.1} $0" ;;
*ensurepip*) [ -z "${NO_ENSUREPIP:-}" ] ;;
"-m venv "*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*"pip install"*" -e ."*)
    [ -z "${PIP_FAILS:-}" ] || exit 1
    for made in penstock pytest; do cp "$0" ".venv/bin/$made"; done ;;
esac
"""
APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$CALLS"
case "$*" in
*" update") : >"$LISTS" ;;
*" install "*)
    [ -f "$LISTS" ] || exit 100
    for made in java ps; do cp "$0" "${0%/*}/$made"; done ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """A copy of the project on a machine that has only what is in `bin`."""

    project: Path
    bin: Path

    def setup(self, stage: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script as a user would, and wait for it."""
        own = {"PATH": str(self.bin), "CALLS": str(self.calls_file), "LISTS": str(self.bin.parent / "lists")}
        return subprocess.run(  # noqa: S603 - our own script, in a directory of our own
            [self.project / "scripts/setup", stage],
            env=own | environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def calls_file(self) -> Path:
        return self.bin.parent / "calls"

    def calls(self, wanted: str) -> list[str]:
        """The calls so far that contain the words."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [line for line in lines if wanted in line]

    def stamps(self) -> dict[str, tuple[str, int]]:
        """What each stamp holds and when it was written."""
        found = sorted(self.project.glob(".state/setup-*"))
        return {path.name: (path.read_text(), path.stat().st_mtime_ns) for path in found}

    def command(self, name: str, text: str = "#!/bin/sh\n") -> None:
        """Put a command of this name on the PATH, in place of any other."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    """A machine with python3 and apt-get, whose user is root, in a directory with a space in its name."""
    machine = Machine(project=tmp_path / "my project", bin=tmp_path / "bin")
    (machine.project / "scripts").mkdir(parents=True)
    machine.bin.mkdir()
    for name in ("scripts/setup", "pyproject.toml", "constraints.txt"):
        shutil.copy(PROJECT / name, machine.project / name)
    for tool in TOOLS:
        real = shutil.which(tool)
        assert real, f"this machine has no {tool}"
        # Not a link: a stand-in that is later written to this name would be written to the real tool.
        machine.command(tool, f'#!/bin/sh\nexec {real} "$@"\n')
    machine.command("python3", PYTHON)
    machine.command("apt-get", APT_GET)
    machine.command("update-ca-certificates")  # the script looks into /usr/sbin too, where this machine may have it
    machine.command("id", "#!/bin/sh\necho 0\n")
    machine.command("sudo", "#!/bin/sh\nexit 1\n")
    return machine


@pytest.fixture
def ready(bare: Machine) -> Machine:
    """The same with every system command in place."""
    bare.command("java")
    bare.command("ps")
    return bare


def test_a_second_run_is_up_to_date_and_leaves_the_stamps_alone(ready: Machine) -> None:
    assert ready.setup("test").returncode == 0
    stamps, installs = ready.stamps(), ready.calls("pip install")
    again = ready.setup("test")
    assert again.returncode == 0
    assert again.stdout == "setup: run: up to date\nsetup: test: up to date\n"
    assert list(stamps) == ["setup-run", "setup-test"]
    assert (ready.stamps(), ready.calls("pip install")) == (stamps, installs)


def test_the_test_stage_adds_to_the_environment_that_the_run_stage_made(ready: Machine) -> None:
    ready.setup("run")
    assert list(ready.stamps()) == ["setup-run"]
    ready.setup("test")
    assert list(ready.stamps()) == ["setup-run", "setup-test"]
    assert len(ready.calls("-m venv")) == 1


def _edit_pins(machine: Machine) -> None:
    with (machine.project / "constraints.txt").open("a") as pins:
        pins.write("another==1\n")


def _lose_the_command(machine: Machine) -> None:
    (machine.project / ".venv/bin/penstock").unlink()


def _change_the_stamp(machine: Machine) -> None:
    (machine.project / ".state/setup-run").write_text("of other inputs\n")


@pytest.mark.parametrize("change", [_edit_pins, _lose_the_command, _change_the_stamp])
def test_other_inputs_or_a_damaged_environment_are_built_from_nothing(
    ready: Machine, change: Callable[[Machine], None]
) -> None:
    ready.setup("test")
    (ready.project / ".venv/left-over").touch()
    change(ready)
    assert "up to date" not in ready.setup("test").stdout
    assert len(ready.calls("-m venv")) == 2
    assert not (ready.project / ".venv/left-over").exists()
    assert "up to date" in ready.setup("test").stdout


def test_another_python_makes_another_environment(ready: Machine) -> None:
    ready.setup("run")
    ready.setup("run", VERSION="3.13.0")
    assert len(ready.calls("-m venv")) == 2


def test_a_project_that_was_moved_is_set_up_again(ready: Machine) -> None:
    ready.setup("run")
    moved = Machine(project=ready.project.rename(ready.project.with_name("elsewhere")), bin=ready.bin)
    assert "up to date" not in moved.setup("run").stdout


def test_a_stage_that_fails_half_way_leaves_no_stamp_and_is_built_again(ready: Machine) -> None:
    ready.setup("run")
    failed = ready.setup("test", PIP_FAILS="1")
    assert failed.returncode == 1
    assert ready.stamps() == {}
    assert ready.setup("test").returncode == 0
    assert len(ready.calls("-m venv")) == 2


def test_root_installs_what_is_missing_after_one_look_at_the_package_lists(bare: Machine) -> None:
    done = bare.setup("run")
    assert done.returncode == 0, done.stderr
    install, update, again = bare.calls("apt-get")
    assert update.endswith(" update")
    assert install == again
    assert again.endswith("--no-install-recommends default-jre-headless procps")


def test_a_command_that_is_there_is_not_installed(bare: Machine) -> None:
    bare.command("java")
    bare.setup("run")
    assert bare.calls("--no-install-recommends procps")
    assert not bare.calls("default-jre-headless")


def test_a_python_that_cannot_make_environments_gets_the_package_for_it(ready: Machine) -> None:
    refused = ready.setup("run", NO_ENSUREPIP="1")
    assert refused.returncode == 1
    assert ready.calls("install -y --no-install-recommends python3-venv")
    assert not ready.calls("-m venv")


def test_adding_to_an_environment_takes_no_package_for_making_one(ready: Machine) -> None:
    ready.setup("run")
    assert ready.setup("test", NO_ENSUREPIP="1").returncode == 0
    assert not ready.calls("apt-get")


def test_a_user_without_rights_gets_the_wheels_and_the_line_for_the_administrator(bare: Machine) -> None:
    bare.command("id", "#!/bin/sh\necho 1000\n")
    refused = bare.setup("run")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].strip() == (
        "apt-get update && apt-get install -y --no-install-recommends default-jre-headless procps"
    )
    assert not bare.calls("apt-get")
    assert list(bare.stamps()) == ["setup-run"]


def test_a_user_who_may_become_root_without_a_password_installs_as_root(bare: Machine) -> None:
    bare.command("id", "#!/bin/sh\necho 1000\n")
    bare.command("sudo", '#!/bin/sh\necho "sudo $*" >>"$CALLS"\n[ "$1" = -n ] && shift && exec "$@"\n')
    assert bare.setup("run").returncode == 0
    assert bare.calls("sudo -n env DEBIAN_FRONTEND=noninteractive")


def test_a_user_needs_no_rights_where_nothing_is_missing(ready: Machine) -> None:
    ready.command("id", "#!/bin/sh\necho 1000\n")
    assert ready.setup("test").returncode == 0


@pytest.mark.parametrize("version", ["2.7.18", "3.9.2", "3.10.13"])
def test_an_older_python_is_refused_in_one_line(ready: Machine, version: str) -> None:
    refused = ready.setup("run", VERSION=version)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"setup: python3 is Python {version}, and Penstock needs 3.11 to 3.13: name one with PYTHON=/path/to/python\n"
    )


def test_a_full_disk_is_noticed_before_anything_is_made(bare: Machine) -> None:
    bare.command("df", "#!/bin/sh\necho header\necho /dev/some disk 1000 900 102400 90% /\n")
    refused = bare.setup("run")
    assert refused.returncode == 1
    assert re.search(r"needs \d+ MB in /.*, where 100 MB are free", refused.stderr)
    assert not bare.calls("apt-get")


def test_the_environment_of_the_caller_is_not_used(ready: Machine) -> None:
    other = ready.bin.parent / "other/bin"
    other.mkdir(parents=True)
    (other / "python3").write_text("#!/bin/sh\nexit 1\n")
    (other / "python3").chmod(0o755)
    done = ready.setup("run", VIRTUAL_ENV=str(other.parent), PATH=f"{other}:{ready.bin}", HOME="")
    assert done.returncode == 0, done.stderr


def test_the_pins_are_exact_and_name_no_place() -> None:
    assert "://" not in (PROJECT / "constraints.txt").read_text()
    for line in _pins():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*(; python_version .*)?", line)


def test_every_package_that_setup_installs_is_pinned() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    direct = [*project["dependencies"], *project["optional-dependencies"]["dev"], "hatchling", "editables"]
    pinned = {canonicalize_name(line.partition("==")[0]) for line in _pins()}
    assert _with_their_needs(direct) - pinned == set()


def _pins() -> list[str]:
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _with_their_needs(lines: list[str]) -> set[str]:
    """The packages that these requirements name and, at any depth, those that the installed ones require here."""
    seen: set[str] = set()
    while lines:
        needs = [Requirement(line) for line in lines]
        here = {
            canonicalize_name(need.name) for need in needs if not need.marker or need.marker.evaluate({"extra": ""})
        }
        lines = [line for name in here - seen for line in metadata.requires(name) or []]
        seen |= here
    return seen
