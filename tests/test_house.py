"""House rules that no linter knows: sizes, names, reasons beside silenced lints, and what we never claim."""

import ast
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "scripts")
# Measured and not written: as long as there is something to say.
MADE = PROJECT / "benchmarks" / "results"

MOST_LINES_OF_A_FUNCTION = 50
MOST_LINES_OF_A_FILE = 500

# Names that say where something was put and not what it is.
NOT_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}

DIRECTIVE = re.compile(r"#\s*(?:noqa(?::\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?|type:\s*ignore(?:\[[^\]]*\])?)")
WORD = re.compile(r"[A-Za-z]{2}")

# No queue delivers or runs a job just once whatever happens; one that says so hides what it does instead.
NEVER_WRITTEN = re.compile(
    r"exactly-once|exactly once (?:delivery|execution|processing|semantics)|(?:delivered|executed|processed) exactly once",
    re.IGNORECASE,
)
NEGATED = re.compile(r"\b(?:never|not|no)\s+[\"'`]$", re.IGNORECASE)


def _files(suffix: str = "") -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((PROJECT / folder).rglob(f"*{suffix}")):
            if path.is_file() and "__pycache__" not in path.parts and MADE not in path.parents:
                yield path


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(PROJECT)}:{line}"


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{_place(path, node.lineno)} {node.name} has {lines} lines"
        for path in _files(".py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_no_file_is_longer_than_500_lines() -> None:
    lines = {str(path.relative_to(PROJECT)): path.read_bytes().count(b"\n") for path in _files()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES_OF_A_FILE} == {}


def test_a_file_is_named_for_what_it_is() -> None:
    paths = [path.relative_to(PROJECT) for path in _files()]
    assert [str(path) for path in paths if NOT_NAMES & {part.partition(".")[0] for part in path.parts}] == []


def _without_reason(comment: str) -> bool:
    *_, last = [0, *(found.end() for found in DIRECTIVE.finditer(comment))]
    return last > 0 and WORD.search(comment[last:]) is None


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def test_a_silenced_lint_has_its_reason_beside_it() -> None:
    comments = ((path, line, comment) for path in _files(".py") for line, comment in _comments(path))
    assert [f"{_place(path, line)} {comment}" for path, line, comment in comments if _without_reason(comment)] == []


@pytest.mark.parametrize(
    ("comment", "lacks"),
    [
        ("# noqa", True),
        ("# noqa: S603", True),
        ("# noqa: S603, PLR0913", True),
        ("# noqa: S603 our own script", False),
        ("# noqa: S603, S607 - our own script", False),
        ("# type: ignore[misc]", True),
        ("# type: ignore[misc] # the mistake under test", False),
        ("# type: ignore[misc] # noqa: S603", True),
        ("# type: ignore[misc] # noqa: S603 our own script", False),
        ("# a comment like any other", False),
    ],
)
def test_that_would_be_noticed(comment: str, *, lacks: bool) -> None:
    assert _without_reason(comment) is lacks


def _boasts(text: str) -> list[str]:
    """What is claimed of those things; to say in quotes that we do not claim them is allowed."""
    told = " ".join(text.split())
    return [found[0] for found in NEVER_WRITTEN.finditer(told) if not NEGATED.search(told[: found.start()])]


def test_nothing_is_claimed_that_no_queue_can_do() -> None:
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md"), *(PROJECT / "src").rglob("*.py")]
    assert {str(page): found for page in pages if (found := _boasts(page.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("with exactly-once delivery", 1),
        ("Exactly\nonce delivery", 1),
        ("every job is executed exactly once", 1),
        ('we write "at least once", never "exactly-once"', 0),
        ("one accepted completion, at least once", 0),
    ],
)
def test_a_claim_would_be_noticed(text: str, count: int) -> None:
    assert len(_boasts(text)) == count


def test_every_folder_has_its_place_in_the_import_arrows() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = [layer for contract in contracts if contract["type"] == "layers" for layer in contract["layers"]]
    named = {module.strip() for layer in layers for module in re.split(r"[|:]", layer)}
    folders = {f"penstock.{init.parent.name}" for init in (PROJECT / "src" / "penstock").glob("*/__init__.py")}
    assert folders - named == set()
