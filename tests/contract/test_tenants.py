"""Tenants are walls (G13): another tenant's job id looks exactly like one that does not exist."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from penstock import Client, Holding, Invalid, Lease, PenstockError
from penstock.testing import FakeClock

# Everything that can be asked about one job: the caller knows its id, and whatever else the owner's lease says.
VERBS: dict[str, Callable[[Client, Lease], Awaitable[object]]] = {
    "get": lambda client, lease: client.get(lease.job.id),
    "wait": lambda client, lease: client.wait(lease.job.id, timeout_s=0),
    "history": lambda client, lease: client.history(lease.job.id),
    "attempts": lambda client, lease: client.attempts(lease.job.id),
    "heartbeat": lambda client, lease: client.heartbeat(lease, progress=0.5),
    "ack": lambda client, lease: client.ack(lease, "mine"),
    "nack": lambda client, lease: client.nack(lease, "no"),
    "release": lambda client, lease: client.release(lease),
    "cancel": lambda client, lease: client.cancel(lease.job.id),
    "cancel, life known": lambda client, lease: client.cancel(lease.job.id, requeues=0),
    "requeue": lambda client, lease: client.requeue(lease.job.id),
    "requeue, life known": lambda client, lease: client.requeue(lease.job.id, requeues=0, again=True, payload=1),
    "update": lambda client, lease: client.update(lease.job.id, priority=1),
    "update, life known": lambda client, lease: client.update(lease.job.id, priority=1, requeues=0),
    "purge": lambda client, lease: client.purge(lease.job.id),
}
STATES = ("queued", "leased", "succeeded", "cancelled")


async def _said(call: Awaitable[object]) -> tuple[object, ...]:
    """The answer or the refusal, word for word."""
    try:
        return ("answer", await call)
    except PenstockError as error:
        return (type(error), error.message, {**error.facts, "job_id": "the one asked for"})


async def _job(owner: Client, state: str) -> Lease:
    await owner.enqueue("mail", "secret", idempotency_key="k")
    [lease] = await owner.lease("mail")
    if state == "queued":
        await owner.release(lease)
    elif state == "succeeded":
        await owner.ack(lease)
    elif state == "cancelled":
        await owner.cancel(lease.job.id)
    return lease


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", VERBS)
async def test_another_tenants_job_looks_exactly_like_an_unknown_one(
    queue: Client, other: Client, clock: FakeClock, verb: str, state: str
) -> None:
    theirs = await _job(queue, state)
    unknown = replace(theirs, job=replace(theirs.job, id=clock.job_id()))
    before = (await queue.snapshot(), await other.snapshot())
    assert await _said(VERBS[verb](other, theirs)) == await _said(VERBS[verb](other, unknown))
    assert (await queue.snapshot(), await other.snapshot()) == before


async def test_a_heartbeat_tells_nothing_of_another_tenants_job(queue: Client, other: Client, clock: FakeClock) -> None:
    theirs = await _job(queue, "cancelled")
    unknown = replace(theirs, job=replace(theirs.job, id=clock.job_id()))
    assert await other.heartbeat_many([theirs, unknown]) == [Holding.LOST, Holding.LOST]


async def test_two_tenants_may_use_the_same_names_and_ids(queue: Client, other: Client) -> None:
    mine = await queue.enqueue("mail", 1, idempotency_key="k")
    theirs = await other.enqueue("mail", 2, idempotency_key="k", id=mine.id)
    assert (mine.tenant, mine.payload, theirs.tenant, theirs.payload) == ("default", 1, "other", 2)
    await other.cancel(mine.id)
    assert (await queue.get(mine.id)).state == "queued"
    assert len(await queue.history(mine.id)) == 1


async def test_nobody_leases_lists_or_counts_anothers_jobs(queue: Client, other: Client) -> None:
    await queue.enqueue("mail")
    await queue.set_queue("mail", max_depth=9)
    assert await other.lease("mail") == []
    assert await other.list() == []
    assert await other.stats() == []
    theirs = await other.snapshot()
    assert (theirs.jobs, theirs.settings) == ((), ())
    assert await other.purge_queue("mail", state="dead", older_than_s=0) == 0


async def test_pausing_a_queue_pauses_it_for_one_tenant(queue: Client, other: Client) -> None:
    await queue.enqueue("mail")
    await other.pause("mail")
    assert len(await queue.lease("mail")) == 1


@pytest.mark.parametrize("name", ["a/b", " ", "x" * 129])
async def test_a_tenants_name_is_checked_like_any_other(queue: Client, name: str) -> None:
    with pytest.raises(Invalid, match="tenant"):
        queue.acting(tenant=name)
