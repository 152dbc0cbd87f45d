"""``penstock jobs cancel``, ``requeue`` and ``purge``."""

from typing import Any

import pytest

from penstock import Client, Unavailable
from penstock.cli import act

from .harness import Cli


def state(cli: Cli, job_id: str) -> str:
    return str(cli.ok("jobs", "show", job_id)["job"]["state"])


def test_jobs_are_cancelled_by_id(cli: Cli) -> None:
    first, second = cli.enqueue(), cli.enqueue()
    assert cli("jobs", "cancel", first).out == "cancelled 1 job\n"
    assert cli.ok("jobs", "cancel", first, second) == {"count": 2, "ids": [first, second], "refused": []}
    assert state(cli, second) == "cancelled"


def test_jobs_are_cancelled_by_filter_if_they_can_be(cli: Cli) -> None:
    dead, here, there = cli.dead(), cli.enqueue(), cli.enqueue("other")
    assert cli.ok("jobs", "cancel", "--queue", "mail", "--yes")["ids"] == [here]
    assert [state(cli, job_id) for job_id in (dead, here, there)] == ["dead", "cancelled", "queued"]


def test_a_dry_run_counts_and_changes_nothing(cli: Cli) -> None:
    job_id, finished = cli.enqueue(), cli.dead("other")
    assert cli("jobs", "cancel", "--queue", "mail", "--dry-run").out == "would cancel 1 job\n"
    assert cli.ok("jobs", "cancel", "--dry-run", job_id, finished) == {"dry_run": True, "count": 1}
    assert cli.ok("jobs", "requeue", "--dry-run", "--state", "dead") == {"dry_run": True, "count": 1}
    assert [state(cli, job_id), state(cli, finished)] == ["queued", "dead"]


def test_where_nobody_can_be_asked_a_filter_needs_yes(cli: Cli) -> None:
    job_id = cli.enqueue()
    answer = cli("jobs", "cancel", "--queue", "mail")
    assert answer.code == 2
    assert "Cancel 1 job? Say --yes" in answer.line
    assert state(cli, job_id) == "queued"


@pytest.mark.parametrize(("says", "code", "after"), [(True, 0, "cancelled"), (False, 1, "queued")])
def test_somebody_at_a_terminal_is_asked(cli: Cli, *, says: bool, code: int, after: str) -> None:
    asked = []

    def ask(question: str) -> bool:
        asked.append(question)
        return says

    cli.ask = ask
    job_id = cli.enqueue()
    assert cli("jobs", "cancel", "--queue", "mail").code == code
    assert asked == ["Cancel 1 job?"]
    assert state(cli, job_id) == after


