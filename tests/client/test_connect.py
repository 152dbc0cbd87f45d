"""connect: from a URL to a client, who acts, and from when the holder of a lease counts."""

from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Client, Invalid, MemoryStore, Unavailable
from penstock.domain.commands import Command, LeaseJobs
from penstock.testing import FakeClock
from tests.client.line import over_a_line
from tests.waiting import begun

SECRET = "hunter2"  # noqa: S105 the point is that nobody ever sees it
CALL = "0d6e1c1b-4a7e-4b57-9d3c-8a1f2e3d4c5b"

BAD_URLS: dict[str, Any] = {
    "no scheme": f"{SECRET}/jobs",
    "nothing": "",
    "a scheme without slashes": f"memory:{SECRET}",
    "a password before the colon": f"{SECRET}:x@db/jobs",
    "a password where the scheme should be": f"x@{SECRET}://db",
    "an unknown scheme": f"mongodb://ann:{SECRET}@db/jobs",
    "a broken address": f"mongodb://ann:{SECRET}@[db/jobs",
    "memory with a path": f"memory:///{SECRET}",
    "memory with a host": f"memory://{SECRET}",
    "memory with a question": f"memory://?password={SECRET}",
    "bytes": f"memory://{SECRET}".encode(),
    "a path": Path(SECRET),
}


@pytest.mark.parametrize("what", BAD_URLS)
async def test_a_url_that_names_no_store_is_refused_with_what_to_do_and_never_repeated(what: str) -> None:
    with pytest.raises(Invalid, match="memory://") as refused:
        await penstock.connect(BAD_URLS[what]).__aenter__()
    assert SECRET not in f"{refused.value} {refused.value.facts} {refused.value.__cause__} {refused.value.__context__}"


async def test_an_unknown_scheme_is_told_as_it_is_no_secret() -> None:
    with pytest.raises(Invalid) as refused:
        await penstock.connect("mongodb://db").__aenter__()
    assert refused.value.facts == {"scheme": "mongodb"}


async def test_a_url_and_a_store_are_one_too_many(clock: FakeClock) -> None:
    with pytest.raises(Invalid, match="not both"):
        await penstock.connect("memory://", store=MemoryStore(clock)).__aenter__()


async def test_neither_a_url_nor_a_store_is_one_too_few() -> None:
    with pytest.raises(Invalid, match="give the URL of a store"):
        await penstock.connect().__aenter__()


@pytest.mark.parametrize("url", ["memory://", "MEMORY://"])
async def test_every_memory_connection_has_jobs_of_its_own(url: str) -> None:
    async with penstock.connect(url) as one, penstock.connect(url) as two:
        await one.enqueue("mail")
        assert len(await one.list()) == 1
        assert await two.list() == []


async def test_a_bad_tenant_is_no_connection(clock: FakeClock) -> None:
    store = Closing(clock)
    with pytest.raises(Invalid, match="tenant"):
        await penstock.connect(store=store, tenant="a/b").__aenter__()
    assert store.opened == 0


class Closing(MemoryStore):
    """Knows how often it is open."""

    opened = 0

    async def open(self) -> None:
        self.opened += 1
        await super().open()

    async def close(self) -> None:
        self.opened -= 1
        await super().close()


async def test_the_connections_tenant_and_actor_are_in_the_history(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock, tenant="acme", actor="ann") as queue:
        job = await queue.enqueue("mail")
        await queue.acting(actor="bob").cancel(job.id)
        await queue.requeue(job.id)
        events = [entry.event for entry in await queue.history(job.id)]
        assert [(event.tenant, event.actor) for event in events] == [("acme", "ann"), ("acme", "bob"), ("acme", "ann")]


async def test_without_an_actor_the_history_names_nobody(queue: Client) -> None:
    job = await queue.enqueue("mail")
    [entry] = await queue.history(job.id)
    assert entry.event.actor is None


async def test_acting_keeps_what_it_is_not_told_to_change(clock: FakeClock) -> None:
    async with penstock.connect(store=MemoryStore(clock), clock=clock, tenant="acme", actor="ann") as queue:
        for acting, seen in (
            (queue.acting(), ("acme", "ann")),
            (queue.acting(actor="bob"), ("acme", "bob")),
            (queue.acting(tenant="other"), ("other", "ann")),
            (queue.acting(tenant="other").acting(actor="bob"), ("other", "bob")),
        ):
            job = await acting.enqueue("mail")
            [entry] = await acting.history(job.id)
            assert (entry.event.tenant, entry.event.actor) == seen


async def test_acting_for_an_empty_name_is_not_acting_for_the_old_one(queue: Client) -> None:
    with pytest.raises(Invalid, match="tenant"):
        queue.acting(tenant="")
    with pytest.raises(Invalid, match="actor"):
        await queue.acting(actor="").enqueue("mail")


def _travelling(queue: Client, clock: FakeClock, *, there_s: float, back_s: float) -> Client:
    """A client far away: a call takes its time there, and the answer back."""

    async def there(_: Command) -> None:
        clock.advance(there_s)

    async def back(_: Command) -> None:
        clock.advance(back_s)

    return over_a_line(queue, clock, before=there, after=back)


async def test_the_holder_counts_from_before_its_call_was_sent(queue: Client, clock: FakeClock) -> None:
    """And so never beyond the end that the store sees (rule 12)."""
    await queue.enqueue("mail")
    clock.advance(100)
    [lease] = await _travelling(queue, clock, there_s=3, back_s=4).lease("mail", lease_s=30)
    assert (clock.elapsed(), lease.ends_at) == (107, 130)


async def test_the_time_for_which_the_call_was_held_is_not_the_holders(queue: Client, clock: FakeClock) -> None:
    waiting = await begun(_travelling(queue, clock, there_s=3, back_s=4).lease("mail", lease_s=30, wait_s=20))
    clock.advance(10)
    await queue.enqueue("mail")
    [lease] = await waiting
    assert (lease.waited_s, lease.ends_at, clock.elapsed()) == (10, 40, 17)


async def test_a_repeated_call_counts_from_when_it_was_first_sent(queue: Client, clock: FakeClock) -> None:
    answers_lost = 2

    async def lost(command: Command) -> None:
        nonlocal answers_lost
        if isinstance(command, LeaseJobs) and answers_lost > 0:
            answers_lost -= 1
            raise Unavailable("no answer")

    await queue.enqueue("mail")
    worker = over_a_line(queue, clock, after=lost)
    clock.advance(100)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await worker.lease("mail", lease_s=30, request_id=CALL)
        clock.advance(10)
    for _ in range(2):
        [lease] = await worker.lease("mail", lease_s=30, request_id=CALL)
        assert lease.ends_at == 100 + 30
        clock.advance(1)


async def test_a_call_that_got_nothing_is_not_repeated_but_made_anew(queue: Client, clock: FakeClock) -> None:
    assert await queue.lease("mail", request_id=CALL) == []
    await queue.enqueue("mail")
    clock.advance(100)
    [lease] = await queue.lease("mail", lease_s=30, request_id=CALL)
    assert lease.ends_at == 100 + 30


async def test_the_calls_a_client_remembers_are_limited(queue: Client, clock: FakeClock) -> None:
    async def lost(_: Command) -> None:
        raise Unavailable("no answer")

    worker = over_a_line(queue, clock, before=lost)
    for number in range(1_100):
        with pytest.raises(Unavailable):
            await worker.lease("mail", request_id=f"{CALL}-{number}")
    assert len(worker._calls) == 1_000
