"""Bad input anywhere gets a typed error that says what to do, and changes nothing."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from penstock import Backoff, Client, Invalid, Lease, Policy, State

Wrong = Callable[[Any, Lease], Awaitable[object]]
NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 the mistake under test
NAN = float("nan")

ENQUEUES: dict[str, Wrong] = {
    "a queue with a slash": lambda queue, _: queue.enqueue("a/b"),
    "a queue without a name": lambda queue, _: queue.enqueue(""),
    "a queue that is a list": lambda queue, _: queue.enqueue(["mail"]),
    "a queue that is a number": lambda queue, _: queue.enqueue(7),
    "a kind with a space": lambda queue, _: queue.enqueue("mail", kind="a b"),
    "a kind without a name": lambda queue, _: queue.enqueue("mail", kind=""),
    "a payload that is no JSON": lambda queue, _: queue.enqueue("mail", object()),
    "a payload that is no Unicode": lambda queue, _: queue.enqueue("mail", "\ud800"),
    "JSON too deep": lambda queue, _: queue.enqueue("mail", b"[" * 65 + b"]" * 65, content_type="application/json"),
    "a priority that is no number": lambda queue, _: queue.enqueue("mail", priority="high"),
    "a priority that is true": lambda queue, _: queue.enqueue("mail", priority=True),
    "a priority that is a fraction": lambda queue, _: queue.enqueue("mail", priority=1.5),
    "no attempts": lambda queue, _: queue.enqueue("mail", max_attempts=0),
    "a negative delay": lambda queue, _: queue.enqueue("mail", delay_s=-1),
    "a delay that is no number": lambda queue, _: queue.enqueue("mail", delay_s=NAN),
    "a delay that is text": lambda queue, _: queue.enqueue("mail", delay_s="1"),
    "a negative deadline": lambda queue, _: queue.enqueue("mail", deadline_s=-1),
    "a naive time": lambda queue, _: queue.enqueue("mail", run_at=NAIVE),
    "a time as text": lambda queue, _: queue.enqueue("mail", run_at="2030-01-01T00:00:00Z"),
    "an empty key": lambda queue, _: queue.enqueue("mail", idempotency_key=""),
    "a key with NUL": lambda queue, _: queue.enqueue("mail", idempotency_key="a\0"),
    "a key that is no Unicode": lambda queue, _: queue.enqueue("mail", idempotency_key="\ud800"),
    "headers that are no text": lambda queue, _: queue.enqueue("mail", headers={"a": 1}),
    "a header without a name": lambda queue, _: queue.enqueue("mail", headers={"": "a"}),
    "headers that are a list": lambda queue, _: queue.enqueue("mail", headers=[("a", "b")]),
    "an empty content type": lambda queue, _: queue.enqueue("mail", b"x", content_type="\0"),
    "a backoff by name": lambda queue, _: queue.enqueue("mail", backoff="fixed"),
    "a backoff of an unknown policy": lambda queue, _: queue.enqueue("mail", backoff=Backoff("hope")),  # type: ignore[arg-type] # the mistake under test
    "a backoff back in time": lambda queue, _: queue.enqueue("mail", backoff=Backoff(Policy.FIXED, -1.0)),
    "an id that is a number": lambda queue, _: queue.enqueue("mail", id=7),
    "an id that is a UUIDv4": lambda queue, _: queue.enqueue("mail", id="9f0c3f63-6b43-4f0e-8f0e-0d7a3e4b5c6d"),
    "an id in upper case": lambda queue, _: queue.enqueue("mail", id="01B8DAC5-B400-7002-98A7-DBEFD82C07CD"),
    "an id a day off": lambda queue, _: queue.enqueue("mail", id="01b8d5af-5800-7000-8000-000000000000"),
    "something that is no job": lambda queue, _: queue.enqueue_many([{"queue": "mail"}]),
}
WORK: dict[str, Wrong] = {
    "no queues": lambda queue, _: queue.lease([]),
    "a queue that is no name": lambda queue, _: queue.lease("a/b"),
    "queues that are a number": lambda queue, _: queue.lease(7),
    "no kinds": lambda queue, _: queue.lease("mail", kinds=[]),
    "kinds as one text": lambda queue, _: queue.lease("mail", kinds="mail"),
    "a negative limit": lambda queue, _: queue.lease("mail", limit=-1),
    "no limit": lambda queue, _: queue.lease("mail", limit=None),
    "a lease without length": lambda queue, _: queue.lease("mail", lease_s=0),
    "a lease of no number": lambda queue, _: queue.lease("mail", lease_s=NAN),
    "a negative wait": lambda queue, _: queue.lease("mail", wait_s=-1),
    "a wait that is text": lambda queue, _: queue.lease("mail", wait_s="1"),
    "a request id that can be guessed": lambda queue, _: queue.lease("mail", request_id="1"),
    "a worker that is a number": lambda queue, _: queue.lease("mail", worker=7),
    "no leases to keep": lambda queue, _: queue.heartbeat_many([]),
    "a progress above 1": lambda queue, lease: queue.heartbeat(lease, progress=1.1),
    "a progress that is no number": lambda queue, lease: queue.heartbeat(lease, progress=NAN),
    "a result that is no JSON": lambda queue, lease: queue.ack(lease, object()),
    "a negative time": lambda queue, lease: queue.ack(lease, ran_s=-1),
    "usage that is a dict": lambda queue, lease: queue.ack(lease, usage={"cpu_s": 1}),
    "output that is text": lambda queue, lease: queue.ack(lease, output="text"),
    "an error that is an exception": lambda queue, lease: queue.nack(lease, ValueError("no")),
    "an unknown reason": lambda queue, lease: queue.nack(lease, reason="bored"),
    "a negative delay": lambda queue, lease: queue.nack(lease, delay_s=-1),
    "a negative release": lambda queue, lease: queue.release(lease, delay_s=-1),
}
OPERATING: dict[str, Wrong] = {
    "an id that is none": lambda queue, _: queue.get("7"),
    "an id that is a number": lambda queue, _: queue.get(7),
    "no id": lambda queue, _: queue.cancel(None),
    "a negative life": lambda queue, lease: queue.cancel(lease.job.id, requeues=-1),
    "a payload that is no JSON": lambda queue, lease: queue.requeue(lease.job.id, payload=object()),
    "a naive time": lambda queue, lease: queue.update(lease.job.id, run_at=NAIVE),
    "a priority that is text": lambda queue, lease: queue.update(lease.job.id, priority="1"),
    "nothing to purge": lambda queue, _: queue.purge(),
    "an unknown state": lambda queue, _: queue.list(state="waiting"),
    "a negative limit": lambda queue, _: queue.list(limit=-1),
    "a cursor that is none": lambda queue, _: queue.list(cursor="x"),
    "a wait that is no number": lambda queue, lease: queue.wait(lease.job.id, timeout_s=NAN),
    "a negative wait": lambda queue, lease: queue.wait(lease.job.id, timeout_s=-1),
    "a wait that is text": lambda queue, lease: queue.wait(lease.job.id, timeout_s="1"),
    "stats of a list": lambda queue, _: queue.stats(["mail"]),
    "settings of no name": lambda queue, _: queue.set_queue("a/b", paused=True),
    "the queue of no name": lambda queue, _: queue.queue("a/b"),
    "an actor without a name": lambda queue, _: queue.acting(actor="\0").enqueue("mail"),
}
CASES = [
    pytest.param(call, id=f"{group}: {name}")
    for group, calls in (("enqueue", ENQUEUES), ("work", WORK), ("operate", OPERATING))
    for name, call in calls.items()
]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("call", CASES)
async def test_bad_input_is_refused_with_what_to_do_and_changes_nothing(queue: Client, call: Wrong) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    before = await queue.snapshot()
    with pytest.raises(Invalid) as refused:
        await call(queue, lease)
    assert len(str(refused.value)) > 20
    assert await queue.snapshot() == before
    assert (await queue.ack(lease)).state is State.SUCCEEDED
