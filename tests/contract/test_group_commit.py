"""One batch (G10, rule 19): applied in the order of its verbs, and a refused command disturbs nobody."""

import asyncio

from penstock import Client, Conflict, Holding, LeaseLost, NewJob, NotFound, State
from penstock.domain.commands import (
    Ack,
    Beat,
    Cancel,
    Command,
    DeleteSetting,
    Enqueue,
    Heartbeat,
    LeaseJobs,
    Nack,
    Purge,
    PutSetting,
    Release,
    Requeue,
    SettingKind,
    Update,
)
from penstock.domain.job import Ended, Job
from penstock.domain.outcome import Accepted, Count, Holdings, Leases, Outcome
from penstock.stores.port import Store
from penstock.testing import FakeClock

CALL = "a-request-id-for-a-batch"


def _names(outcomes: list[Outcome]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


async def test_the_outcomes_are_in_the_order_of_the_commands(queue: Client, store: Store, clock: FakeClock) -> None:
    made = await queue.enqueue("mail")
    new = NewJob("sms", id=clock.job_id())
    outcomes = await store.commit(
        [
            LeaseJobs(queues=("sms",), request_id=CALL),
            Enqueue(jobs=(new,)),
            PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"max_depth": 9}),
            Update(job_id=made.id, requeues=0, priority=3),
            Cancel(job_id=clock.job_id(), requeues=0),
        ]
    )
    assert _names(outcomes) == ["Leases", "Accepted", "Setting", "Job", "NotFound"]


async def test_what_is_enqueued_is_leased_in_the_same_commit(store: Store, clock: FakeClock) -> None:
    new = NewJob("mail", id=clock.job_id())
    leases, accepted = await store.commit([LeaseJobs(queues=("mail",), request_id=CALL), Enqueue(jobs=(new,))])
    assert isinstance(accepted, Accepted)
    assert (accepted.jobs[0].state, accepted.new) == (State.QUEUED, (True,))
    assert isinstance(leases, Leases)
    assert [lease.job.id for lease in leases.leases] == [new.id]


async def test_a_pause_keeps_jobs_from_leases_of_the_same_commit(queue: Client, store: Store) -> None:
    await queue.enqueue("mail")
    lease, _ = await store.commit(
        [
            LeaseJobs(queues=("mail",), request_id=CALL),
            PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"paused": True}),
        ]
    )
    assert lease == Leases(())
    lease, _ = await store.commit(
        [LeaseJobs(queues=("mail",), request_id=CALL), DeleteSetting(kind=SettingKind.QUEUE, name="mail")]
    )
    assert isinstance(lease, Leases)
    assert len(lease.leases) == 1


async def test_finished_work_beats_a_cancel(queue: Client, store: Store) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    cancel, ack = await store.commit(
        [Cancel(job_id=lease.job.id, requeues=0), Ack(job_id=lease.job.id, token=lease.token)]
    )
    assert isinstance(cancel, Conflict)
    assert isinstance(ack, Ended)
    assert (await queue.get(lease.job.id)).state is State.SUCCEEDED


