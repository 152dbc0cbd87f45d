"""``penstock jobs list`` and ``show``."""

import pytest

from penstock import Client

from .harness import Cli


def test_no_jobs_are_told_as_such(cli: Cli) -> None:
    assert cli("jobs", "list").out == "no jobs\n"
    assert cli.ok("jobs", "list") == {"jobs": [], "cursor": None}


def test_jobs_are_listed_newest_first_with_state_attempts_age_and_next_run(cli: Cli) -> None:
    first = cli.enqueue()
    cli.clock.advance(90)
    second = cli.enqueue("reports", kind="monthly", delay_s=3600)
    heading, newer, older = cli("jobs", "list").out.splitlines()
    assert heading.split() == ["ID", "QUEUE", "KIND", "STATE", "TRY", "AGE", "NEXT"]
    assert newer.split() == [second, "reports", "monthly", "queued", "0/5", "0s", "60m"]
    assert older.split() == [first, "mail", "mail", "queued", "0/5", "90s", "now"]


@pytest.mark.parametrize("columns", ["60", "80", "120", "200"])
def test_a_list_fits_the_screen_and_shows_ids_whole(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    job_id = cli.dead("a-rather-long-name-for-a-queue", "boom " * 40, kind="a-rather-long-name-for-a-kind")
    lines = cli("jobs", "list").out.splitlines()
    assert max(len(line) for line in lines) <= int(columns)
    assert job_id in lines[1]
    assert "boom" in lines[1 if int(columns) >= 120 else 2]


def test_of_a_traceback_the_last_line_is_shown(cli: Cli) -> None:
    cli.dead(error='Traceback (most recent call last):\n  File "a.py", line 1\nValueError: bad month\n')
    assert "ValueError: bad month" in cli("jobs", "list").out


def test_a_full_page_says_how_to_go_on(cli: Cli) -> None:
    ids = [cli.enqueue() for _ in range(3)]
    page = cli.ok("jobs", "list", "--limit", "2")
    assert [job["id"] for job in page["jobs"]] == [ids[2], ids[1]]
    assert page["cursor"] == ids[1]
    assert f"go on with --cursor {ids[1]}" in cli("jobs", "list", "--limit", "2").out
    rest = cli.ok("jobs", "list", "--limit", "2", "--cursor", page["cursor"])
    assert ([job["id"] for job in rest["jobs"]], rest["cursor"]) == ([ids[0]], None)


def test_filters_narrow_the_list(cli: Cli) -> None:
    dead = cli.dead("reports", kind="monthly")
    cli.enqueue()
    for filters in (["--queue", "reports"], ["--state", "dead"], ["--kind", "monthly"]):
        assert [job["id"] for job in cli.ok("jobs", "list", *filters)["jobs"]] == [dead]
    assert len(cli.ok("jobs", "list", "--reason", "attempts_exhausted")["jobs"]) == 1
    assert cli.ok("jobs", "list", "--reason", "crashed")["jobs"] == []


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("--limit", "-1"), 1, "limit must be a whole number from 1 to 1000"),
        (("--limit", "1001"), 1, "limit must be a whole number from 1 to 1000"),
        (("--limit", "ten"), 2, "--limit"),
        (("--state", "done"), 1, "unknown state; known are: queued, leased, succeeded, dead, cancelled"),
        (("--reason", "bored"), 1, "unknown reason; known are: attempts_exhausted"),
        (("--queue", "a/b"), 1, "queue must be 1 to 128 of"),
        (("--cursor", "7"), 1, "UUIDv7"),
        (("--tenant", "a/b"), 1, "--tenant (PENSTOCK_TENANT) must be"),
    ],
)
def test_a_bad_filter_gets_one_line(cli: Cli, args: tuple[str, ...], code: int, told: str) -> None:
    answer = cli("jobs", "list", *args)
    assert answer.code == code
    assert told in answer.line


