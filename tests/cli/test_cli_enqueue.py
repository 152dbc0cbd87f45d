"""``penstock enqueue``."""

import io
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from .harness import Cli


class Stdin(io.TextIOWrapper):
    """Standard input with something in it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))


def test_a_job_is_accepted_and_its_id_is_told(cli: Cli) -> None:
    answer = cli("enqueue", "mail", '{"to": "bob"}')
    assert answer.code == 0
    [job] = cli.ok("jobs", "list")["jobs"]
    assert answer.out == f"{job['id']} is queued in mail\n"
    assert job["payload"] == {"to": "bob"}


def test_with_json_the_whole_job_is_told(cli: Cli) -> None:
    job = cli.ok("enqueue", "mail", "[1, 2]", "--kind", "send", "--priority", "-5", "--max-attempts", "2")
    assert (job["queue"], job["kind"], job["payload"], job["state"]) == ("mail", "send", [1, 2], "queued")
    assert (job["priority"], job["max_attempts"]) == (-5, 2)


def test_without_a_payload_it_is_null(cli: Cli) -> None:
    assert cli.ok("enqueue", "mail")["payload"] is None


def test_the_payload_can_come_from_stdin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b'{"to": "eve"}'))
    assert cli.ok("enqueue", "mail", "-")["payload"] == {"to": "eve"}


def test_the_payload_can_come_from_a_file_and_be_any_bytes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\xff")
    job = cli.ok("enqueue", "pictures", "--file", str(tmp_path / "cat.png"), "--content-type", "image/png")
    assert job["content_type"] == "image/png"
    assert "payload" not in job
    assert b64decode(job["payload_b64"]) == b"\x89PNG\xff"


def test_a_delay_a_time_and_a_deadline_are_kept(cli: Cli) -> None:
    assert cli.ok("enqueue", "mail", "--delay-s", "60")["run_at"] == "2030-01-01T00:01:00Z"
    at = cli.ok("enqueue", "mail", "--run-at", "2030-01-02T01:00:00+01:00")
    assert at["run_at"] in {"2030-01-02T00:00:00Z", "2030-01-02T01:00:00+01:00"}
    assert cli.ok("enqueue", "mail", "--deadline-s", "60")["deadline_at"] == "2030-01-01T00:01:00Z"
    assert "to run at 2030-01-01 00:01:00Z" in cli("enqueue", "mail", "--delay-s", "60").out


def test_headers_are_kept(cli: Cli) -> None:
    job = cli.ok("enqueue", "mail", "--header", "trace=a=b", "--header", "empty=")
    assert job["headers"] == {"trace": "a=b", "empty": ""}


def test_the_same_key_or_id_again_is_the_same_job(cli: Cli) -> None:
    first = cli.ok("enqueue", "mail", "1", "--key", "k")
    assert cli.ok("enqueue", "mail", " 1 ", "--key", "k")["id"] == first["id"]
    own = cli.clock.job_id()
    assert cli.ok("enqueue", "mail", "--id", own)["id"] == own
    assert cli.ok("enqueue", "mail", "--id", own)["id"] == own


def test_the_same_key_with_another_payload_is_refused(cli: Cli) -> None:
    cli.ok("enqueue", "mail", "1", "--key", "k")
    answer = cli("enqueue", "mail", "2", "--key", "k")
    assert answer.code == 1
    assert "this idempotency key is taken" in answer.line


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("a/b",), 1, "queue must be 1 to 128 of"),
        (("mail", "{to: bob}"), 1, "the payload is no JSON"),
        (("mail", ""), 1, "the payload is no JSON"),
        (("mail", "[" * 65 + "]" * 65), 1, "nested too deeply"),
        (("mail", "[" * 100_000), 1, "nested too deeply"),
        (("mail", f'"{"x" * 20_000_000}"'), 1, "the payload is too large"),
        (("mail", "--run-at", "2030-01-02T00:00:00"), 1, "--run-at has no offset from UTC"),
        (("mail", "--run-at", "2030-01-02"), 1, "--run-at has no offset from UTC"),
        (("mail", "--run-at", "tomorrow"), 1, "--run-at is no time"),
        (("mail", "--run-at", "2030-01-02T00:00:00Z", "--delay-s", "1"), 1, "not both"),
        (("mail", "--delay-s", "-1"), 1, "delay_s must be a number from 0"),
        (("mail", "--delay-s", "nan"), 1, "delay_s must be a number from 0"),
        (("mail", "--delay-s", "soon"), 2, "--delay-s"),
        (("mail", "--priority", "40000"), 1, "priority must be a whole number"),
        (("mail", "--max-attempts", "0"), 1, "max_attempts must be a whole number"),
        (("mail", "--id", "7"), 1, "a job id must be a UUIDv7"),
        (("mail", "--id", "0193a3c0-0000-7000-8000-000000000000"), 1, "the id's time is too far"),
        (("mail", "--key", ""), 1, "idempotency_key must be text"),
        (("mail", "--header", "nothing"), 2, "a header is NAME=VALUE"),
        (("mail", "1", "--file", "/dev/null"), 2, "give PAYLOAD or --file, not both"),
        (("mail", "--file", "/no/such/file"), 1, "the file cannot be read (No such file or directory)"),
        (("mail", "--kind", "a b"), 1, "kind must be 1 to 128 of"),
        ((), 2, "Missing argument"),
    ],
)
def test_a_mistake_gets_one_line_and_nothing_is_enqueued(cli: Cli, args: tuple[str, ...], code: int, told: str) -> None:
    answer = cli("enqueue", *args)
    assert answer.code == code
    assert told in answer.line
    assert cli.ok("jobs", "list")["jobs"] == []


def test_text_that_is_no_unicode_is_refused(cli: Cli) -> None:
    # As Python gives a process the bytes of an argument that are no UTF-8.
    answer = cli("enqueue", "mail", '"\udcff"')
    assert answer.code == 1
    assert "the payload is no JSON" in answer.line


def test_more_than_any_payload_is_not_read_to_its_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.enqueue._MOST_READ", 10)
    monkeypatch.setattr(sys, "stdin", Stdin(b" " * 11))
    answer = cli("enqueue", "mail", "-")
    assert answer.code == 1
    assert "the payload is too large" in answer.line
