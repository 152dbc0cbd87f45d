"""``penstock queues``."""

import pytest

from .harness import Cli


def test_no_queues_are_told_as_such(cli: Cli) -> None:
    assert cli("queues", "list").out == "no queues\n"
    assert cli.ok("queues", "list") == {"queues": []}


def test_queues_are_listed_with_their_counts_and_the_age_of_the_oldest_ready_job(cli: Cli) -> None:
    cli.dead()
    cli.enqueue()
    cli.enqueue(delay_s=3600)
    cli.clock.advance(90)
    cli.ok("queues", "pause", "reports")
    heading, mail, reports = cli("queues", "list").out.splitlines()
    assert " ".join(heading.split()) == "QUEUE READY SCHEDULED LEASED SUCCEEDED DEAD CANCELLED OLDEST"
    assert mail.split() == ["mail", "1", "1", "0", "0", "1", "0", "90s"]
    assert reports.split() == ["reports", "0", "0", "0", "0", "0", "0", "-", "paused"]
    assert max(len(line) for line in (heading, mail, reports)) <= 80
    assert [queue["ready"] for queue in cli.ok("queues", "list")["queues"]] == [1, 0]


def test_a_queue_is_shown_with_its_settings(cli: Cli) -> None:
    cli.enqueue()
    screen = cli("queues", "show", "mail").out
    assert "1 (1 ready, the oldest for 0s; 0 scheduled)" in screen
    assert "backoff.base_s      5         5" in screen
    assert cli.ok("queues", "show", "mail")["queued"] == 1


def test_a_queue_that_nobody_has_used_is_not_found(cli: Cli) -> None:
    answer = cli("queues", "show", "mail")
    assert answer.code == 3
    assert "there is no such queue" in answer.line


def test_a_queue_is_paused_and_resumed(cli: Cli) -> None:
    assert cli.ok("queues", "pause", "mail")["paused"] is True
    assert cli.ok("queues", "resume", "mail")["paused"] is False
    assert "paused     yes" in cli("queues", "pause", "mail").out
    assert "paused     no" in cli("queues", "resume", "mail").out


def test_settings_are_changed_each_in_its_own_type(cli: Cli) -> None:
    changes = ["max_depth=10", "results=discard", "retain_dead_s=86400", "paused=true"]
    settings = cli.ok("queues", "set", "mail", *changes, "backoff.policy=fixed", "backoff.base_s=1.5")["settings"]
    assert (settings["max_depth"], settings["results"], settings["paused"]) == (10, "discard", True)
    assert settings["retain_dead_s"] == 86400
    assert settings["backoff"] == {"policy": "fixed", "base_s": 1.5, "cap_s": 3600.0}


def test_a_key_without_a_value_goes_back_to_its_default_and_the_others_stay(cli: Cli) -> None:
    cli.ok("queues", "set", "mail", "max_depth=10", "backoff.base_s=1", "backoff.cap_s=2")
    settings = cli.ok("queues", "set", "mail", "max_depth=", "backoff.base_s=")["settings"]
    assert settings["max_depth"] == 10_000_000
    assert settings["backoff"] == {"policy": "jitter", "base_s": 5.0, "cap_s": 2.0}


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("mail", "paused=maybe"), 1, "paused cannot be set to that"),
        (("mail", "max_depth=many"), 1, "max_depth cannot be set to that"),
        (("mail", "max_depth=0"), 1, "max_depth must be a number from 1"),
        (("mail", "retain_dead_s=nan"), 1, "retain_dead_s must be a number from"),
        (("mail", "backoff.policy=never"), 1, "backoff.policy cannot be set to that"),
        (("mail", "colour=red"), 1, "there is no such setting; known are: paused, max_depth"),
        (("mail", "backoff=fixed"), 1, "there is no such setting"),
        (("mail", "paused"), 2, "a change is KEY=VALUE"),
        (("mail",), 2, "Missing argument"),
        (("a/b", "paused=true"), 1, "must be 1 to 128 of"),
    ],
)
def test_a_bad_change_gets_one_line_and_changes_nothing(cli: Cli, args: tuple[str, ...], code: int, told: str) -> None:
    answer = cli("queues", "set", *args)
    assert answer.code == code
    assert told in answer.line
    assert cli.ok("queues", "list") == {"queues": []}