def test_one_job_is_shown_with_its_payload_and_attempts(cli: Cli) -> None:
    job_id = cli.dead(error="boom\nand more", headers={"trace": "abc"}, idempotency_key="k")
    screen = cli("jobs", "show", job_id).out
    for told in (
        f"id               {job_id}",
        "state            dead (attempts_exhausted)",
        "attempt          1 of 1",
        "trace: abc",
        "idempotency key  k",
        "finished at      2030-01-01 00:00:00Z  0s ago",
        "payload  application/json, 12 bytes",
        '  "to": "bob"',
        "w1",
        "failed",
    ):
        assert told in screen
    assert "history" not in screen


def test_every_event_is_shown_with_its_actor_when_asked_for(cli: Cli) -> None:
    job_id = cli.dead()
    cli.ok("jobs", "requeue", job_id)
    screen = cli("jobs", "show", job_id, "--history").out
    _, _, history = screen.partition("\nhistory\n")
    assert [line.split()[3:5] for line in history.splitlines()[1:] if line[0] != " "] == [
        ["enqueued", "worker"],
        ["leased", "worker"],
        ["died", "worker"],
        ["requeued", "ada"],
    ]
    assert "history" not in cli.ok("jobs", "show", job_id)
    events = cli.ok("jobs", "show", job_id, "--history")["history"]
    assert [event["event"] for event in events] == ["enqueued", "leased", "died", "requeued"]


def test_what_a_job_carries_cannot_move_the_cursor_or_be_taken_for_markup(cli: Cli) -> None:
    job_id = cli.dead(error="\x1b[2J[red]x[/red]\x07 \u202eevil", headers={"h": "\x1b]0;title\x07"})
    for args in (["list"], ["show", job_id, "--history"]):
        screen = cli("jobs", *args).out
        assert "[red]x[/red]" in screen
        assert all(letter.isprintable() or letter in "\n\N{REPLACEMENT CHARACTER}" for letter in screen)


@pytest.mark.parametrize(
    ("data", "content_type", "shown"),
    [
        (b"plain text\n", "text/plain", "plain text"),
        (b"\x00\xff", "image/png", "AP8="),
        (b'{"n":' + b"1" * 30 + b"}", "application/json", "1" * 30),
    ],
)
def test_any_payload_can_be_looked_at(cli: Cli, data: bytes, content_type: str, shown: str) -> None:
    async def work(client: Client) -> str:
        return (await client.enqueue("mail", data, content_type=content_type)).id

    job_id = cli.do(work)
    assert shown in cli("jobs", "show", job_id).out
    cli.ok("jobs", "show", job_id)


def test_a_long_payload_is_cut_on_the_screen_but_not_in_json(cli: Cli) -> None:
    job_id = cli.ok("enqueue", "mail", f'"{"x" * 10_000}"')["id"]
    assert "more characters; --json shows them" in cli("jobs", "show", job_id).out
    assert cli.ok("jobs", "show", job_id)["job"]["payload"] == "x" * 10_000


def test_a_result_and_progress_are_shown(cli: Cli) -> None:
    job_id = cli.enqueue()

    async def work(client: Client) -> None:
        [lease] = await client.lease("mail")
        await client.heartbeat(lease, progress=0.25)
        await client.ack(lease, {"sent": True})

    cli.do(work)
    screen = cli("jobs", "show", job_id).out
    assert '"sent": true' in screen
    assert "succeeded" in screen


def test_an_unknown_job_is_not_found_and_a_bad_id_is_refused(cli: Cli) -> None:
    answer = cli("jobs", "show", cli.clock.job_id())
    assert answer.code == 3
    assert "there is no such job" in answer.line
    answer = cli("jobs", "show", "7")
    assert answer.code == 1
    assert "a job id must be a UUIDv7" in answer.line


def test_another_tenants_job_is_not_found(cli: Cli) -> None:
    answer = cli("jobs", "show", cli.enqueue(), "--tenant", "other", "--json")
    assert (answer.code, answer.error["code"]) == (3, "not_found")