def test_many_jobs_are_changed_page_by_page(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.paging.MAX_PAGE", 3)
    monkeypatch.setattr(act, "_SLICE", 2)
    ids = {cli.enqueue() for _ in range(7)}
    assert set(cli.ok("jobs", "cancel", "--state", "queued", "--yes")["ids"]) == ids


def test_a_job_that_cannot_be_changed_is_refused_and_the_others_go_on(cli: Cli) -> None:
    dead, queued, unknown = cli.dead(), cli.enqueue(), cli.clock.job_id()
    answer = cli("jobs", "cancel", dead, queued, unknown, "--json")
    assert answer.code == 1
    assert answer.json["ids"] == [queued]
    assert [(refused["id"], refused["code"]) for refused in answer.json["refused"]] == [
        (dead, "conflict"),
        (unknown, "not_found"),
    ]
    answer = cli("jobs", "cancel", unknown, queued)
    assert (answer.code, answer.out) == (3, "cancelled 1 job\n")
    assert f"refused {unknown}: there is no such job" in answer.err


def test_when_the_store_fails_on_the_way_it_is_told_how_many_were_done(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(act, "_SLICE", 1)
    ids = [cli.enqueue(), cli.enqueue()]
    cancel = Client.cancel

    async def failing(client: Client, job_id: str, **options: Any) -> Any:
        if job_id == ids[1]:
            raise Unavailable("the store is away")
        return await cancel(client, job_id, **options)

    monkeypatch.setattr(Client, "cancel", failing)
    answer = cli("jobs", "cancel", *ids)
    assert answer.code == 4
    assert answer.err.splitlines() == ["1 job cancelled before this", "error: the store is away"]


@pytest.mark.parametrize("verb", ["cancel", "requeue", "purge"])
def test_which_jobs_must_be_said_in_one_way(cli: Cli, verb: str) -> None:
    for args in ([], [cli.clock.job_id(), "--queue", "mail"]):
        answer = cli("jobs", verb, *args)
        assert answer.code == 2
        assert f"say which jobs to {verb}: either ids, or a filter" in answer.line


def test_a_state_that_does_not_fit_the_verb_is_refused(cli: Cli) -> None:
    answer = cli("jobs", "cancel", "--state", "dead", "--yes")
    assert answer.code == 1
    assert "only jobs that are queued or leased can be cancelled" in answer.line
    assert cli("jobs", "requeue", "--state", "succeeded", "--yes").code == 1
    assert cli("jobs", "requeue", "--state", "succeeded", "--yes", "--again").code == 0
    assert "unknown state" in cli("jobs", "cancel", "--state", "lost", "--yes").line


def test_dead_jobs_are_requeued_by_id_and_by_filter(cli: Cli) -> None:
    first, second = cli.dead(), cli.dead("other")
    assert cli("jobs", "requeue", first).out == "requeued 1 job\n"
    assert cli.ok("jobs", "requeue", "--reason", "attempts_exhausted", "--yes")["ids"] == [second]
    assert [state(cli, first), state(cli, second)] == ["queued", "queued"]


def test_a_job_can_be_requeued_with_another_payload_and_a_delay(cli: Cli) -> None:
    job_id = cli.dead()
    cli.ok("jobs", "requeue", job_id, "--payload", '{"to": "eve"}', "--delay-s", "60")
    job = cli.ok("jobs", "show", job_id)["job"]
    assert (job["payload"], job["run_at"]) == ({"to": "eve"}, "2030-01-01T00:01:00Z")


def test_a_job_can_be_requeued_with_null(cli: Cli) -> None:
    job_id = cli.dead()
    cli.ok("jobs", "requeue", job_id, "--payload", "null")
    job = cli.ok("jobs", "show", job_id)["job"]
    assert (job["payload"], job["content_type"]) == (None, "application/json")


def test_a_payload_that_is_no_json_requeues_nothing(cli: Cli) -> None:
    job_id = cli.dead()
    assert "the payload is no JSON" in cli("jobs", "requeue", job_id, "--payload", "{").line
    assert state(cli, job_id) == "dead"


def test_a_succeeded_job_runs_again_only_when_asked_to(cli: Cli) -> None:
    job_id = cli.enqueue()

    async def work(client: Client) -> None:
        [lease] = await client.lease("mail")
        await client.ack(lease)

    cli.do(work)
    answer = cli("jobs", "requeue", job_id)
    assert answer.code == 1
    assert "the job is succeeded" in answer.line
    assert cli.ok("jobs", "requeue", job_id, "--again")["ids"] == [job_id]


def test_finished_jobs_are_purged_by_id_once_they_are_old_enough(cli: Cli) -> None:
    job_id = cli.dead()
    answer = cli("jobs", "purge", job_id)
    assert answer.code == 1
    assert "too young to be purged" in answer.line
    assert cli.ok("jobs", "purge", job_id, "--dry-run")["count"] == 0
    cli.clock.advance(3600)
    assert cli.ok("jobs", "purge", job_id, "--dry-run")["count"] == 1
    assert cli("jobs", "purge", job_id).out == "purged 1 job\n"
    answer = cli("jobs", "purge", job_id)
    assert (answer.code, answer.out, answer.err) == (0, "purged 0 jobs\n", "1 job not there\n")


def test_finished_jobs_are_purged_by_queue_state_and_age(cli: Cli) -> None:
    old = cli.dead()
    cli.clock.advance(3600)
    young = cli.dead()
    queued = cli.enqueue("other")
    cli.clock.advance(1800)
    assert cli.ok("jobs", "purge", "--older-than-s", "3000", "--dry-run")["count"] == 1
    assert cli.ok("jobs", "purge", "--queue", "mail", "--state", "cancelled", "--yes")["count"] == 0
    assert cli.ok("jobs", "purge", "--older-than-s", "3000", "--yes")["count"] == 1
    assert cli("jobs", "show", old).code == 3
    assert cli.ok("jobs", "purge", "--queue", "mail", "--state", "dead", "--yes")["count"] == 1
    assert [job["id"] for job in cli.ok("jobs", "list")["jobs"]] == [queued]
    assert young != queued


def test_a_purge_by_filter_asks_first_and_says_why_nothing_went(cli: Cli) -> None:
    cli.dead()
    answer = cli("jobs", "purge", "--queue", "mail")
    assert answer.code == 2
    assert "Purge 0 jobs? Say --yes" in answer.line
    answer = cli("jobs", "purge", "--queue", "mail", "--yes")
    assert (answer.code, answer.out) == (0, "purged 0 jobs\n")
    assert "a finished job stays for 15m, with an idempotency key for 24h" in answer.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--queue", "mail", "--state", "queued", "--yes"), "finished state"),
        (("--queue", "mail", "--state", "lost", "--yes"), "unknown state"),
        (("--queue", "mail", "--older-than-s", "-1", "--yes"), "older_than_s must be a number from 0"),
        (("--queue", "a/b", "--yes"), "queue must be 1 to 128 of"),
        (("7",), "UUIDv7"),
    ],
)
def test_a_bad_purge_gets_one_line(cli: Cli, args: tuple[str, ...], told: str) -> None:
    answer = cli("jobs", "purge", *args)
    assert answer.code == 1
    assert told in answer.line
