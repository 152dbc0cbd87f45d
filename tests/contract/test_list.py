"""get and list: one job, or many by queue, state, kind and reason, newest first, page by page."""

import pytest

from penstock import Client, Invalid, NewJob, NotFound, State
from penstock.domain.queries import LOOKED_AT
from penstock.testing import FakeClock


async def test_an_unknown_job_is_not_found(queue: Client, clock: FakeClock) -> None:
    unknown = clock.job_id()
    for look in (queue.get, queue.wait, queue.history, queue.attempts):
        with pytest.raises(NotFound) as refused:
            await look(unknown)
        assert refused.value.facts == {"job_id": unknown}


async def test_jobs_are_listed_from_the_newest_to_the_oldest(queue: Client) -> None:
    jobs = [await queue.enqueue("mail", number) for number in range(5)]
    assert [job.id for job in await queue.list()] == [job.id for job in reversed(jobs)]


async def test_newest_is_by_id_in_whatever_order_they_came(queue: Client, clock: FakeClock) -> None:
    ids = sorted(clock.job_id() for _ in range(5))
    for number in (2, 0, 4, 1, 3):
        await queue.enqueue("mail", id=ids[number])
    assert [job.id for job in await queue.list()] == ids[::-1]


async def test_jobs_are_found_by_queue_kind_state_and_reason(queue: Client) -> None:
    await queue.enqueue_many([NewJob("mail", 0), NewJob("mail", 1, kind="send"), NewJob("sms", 2, kind="send")])
    [lease] = await queue.lease("mail", kinds=["send"])
    await queue.nack(lease, retry=False, reason="crashed")

    async def found(**what: str) -> list[int]:
        return [job.payload for job in await queue.list(**what)]  # type: ignore[arg-type] # filters by name

    assert await found(queue="mail") == [1, 0]
    assert await found(kind="send") == [2, 1]
    assert await found(queue="mail", kind="send") == [1]
    assert await found(state="dead") == [1]
    assert await found(state="queued") == [2, 0]
    assert await found(reason="crashed") == [1]
    assert await found(reason="deadline") == []
    assert await found(queue="nowhere") == []


async def test_pages_follow_each_other_without_a_gap(queue: Client) -> None:
    jobs = await queue.enqueue_many(NewJob("mail", number) for number in range(25))
    pages: list[list[int]] = []
    cursor = None
    while True:
        page = await queue.list(limit=10, cursor=cursor)
        if not page:
            break
        pages.append([job.payload for job in page])
        cursor = page[-1].id
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [number for page in pages for number in page] == list(reversed(range(len(jobs))))


async def test_pages_are_stable_while_jobs_come_and_move(queue: Client) -> None:
    await queue.enqueue_many(NewJob("mail", number) for number in range(6))
    first = await queue.list(limit=3)
    await queue.enqueue("mail", 6)
    await queue.lease("mail", limit=2)
    second = await queue.list(limit=3, cursor=first[-1].id)
    assert [job.payload for job in first + second] == [5, 4, 3, 2, 1, 0]


async def test_a_list_looks_as_far_as_it_must(queue: Client, clock: FakeClock) -> None:
    """The one that fits lies behind more jobs than a store looks at in one go."""
    wanted = await queue.enqueue("rare")
    clock.advance(1)
    for _ in range(LOOKED_AT // 1_000 + 1):
        await queue.enqueue_many(NewJob("mail") for _ in range(1_000))
        clock.advance(1)
    assert [job.id for job in await queue.list(queue="rare")] == [wanted.id]
    assert [job.id for job in await queue.list(queue="rare", limit=1)] == [wanted.id]
    assert await queue.list(queue="rare", cursor=wanted.id) == []


async def test_a_cursor_need_not_be_a_job_that_is_there(queue: Client, clock: FakeClock) -> None:
    old = await queue.enqueue("mail", 1)
    cursor = clock.job_id()
    await queue.enqueue("mail", 2)
    assert [job.id for job in await queue.list(cursor=cursor)] == [old.id]


@pytest.mark.parametrize("limit", [0, -1, 1_001, 1.5, True])
async def test_a_page_has_1_to_1000_jobs(queue: Client, limit: int) -> None:
    with pytest.raises(Invalid, match="limit"):
        await queue.list(limit=limit)


@pytest.mark.parametrize(
    "what", [{"state": "waiting"}, {"reason": "bored"}, {"queue": "a/b"}, {"kind": ""}, {"cursor": "7"}]
)
async def test_a_filter_that_can_match_nothing_is_refused(queue: Client, what: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        await queue.list(**what)  # type: ignore[arg-type] # the mistake under test


async def test_a_job_reads_the_same_wherever_it_is_read(queue: Client) -> None:
    job = await queue.enqueue("mail", {"a": 1}, headers={"x": "y"})
    [listed] = await queue.list()
    [kept] = (await queue.snapshot()).jobs
    assert job == listed == kept == await queue.get(job.id) == await queue.wait(job.id, timeout_s=0)
    assert job.state is State.QUEUED
