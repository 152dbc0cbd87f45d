"""Promises of docs/coverage.md that no verb's own tests show."""

import asyncio

from msgspec.structs import replace

from penstock import Client, Conflict, Invalid, NewJob, State
from penstock.domain.commands import (
    Ack,
    Beat,
    Cancel,
    Command,
    Enqueue,
    Heartbeat,
    LeaseJobs,
    Nack,
    Release,
    Requeue,
    Update,
)
from penstock.stores.port import Store
from penstock.testing import FakeClock


async def test_an_ack_whose_follow_up_is_refused_disturbs_none_of_its_neighbours(queue: Client) -> None:
    await queue.enqueue("mail", "taken", idempotency_key="k")
    await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    _, invalid, conflicting, good = await queue.lease("mail", limit=4)
    answers = await asyncio.gather(
        queue.ack(invalid, then=[NewJob("report"), NewJob("a/b")]),
        queue.ack(conflicting, then=[NewJob("report"), NewJob("mail", "other", idempotency_key="k")]),
        queue.ack(good, then=[NewJob("audit")]),
        queue.enqueue("sms"),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers[:2]] == [Invalid, Conflict]
    states = [(await queue.get(lease.job.id)).state for lease in (invalid, conflicting, good)]
    assert states == [State.LEASED, State.LEASED, State.SUCCEEDED]
    assert [stats.queue for stats in await queue.stats()] == ["audit", "mail", "sms"]


async def test_every_event_of_a_call_carries_the_calls_id_and_who_made_it(
    queue: Client, store: Store, clock: FakeClock
) -> None:
    before = (await queue.snapshot()).seq
    ids = [clock.job_id() for _ in range(4)]
    call = clock.secret()
    calls: list[Command] = [
        Enqueue(jobs=tuple(NewJob("mail", id=job_id) for job_id in ids[:3])),
        LeaseJobs(queues=("mail",), request_id=call, limit=3),
        Heartbeat(beats=(Beat(ids[0], f"{call}.0", 0.5),)),
        Ack(job_id=ids[0], token=f"{call}.0", then=(NewJob("audit", id=ids[3]),)),
        Nack(job_id=ids[1], token=f"{call}.1"),
        Release(job_id=ids[2], token=f"{call}.2"),
        Update(job_id=ids[2], requeues=0, priority=1),
        Cancel(job_id=ids[2], requeues=0),
        Requeue(job_id=ids[2], requeues=0),
    ]
    for number, command in enumerate(calls, before + 1):
        await store.commit([replace(command, actor=f"actor-{number}", call_id=f"call-{number}")])
    entries = [entry for job_id in ids for entry in await queue.history(job_id)]
    # Each call was one commit, so the number of the commit is that of the call.
    assert {entry.seq for entry in entries} == set(range(before + 1, before + len(calls) + 1))
    assert all(entry.event.call_id == f"call-{entry.seq}" for entry in entries)
    assert all(entry.event.actor == f"actor-{entry.seq}" for entry in entries)
