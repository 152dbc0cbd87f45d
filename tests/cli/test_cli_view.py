"""What every way out shows of jobs, attempts, events and queues."""

import re
from base64 import b64decode

import msgspec
import pytest

from penstock import Backoff, Client, Entry, Job, NewJob, Policy
from penstock.domain import view

from .harness import Cli

# As DESIGN lists them.
FIELDS = (
    "id tenant queue kind payload content_type headers priority state reason attempt rev lease_no max_attempts backoff "
    "run_at deadline_at created_at updated_at started_at heartbeat_at finished_at worker progress result error error_fp "
    "lease_lost releases requeues idempotency_key"
)


async def lived(client: Client) -> tuple[Job, list[Entry]]:
    """A job that has been through everything once."""
    job = await client.enqueue("mail", {"to": "bob"}, backoff=Backoff(Policy.FIXED, 0.0), idempotency_key="k")
    await client.update(job.id, priority=3)
    [lease] = await client.lease("mail", worker="w1")
    await client.heartbeat(lease, progress=0.5)
    await client.release(lease)
    [lease] = await client.lease("mail", worker="w1")
    await client.nack(lease, "boom")
    await client.cancel(job.id)
    await client.requeue(job.id, payload=b"\xff", content_type="image/png")
    [lease] = await client.lease("mail", worker="w2")
    await client.ack(lease, {"sent": True}, then=[NewJob("audit")])
    return await client.get(job.id), await client.history(job.id)


def test_a_job_shows_the_fields_of_the_design_in_their_order_and_no_others(cli: Cli) -> None:
    job = cli.do(lambda client: client.enqueue("mail", {"to": "bob"}))
    assert " ".join(view.job(job)) == FIELDS


def test_bytes_are_shown_in_base64_and_json_as_the_value(cli: Cli) -> None:
    job, _ = cli.do(lived)
    seen = view.job(job)
    assert "payload" not in seen
    assert b64decode(seen["payload_b64"]) == b"\xff"
    assert seen["result"] == {"sent": True}
    assert seen["backoff"] == {"policy": "fixed", "base_s": 0.0, "cap_s": 3600.0}


@pytest.mark.parametrize("data", [b"not json", b'"\xff"', b"1e999", b"[" * 100_000])
def test_bytes_that_are_called_json_and_are_none_are_shown_in_base64(cli: Cli, data: bytes) -> None:
    job = cli.do(lambda client: client.enqueue("mail", {"to": "bob"}))
    seen = view.job(msgspec.structs.replace(job, payload_bytes=data, result_bytes=data))
    assert b64decode(seen["payload_b64"]) == b64decode(seen["result_b64"]) == data


def test_every_event_is_shown_with_its_place_name_and_fields(cli: Cli) -> None:
    job, history = cli.do(lived)
    seen = [view.entry(entry) for entry in history]
    assert [event["event"] for event in seen] == [
        *("enqueued", "updated", "leased", "extended", "released", "leased", "failed", "cancelled"),
        *("requeued", "leased", "succeeded"),
    ]
    for event in seen:
        assert list(event)[:4] == ["seq", "line", "at", "event"]
        assert (event["id"], event["queue"], event["tenant"], event["actor"]) == (
            job.id,
            "mail",
            "default",
            "worker",
        )
        assert event["rev"]
    assert seen[0]["payload"] == {"to": "bob"}
    assert b64decode(seen[8]["payload_b64"]) == b"\xff"
    assert seen[10]["result"] == {"sent": True}


def test_nothing_that_belongs_to_a_lease_token_is_shown(cli: Cli) -> None:
    job, history = cli.do(lived)
    document = msgspec.json.encode([view.job(job), [view.entry(entry) for entry in history]]).decode()
    assert not re.search(r'"(call|lease|ending|fingerprint|order|ready_at|token|request_id)"', document)


def test_an_attempt_and_a_queue_show_all_their_fields(cli: Cli) -> None:
    job, _ = cli.do(lived)
    [first, *_] = cli.do(lambda client: client.attempts(job.id))
    assert view.attempt(first)["usage"] is None
    assert view.attempt(first)["end"] == "released"
    [queue] = cli.do(lambda client: client.stats("mail"))
    seen = view.queue(queue)
    assert (seen["queue"], seen["succeeded"], seen["paused"]) == ("mail", 1, False)
    assert seen["settings"]["backoff"] == {"policy": "jitter", "base_s": 5.0, "cap_s": 3600.0}
    assert seen["settings"]["max_attempts"] == 5


def test_times_are_written_with_an_offset(cli: Cli) -> None:
    job, _ = cli.do(lived)
    document = msgspec.json.decode(msgspec.json.encode(view.job(job)))
    assert document["created_at"] == "2030-01-01T00:00:00Z"
