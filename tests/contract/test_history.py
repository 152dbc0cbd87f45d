"""history and attempts: every change of a job is one numbered event, and every lease one attempt."""

from datetime import timedelta

from penstock import Client, Entry, NewJob, Reason, State
from penstock.domain.events import Extended, JobEvent
from penstock.testing import FakeClock


def _names(entries: list[Entry]) -> list[str]:
    return [type(entry.event).__name__ for entry in entries]


def _revs(entries: list[Entry]) -> list[int]:
    """The number of every change; a beat that changed nothing has none of its own."""
    revs = [0]
    for entry in entries:
        assert isinstance(entry.event, JobEvent)
        if isinstance(entry.event, Extended) and entry.event.rev == revs[-1]:
            continue
        revs.append(entry.event.rev)
    return revs[1:]


async def _busy_life(queue: Client, clock: FakeClock) -> str:
    """A job to which everything happens."""
    job = await queue.enqueue("mail", max_attempts=3)
    await queue.update(job.id, priority=1)
    [lease] = await queue.lease("mail", worker="w1")
    await queue.heartbeat(lease)
    await queue.heartbeat(lease, progress=0.5)
    await queue.nack(lease, "no", delay_s=0, ran_s=0.25, reason="crashed")
    [lease] = await queue.lease("mail", worker="w2")
    await queue.release(lease, ran_s=0.5)
    await queue.lease("mail", worker="w3", lease_s=10)
    clock.advance(10)
    await queue.expire_now()
    await queue.update(job.id, now=True)
    [lease] = await queue.lease("mail", worker="w4")
    await queue.cancel(job.id)
    await queue.requeue(job.id)
    [lease] = await queue.lease("mail", worker="w5")
    await queue.nack(lease, "bad", retry=False)
    await queue.requeue(job.id)
    [lease] = await queue.lease("mail", worker="w6")
    await queue.ack(lease, "done", ran_s=1.0)
    return job.id


async def test_every_change_is_one_event_in_the_order_they_happened(queue: Client, clock: FakeClock) -> None:
    entries = await queue.history(await _busy_life(queue, clock))
    assert _names(entries) == [
        *("Enqueued", "Updated", "Leased", "Extended", "Extended", "Failed", "Leased", "Released", "Leased", "Failed"),
        *("Updated", "Leased", "Cancelled", "Requeued", "Leased", "Died", "Requeued", "Leased", "Succeeded"),
    ]
    assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})


async def test_the_changes_are_numbered_without_a_hole(queue: Client, clock: FakeClock) -> None:
    job_id = await _busy_life(queue, clock)
    entries = await queue.history(job_id)
    revs = _revs(entries)
    assert revs == list(range(1, len(revs) + 1))
    assert revs[-1] == (await queue.get(job_id)).rev


async def test_events_say_whose_job_and_which_attempt(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", kind="send")
    clock.advance(2)
    [lease] = await queue.acting(actor="pool").lease("mail", worker="w1", lease_s=45)
    entry = (await queue.history(job.id))[-1]
    event = entry.event
    assert (event.tenant, event.actor) == ("default", "pool")
    assert (event.id, event.queue, event.kind, event.rev) == (job.id, "mail", "send", 2)  # type: ignore[union-attr] # leased
    assert (event.attempt, event.lease_no, event.worker, event.lease_s) == (1, 1, "w1", 45)  # type: ignore[union-attr] # leased
    assert (entry.at, lease.job.lease_no) == (clock.now(), 1)


async def test_attempts_tell_every_lease_and_what_came_of_it(queue: Client, clock: FakeClock) -> None:
    attempts = await queue.attempts(await _busy_life(queue, clock))
    assert [(attempt.lease_no, attempt.worker, attempt.end) for attempt in attempts] == [
        (1, "w1", "failed"),
        (2, "w2", "released"),
        (3, "w3", "expired"),
        (4, "w4", "cancelled"),
        (5, "w5", "failed"),
        (6, "w6", "succeeded"),
    ]
    assert [attempt.attempt for attempt in attempts] == [1, 2, 2, 3, 1, 1]
    first, released, expired = attempts[:3]
    assert (first.reason, first.error, first.ran_s, first.progress, first.heartbeats) == (
        Reason.CRASHED,
        "no",
        0.25,
        0.5,
        2,
    )
    assert (released.ran_s, released.error) == (0.5, None)
    assert (expired.reason, expired.ended_at) == (Reason.LEASE_EXPIRED, expired.started_at + timedelta(seconds=10))


async def test_an_attempt_under_way_has_no_end(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail")
    await queue.lease("mail", lease_s=45)
    [attempt] = await queue.attempts(job.id)
    assert (attempt.end, attempt.ended_at, attempt.started_at, attempt.lease_s) == ("running", None, clock.now(), 45)


async def test_a_job_that_died_in_the_queue_made_no_attempt_of_it(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", deadline_s=5)
    clock.advance(5)
    await queue.expire_now()
    assert _names(await queue.history(job.id)) == ["Enqueued", "Died"]
    assert await queue.attempts(job.id) == []


async def test_a_job_cancelled_in_the_queue_does_not_end_an_earlier_attempt_again(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "no")
    await queue.cancel(job.id)
    assert [attempt.end for attempt in await queue.attempts(job.id)] == ["failed"]


async def test_what_one_call_makes_is_one_commit_line_by_line(queue: Client) -> None:
    before = (await queue.snapshot()).seq
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(3))
    places = [(entry.seq - before, entry.line) for job in jobs for entry in await queue.history(job.id)]
    assert places == [(1, 1), (1, 2), (1, 3)]


async def test_a_call_that_changes_nothing_leaves_no_commit(queue: Client) -> None:
    job = await queue.enqueue("mail", 1)
    before = (await queue.snapshot()).seq
    await queue.enqueue("mail", 1, id=job.id)
    await queue.lease("sms")
    await queue.expire_now()
    await queue.update(job.id)
    assert (await queue.snapshot()).seq == before


async def test_the_broker_signs_what_it_does_by_itself(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", max_attempts=1)
    await queue.lease("mail")
    clock.advance(30)
    await queue.acting(actor="ann").expire_now()
    assert (await queue.history(job.id))[-1].event.actor == "penstock"
    assert (await queue.get(job.id)).state is State.DEAD
