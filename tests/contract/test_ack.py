"""ack: the attempt worked. The job is finished, and its follow-ups are made in the same commit."""

import pytest

from penstock import Client, Conflict, Invalid, LeaseLost, NewJob, Output, PenstockError, State, Usage
from penstock.clock import uuid7
from penstock.domain.events import Enqueued
from penstock.testing import FakeClock


async def test_an_acked_job_has_succeeded_with_its_result(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail", worker="w1")
    clock.advance(2)
    ended = await queue.ack(lease, {"sent": 1})
    seen = await queue.get(job.id)
    assert (seen.state, seen.result, seen.reason, seen.attempt) == (State.SUCCEEDED, {"sent": 1}, None, 1)
    assert seen.finished_at == seen.updated_at == clock.now()
    assert (ended.job_id, ended.state, ended.rev, ended.attempt) == (job.id, State.SUCCEEDED, seen.rev, 1)


@pytest.mark.parametrize("result", [None, 0, "", [], {"a": None}])
async def test_a_result_comes_back_as_it_was(queue: Client, result: object) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.ack(lease, result)
    assert (await queue.get(job.id)).result == result


async def test_what_the_worker_measured_is_in_the_attempt(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail", worker="w1")
    usage = Usage(cpu_s=0.5, memory_bytes=1024, exit_code=0)
    output = Output(stdout="out", stderr="err")
    await queue.ack(lease, ran_s=1.5, usage=usage, output=output)
    [attempt] = await queue.attempts(job.id)
    assert (attempt.worker, attempt.ran_s, attempt.usage, attempt.output) == ("w1", 1.5, usage, output)


async def test_a_queue_may_discard_results_and_still_know_their_size(queue: Client) -> None:
    await queue.set_queue("mail", results="discard")
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.ack(lease, "four")
    assert (await queue.get(job.id)).result is None
    entry = (await queue.history(job.id))[-1]
    assert getattr(entry.event, "result_size", None) == len(b'"four"')


async def test_a_job_that_failed_before_succeeds_without_a_reason(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.nack(lease, "no", delay_s=0, reason="crashed")
    [lease] = await queue.lease("mail")
    await queue.ack(lease)
    seen = await queue.get(job.id)
    assert (seen.state, seen.reason, seen.attempt) == (State.SUCCEEDED, None, 2)


async def test_follow_ups_are_made_in_the_same_commit(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    await queue.acting(actor="w1").ack(lease, then=[NewJob("report", 1), NewJob("report", 2)])
    reports = await queue.lease("report", limit=9)
    assert [report.job.payload for report in reports] == [1, 2]
    acked = (await queue.history(job.id))[-1]
    for report in reports:
        made = (await queue.history(report.job.id))[0]
        assert isinstance(made.event, Enqueued)
        assert (made.seq, made.event.parent, made.event.actor) == (acked.seq, job.id, "w1")


async def test_follow_ups_are_not_held_up_by_a_full_queue(queue: Client) -> None:
    await queue.set_queue("mail", max_depth=1)
    await queue.enqueue("mail", 1)
    [lease] = await queue.lease("mail")
    await queue.ack(lease, then=[NewJob("mail", number) for number in (2, 3, 4)])
    [stats] = await queue.stats("mail")
    assert stats.queued == 3


@pytest.mark.parametrize(
    ("bad", "refusal"),
    [
        (NewJob("a/b"), Invalid),
        (NewJob("mail", max_attempts=0), Invalid),
        (NewJob("mail", id=uuid7(0, 0, 0)), Invalid),
        (NewJob("mail", 2, idempotency_key="taken"), Conflict),
    ],
    ids=["name", "limit", "bad id", "conflict"],
)
async def test_a_follow_up_that_is_refused_refuses_the_ack(
    queue: Client, bad: NewJob, refusal: type[PenstockError]
) -> None:
    job = await queue.enqueue("mail", 1, idempotency_key="taken")
    [lease] = await queue.lease("mail")
    before = await queue.snapshot()
    with pytest.raises(refusal):
        await queue.ack(lease, then=[NewJob("report"), bad])
    assert await queue.snapshot() == before
    assert (await queue.ack(lease)).job_id == job.id


async def test_a_repeated_ack_makes_its_follow_ups_once(queue: Client) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    then = [NewJob("report", 1)]
    first = await queue.ack(lease, then=then)
    assert await queue.ack(lease, then=then) == first
    assert len(await queue.list(queue="report")) == 1


async def test_a_stale_ack_makes_no_follow_ups(queue: Client, clock: FakeClock) -> None:
    await queue.enqueue("mail")
    [lease] = await queue.lease("mail")
    clock.advance(30)
    await queue.expire_now()
    with pytest.raises(LeaseLost):
        await queue.ack(lease, then=[NewJob("report")])
    assert await queue.list(queue="report") == []


async def test_finished_stays_finished(queue: Client, clock: FakeClock) -> None:
    job = await queue.enqueue("mail", deadline_s=60)
    [lease] = await queue.lease("mail")
    await queue.ack(lease)
    done = await queue.get(job.id)
    clock.advance(3600)
    await queue.expire_now()
    with pytest.raises(Conflict):
        await queue.cancel(job.id)
    with pytest.raises(Conflict):
        await queue.update(job.id, priority=1)
    with pytest.raises(Conflict):
        await queue.requeue(job.id)
    with pytest.raises(LeaseLost):
        await queue.nack(lease)
    assert await queue.get(job.id) == done
