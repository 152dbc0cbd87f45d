"""``penstock verify`` on directories: clean, broken, damaged and empty ones."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import penstock
from penstock.domain.events import AnyEvent, Leased, Record, Succeeded
from penstock.stores.log import record as records

from .harness import Cli


def write(root: Path, *, jobs: int = 2) -> None:
    """Jobs that are enqueued, leased and acked, one by one."""

    async def work() -> None:
        async with penstock.connect(root.as_uri()) as queue:
            for number in range(jobs):
                await queue.enqueue("mail", number)
            for _ in range(jobs):
                [lease] = await queue.lease("mail", worker="w1")
                await queue.ack(lease)

    asyncio.run(work())


def log_of(root: Path) -> list[tuple[records.Header, Record]]:
    paths = sorted((root / "log").iterdir())
    return [records.decode(path.read_bytes(), seq) for seq, path in enumerate(paths, 1)]


def rewrite(root: Path, changed: Callable[[AnyEvent], AnyEvent | None]) -> None:
    """Have every event say something else, or nothing; the bytes are as a process would have written them."""
    for header, record in log_of(root)[1:]:
        events = tuple(event for event in map(changed, record.events) if event is not None)
        put(root, replace(record, events=events), header.commit, header.prev)


def put(root: Path, record: Record, commit: str, prev: str) -> None:
    (root / records.key(record.seq)).write_bytes(records.encode(record, commit=commit, prev=prev))


def add(root: Path, *events: AnyEvent) -> None:
    """A record that the queue did not make."""
    header, last = log_of(root)[-1]
    put(root, Record(last.seq + 1, last.at, events), "f" * 32, header.commit)


def verify(cli: Cli, root: Path, *args: str) -> Any:
    return cli("verify", "--store", root.as_uri(), *args)


def rules(findings: Sequence[Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["seq"]) for finding in findings]


def test_a_clean_log_is_said_to_be_so(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    answer = verify(cli, tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "7 records, 6 events, 2 jobs of which 2 finished, in 0.0 s: nothing lost, nothing doubled\n"


def test_the_same_as_json(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    assert verify(cli, tmp_path, "--json").json == {
        "ok": True,
        "records": 7,
        "events": 6,
        "jobs": 2,
        "finished": 2,
        "seconds": 0.0,
        "rules": {},
        "findings": [],
    }


def test_verify_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    verify(cli, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_broken_promise_is_named_by_rule_seq_and_job(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    rewrite(tmp_path, lambda event: replace(event, lease_no=2) if isinstance(event, Leased) else event)
    answer = verify(cli, tmp_path)
    assert answer.code == 5
    heading, first, *_ = answer.out.splitlines()
    assert heading.split() == ["RULE", "SEQ", "JOB", "WHAT"]
    assert first.split()[:2] == ["lease_no", "4"]
    assert answer.out.endswith("2 jobs of which 2 finished, in 0.0 s: 4 findings\n")
    assert "nothing lost" not in answer.out
    document = verify(cli, tmp_path, "--json").json
    assert (document["ok"], document["rules"]) == (False, {"lease_no": 2, "stale": 2})
    job_id = log_of(tmp_path)[1][1].events[0].id  # type: ignore[union-attr] # it was enqueued there
    assert document["findings"][0] == {
        "rule": "lease_no",
        "seq": 4,
        "line": 1,
        "job_id": job_id,
        "message": "lease numbers rise by one: lease_no=2 before=0",
    }


def test_of_a_log_that_no_process_can_open_it_is_said_why(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    acked = log_of(tmp_path)[-1][1].events[0]
    assert isinstance(acked, Succeeded)
    add(tmp_path, replace(acked, rev=4, before=7))
    answer = verify(cli, tmp_path, "--json")
    assert answer.code == 5
    assert rules(answer.json["findings"]) == [("completion", 8), ("corrupt", 0)]
    assert records.key(8) in answer.json["findings"][1]["message"]


def test_a_record_whose_time_has_no_offset_is_named(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    header, record = log_of(tmp_path)[2]
    put(tmp_path, replace(record, at=record.at.replace(tzinfo=None)), header.commit, header.prev)
    answer = verify(cli, tmp_path, "--json")
    assert answer.code == 5
    assert ("corrupt", 3) in rules(answer.json["findings"])


def test_damaged_bytes_are_named(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    damaged = tmp_path / records.key(3)
    damaged.write_bytes(damaged.read_bytes()[:-5])
    answer = verify(cli, tmp_path)
    assert answer.code == 5
    assert answer.out.count(records.key(3)) == 1
    assert "2 records, 1 event, 1 job of which 0 finished" in answer.out


def test_a_missing_record_is_named(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / records.key(3)).unlink()
    answer = verify(cli, tmp_path, "--json")
    assert answer.code == 5
    assert (answer.json["ok"], rules(answer.json["findings"])) == (False, [("corrupt", 3)])


def test_many_findings_are_counted_and_the_first_are_shown(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, jobs=101)
    rewrite(tmp_path, lambda event: replace(event, index=1) if isinstance(event, Leased) else event)
    answer = verify(cli, tmp_path)
    assert answer.code == 5
    assert "and 1 more; by rule: call 101" in answer.out
    assert len(verify(cli, tmp_path, "--json").json["findings"]) == 100


@pytest.mark.parametrize("name", ["", "missing"])
def test_where_there_is_no_queue_nothing_is_found_or_made(cli: Cli, tmp_path: Path, name: str) -> None:
    answer = verify(cli, tmp_path / name)
    assert answer.code == 3
    assert "there is no queue here" in answer.line
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_its_beginning_is_corrupt(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / records.key(1)).unlink()
    answer = verify(cli, tmp_path, "--json")
    assert (answer.code, answer.error["code"], answer.error["object"]) == (5, "corrupt", records.key(1))


def test_a_store_in_memory_has_nothing_to_verify(cli: Cli) -> None:
    answer = cli("verify", "--store", "memory://")
    assert answer.code == 1
    assert "memory:// keeps its log in the process that uses it" in answer.line


def test_a_store_must_be_named(cli: Cli) -> None:
    assert cli("verify").code == 2


def test_an_unknown_store_is_refused_without_its_password(cli: Cli) -> None:
    answer = cli("verify", "--store", "ftp://ada:s3cret@host/")
    assert answer.code == 1
    assert "s3cret" not in answer.err
