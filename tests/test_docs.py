"""What the pages say is so: named tests exist, links lead somewhere, tables are fresh, and the README runs."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import penstock

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
PAGES = (README, PROJECT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
# The pages on which each promise is followed by the tests behind it.
PROVED = (DOCS / "coverage.md", DOCS / "guarantees.md")

NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ISSUE = re.compile(r"\b[1-9] of 9\b")
# What stands on a page until somebody has filled the place.
UNFILLED = re.compile(r"TEST\?|\bRESULTS\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

WORDS = (
    *("job", "queue", "kind", "payload", "attempt", "lease", "worker", "handler", "producer", "store", "log", "broker"),
    *("commit", "batch", "record", "seq", "setting", "option", "outcome", "result", "dead", "finished", "priority"),
)


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _rows(page: Path) -> Iterator[list[str]]:
    """The lines of the page's tables, without their heads."""
    lines = [line for line in _text(page).splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def _blocks(language: str) -> list[str]:
    return [code for named, code in FENCED.findall(_text(README)) if named == language]


@cache
def _tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_bytes())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("page", PROVED, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = NAMED_TEST.findall(_text(page))
    assert len(named) == _text(page).count("::"), "a test is named as `path::test_name`"
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (PROJECT / path).is_file() or name not in _tests(PROJECT / path)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PROVED, ids=lambda page: page.name)
def test_every_line_names_its_test_or_the_issue_that_will_bring_one(page: Path) -> None:
    rows = list(_rows(page))
    assert len(rows) > 10
    assert [row for row in rows if not (NAMED_TEST.search(row[-1]) or ISSUE.search(row[-1]))] == []


def test_no_place_is_left_to_be_filled() -> None:
    assert {page.name: left for page in PAGES if (left := UNFILLED.findall(_text(page)))} == {}


@cache
def _anchors(page: Path) -> frozenset[str]:
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(_text(page)))
    return frozenset(heading.replace(" ", "-") for heading in headings)


def _leads_nowhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or bool(anchor and anchor not in _anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(FENCED.sub("", _text(page))) if "://" not in link]
    assert [link for link in links if _leads_nowhere(page, link)] == []


@pytest.mark.parametrize("script", ["protocol_table.py", "options_page.py"])
def test_a_table_that_is_made_is_fresh(script: str) -> None:
    done = _run(sys.executable, str(PROJECT / "scripts" / script), "--check", cwd=PROJECT)
    assert (done.returncode, done.stderr) == (0, "")


def _run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    # The commands of this environment, as somebody who has installed penstock has them.
    environ = {
        **clean,
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
        "PYTHONWARNINGS": "error",
    }
    return subprocess.run(  # noqa: S603 our own scripts, and what our own page shows
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("code", _blocks("python"))
def test_the_python_in_the_readme_runs_as_it_stands(tmp_path: Path, code: str) -> None:
    (tmp_path / "typed.py").write_text(code, encoding="utf-8")
    done = _run(sys.executable, "typed.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for shown in re.findall(r"^ *print\(.*\)  +# (.+)$", code, re.MULTILINE):
        assert shown in done.stdout.splitlines()


def test_the_readme_has_python_to_run() -> None:
    assert len(_blocks("python")) > 0


def test_the_commands_in_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    [commands] = [block for block in _blocks("") if "penstock demo" in block]
    done = _run("sh", "-e", "-c", commands, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr


def test_the_readme_uses_names_that_penstock_exports() -> None:
    nodes = [node for code in _blocks("python") for node in ast.walk(ast.parse(code))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "penstock"]
    imported = {alias.name for node in imports for alias in node.names}
    # Also in a sentence; what comes from a module within would be no name of ours either.
    used = imported | set(re.findall(r"\bpenstock\.([A-Za-z]\w*)", _text(README)))
    assert used
    assert used - set(penstock.__all__) == set()


def test_the_glossary_has_the_words_of_the_design() -> None:
    words = {word.strip() for row in _rows(DOCS / "glossary.md") for word in row[0].split(",")}
    assert set(WORDS) - words == set()