async def test_finished_work_beats_an_expiry(queue: Client, store: Store, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    clock.advance(30)
    [expiry] = await store.overdue()
    assert (await store.commit([expiry, Ack(job_id=lease.job.id, token=lease.token)]))[0] == Count(0)


async def test_of_three_endings_in_one_commit_the_ack_is_taken(queue: Client, store: Store) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    release, nack, ack, beat = await store.commit(
        [
            Release(job_id=lease.job.id, token=lease.token),
            Nack(job_id=lease.job.id, token=lease.token),
            Ack(job_id=lease.job.id, token=lease.token),
            Heartbeat(beats=(Beat(lease.job.id, lease.token, 0.5),)),
        ]
    )
    assert isinstance(release, LeaseLost)
    assert isinstance(nack, LeaseLost)
    assert isinstance(ack, Ended)
    # Heartbeats come first, and are answered as of then.
    assert beat == Holdings((Holding.HELD,))
    assert (await queue.get(lease.job.id)).progress == 0.5


async def test_a_cancelled_job_is_requeued_updated_and_leased_in_one_commit(queue: Client, store: Store) -> None:
    made = await queue.enqueue("mail", delay_s=60)
    batch: list[Command] = [
        LeaseJobs(queues=("mail",), request_id=CALL),
        Update(job_id=made.id, requeues=1, priority=4),
        Requeue(job_id=made.id, requeues=0),
        Cancel(job_id=made.id, requeues=0),
    ]
    assert _names(await store.commit(batch)) == ["Leases", "Job", "Job", "Job"]
    job = await queue.get(made.id)
    assert (job.state, job.priority, job.requeues, job.rev) == (State.LEASED, 4, 1, 5)


async def test_a_purge_comes_after_the_requeue_that_saves_the_job(
    queue: Client, store: Store, clock: FakeClock
) -> None:
    made = await queue.enqueue("mail")
    await queue.cancel(made.id)
    clock.advance(900)
    purge, requeue = await store.commit([Purge(job_ids=(made.id,)), Requeue(job_id=made.id, requeues=0)])
    assert isinstance(purge, Conflict)
    assert isinstance(requeue, Job)


async def test_within_a_verb_who_came_first_is_served_first(queue: Client, store: Store, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    first, second = await store.commit(
        [LeaseJobs(queues=("mail",), request_id=f"{CALL}-{number}") for number in range(2)]
    )
    assert isinstance(first, Leases)
    assert len(first.leases) == 1
    assert second == Leases(())
    one, two = await store.commit(
        [Enqueue(jobs=(NewJob("mail", n, id=clock.job_id(), idempotency_key="k"),)) for n in (1, 2)]
    )
    assert isinstance(one, Accepted)
    assert isinstance(two, Conflict)


async def test_a_refused_command_disturbs_nobody(queue: Client, store: Store, clock: FakeClock) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(2))
    good, bad = await queue.lease("mail", limit=2)
    outcomes = await store.commit(
        [
            Enqueue(jobs=(NewJob("mail", 5, id=good.job.id),)),
            Ack(job_id=bad.job.id, token=good.token, then=(NewJob("report", id=clock.job_id()),)),
            Ack(job_id=good.job.id, token=good.token),
            Cancel(job_id=clock.job_id(), requeues=0),
            Enqueue(jobs=(NewJob("sms", id=clock.job_id()),)),
        ]
    )
    assert _names(outcomes) == ["Conflict", "LeaseLost", "Ended", "NotFound", "Accepted"]
    states = {job.queue + str(job.payload): job.state for job in await queue.list()}
    assert states == {"mail0": State.SUCCEEDED, "mail1": State.LEASED, "smsNone": State.QUEUED}


async def test_a_commit_is_one_record_with_one_time(queue: Client, store: Store, clock: FakeClock) -> None:
    before = (await queue.snapshot()).seq
    jobs = tuple(NewJob("mail", number, id=clock.job_id()) for number in range(3))
    await store.commit([LeaseJobs(queues=("mail",), request_id=CALL, limit=3), *(Enqueue(jobs=(new,)) for new in jobs)])
    entries = [entry for new in jobs for entry in await queue.history(new.id or "")]
    assert sorted((entry.seq - before, entry.line) for entry in entries) == [(1, line) for line in range(1, 7)]
    assert {entry.at for entry in entries} == {clock.now()}


async def test_calls_made_at_once_are_answered_each_for_itself(queue: Client) -> None:
    first = await queue.enqueue("mail", 1)
    answers = await asyncio.gather(
        queue.enqueue("mail", 2, id=first.id),
        queue.enqueue("mail", 3),
        queue.cancel(first.id),
        queue.enqueue("a/b"),
        queue.lease("mail"),
        return_exceptions=True,
    )
    assert [type(answer).__name__ for answer in answers] == ["Conflict", "Job", "Job", "Invalid", "list"]


async def test_unknown_outcomes_can_be_sent_again(queue: Client, store: Store, clock: FakeClock) -> None:
    """The same commands, committed a second time, add nothing and lose nothing (G2)."""
    await queue.enqueue_many(NewJob("mail", number) for number in range(4))
    acked, nacked, released, _ = await queue.lease("mail", limit=4)
    batch: list[Command] = [
        Ack(job_id=acked.job.id, token=acked.token, then=(NewJob("report", id=clock.job_id()),)),
        Nack(job_id=nacked.job.id, token=nacked.token, error="no"),
        Release(job_id=released.job.id, token=released.token, delay_s=5.0),
        Enqueue(jobs=(NewJob("sms", id=clock.job_id()), NewJob("sms", 2, id=clock.job_id(), idempotency_key="k"))),
        LeaseJobs(queues=("sms",), request_id=CALL, limit=5),
        PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"max_depth": 9}),
    ]
    first = await store.commit(batch)
    before = await queue.snapshot()
    again = await store.commit(batch)
    assert await queue.snapshot() == before
    assert [*again[:3], *again[4:]] == [*first[:3], *first[4:]]


async def test_cancels_requeues_and_updates_can_be_sent_again(queue: Client, store: Store) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    await queue.cancel(jobs[1].id)
    batch: list[Command] = [
        Cancel(job_id=jobs[0].id, requeues=0),
        Requeue(job_id=jobs[1].id, requeues=0, payload=b"new"),
        Update(job_id=jobs[2].id, requeues=0, priority=7),
    ]
    first = await store.commit(batch)
    before = await queue.snapshot()
    assert await store.commit(batch) == first
    assert await queue.snapshot() == before
    assert not any(isinstance(outcome, NotFound | Conflict) for outcome in first)
