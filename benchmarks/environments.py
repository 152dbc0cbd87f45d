"""The environments the legs run in: one per queue, made once, on the same interpreter, so that only the queue differs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
KEPT: Final = ROOT / ".state" / "bench"
# jqueue wants 3.12 or newer.
_INTERPRETERS: Final = ("python3.13", "python3.12")


def interpreter() -> str:
    """A Python that both can run on."""
    for name in (os.environ.get("BENCH_PYTHON", ""), *_INTERPRETERS):
        found = shutil.which(name)
        if (
            found
            and subprocess.run([found, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0
        ):
            return found
    sys.exit(f"the peer needs one of {', '.join(_INTERPRETERS)} with venv on PATH; or BENCH_PYTHON=/path/to/one")


def penstock() -> Path:
    """The Python of an environment with this checkout."""
    return _environment("penstock", "-e", str(ROOT), "uvloop==0.23.0", "-c", str(ROOT / "constraints.txt"))


def jqueue() -> Path:
    """The Python of an environment with the peer."""
    return _environment("jqueue", "jqueue==1.0.0")


def _environment(name: str, *packages: str) -> Path:
    home = KEPT / name
    stamp, wanted = home / "stamp", "\n".join((interpreter(), *packages))
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([interpreter(), "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin/pip"), "install", "--quiet", *packages], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return home / "bin" / "python"
