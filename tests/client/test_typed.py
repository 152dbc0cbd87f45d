"""typed: what goes in is of the type, what comes out is too, and what is not ends instead of coming back."""

from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from msgspec import Struct

from penstock import Client, Invalid, NewJob, Reason, State, Unavailable
from penstock.domain.commands import Command, LeaseJobs, Nack
from penstock.testing import FakeClock
from tests.client.line import over_a_line
from tests.waiting import begun


class StructEmail(Struct):
    to: str
    copies: int = 1


@dataclass
class DataEmail:
    to: str
    copies: int = 1


class ModelEmail(pydantic.BaseModel):
    to: str
    copies: int = 1


TYPES: list[type[Any]] = [StructEmail, DataEmail, ModelEmail]
of_each_sort = pytest.mark.parametrize("email", TYPES)

BAD = [
    NewJob("email", {"to": 5}),
    NewJob("email", {"copies": 2}),
    NewJob("email", ["a@b.c"]),
    NewJob("email", None),
    NewJob("email", b"\xff\x00"),
    NewJob("email", b""),
]


@of_each_sort
async def test_what_comes_out_is_what_went_in(queue: Client, email: type[Any]) -> None:
    emails = queue.typed("email", email)
    job = await emails.enqueue(email(to="a@b.c", copies=3), priority=-1, kind="send")
    assert (job.payload, job.priority, job.kind) == ({"to": "a@b.c", "copies": 3}, -1, "send")
    [lease] = await emails.lease(lease_s=45, worker="w1")
    assert type(lease.payload) is email
    assert lease.payload == email(to="a@b.c", copies=3)
    assert (lease.job.id, lease.job.worker, lease.expires_in_s) == (job.id, "w1", 45)


@of_each_sort
async def test_a_typed_lease_is_a_lease(queue: Client, clock: FakeClock, email: type[Any]) -> None:
    emails = queue.typed("email", email)
    await emails.enqueue(email(to="a@b.c"))
    clock.advance(7)
    [lease] = await emails.lease()
    assert lease.ends_at == clock.elapsed() + 30
    async with queue.keep(lease):
        pass
    assert (await queue.ack(lease)).state is State.SUCCEEDED


@of_each_sort
async def test_many_go_in_at_once(queue: Client, email: type[Any]) -> None:
    emails = queue.typed("email", email)
    jobs = await emails.enqueue_many((email(to=str(number)) for number in range(5)), max_attempts=2)
    assert [job.max_attempts for job in jobs] == [2] * 5
    assert [lease.payload for lease in await emails.lease(limit=9)] == [email(to=str(number)) for number in range(5)]


def _wrong(email: type[Any]) -> Any:
    """One whose field is of another type, made without its leave."""
    return email.model_construct(to=5) if email is ModelEmail else email(to=5)


@of_each_sort
async def test_a_value_of_another_type_is_refused(queue: Client, email: type[Any]) -> None:
    emails = queue.typed("email", email)
    endless: list[Any] = []
    endless.append(endless)
    for wrong in (_wrong(email), None, "a@b.c", object(), 2**70, endless):
        with pytest.raises(Invalid, match=f"the payload is no {email.__name__}"):
            await emails.enqueue(wrong)
        with pytest.raises(Invalid, match=f"the payload is no {email.__name__}"):
            await emails.enqueue_many([email(to="a@b.c"), wrong])
    assert await queue.list() == []


async def test_types_that_have_no_name_are_types_too(queue: Client) -> None:
    numbers = queue.typed("numbers", list[int])
    await numbers.enqueue([1, 2])
    [lease] = await numbers.lease()
    assert lease.payload == [1, 2]
    either: Any = int | None
    with pytest.raises(Invalid, match=r"the payload is no int \| None"):
        await queue.typed("numbers", either).enqueue("one")


class Letter(pydantic.BaseModel):
    """A model whose names in JSON are others, and that says more than it reads."""

    model_config = pydantic.ConfigDict(extra="forbid")
    sender: str = pydantic.Field(alias="from")
    extra: pydantic.Json[list[int]]

    @pydantic.computed_field  # type: ignore[prop-decorator] # as pydantic's own pages have it
    @property
    def stamp(self) -> str:
        return f"from {self.sender}"


async def test_a_model_with_aliases_and_computed_fields_is_read_as_it_was_written(queue: Client) -> None:
    letters = queue.typed("letters", Letter)
    letter = Letter.model_validate({"from": "a", "extra": "[1, 2]"})
    job = await letters.enqueue(letter)
    assert job.payload == {"from": "a", "extra": "[1,2]"}
    [lease] = await letters.lease()
    assert lease.payload == letter


@of_each_sort
@pytest.mark.parametrize("limit", [1, 4, 100])
async def test_a_payload_that_is_none_of_the_type_is_dead_and_the_good_ones_after_it_are_returned(
    queue: Client, email: type[Any], limit: int
) -> None:
    emails = queue.typed("email", email)
    bad = await queue.enqueue_many(BAD)
    await emails.enqueue(email(to="good"))
    [lease] = await emails.lease(limit=limit)
    assert lease.payload == email(to="good")
    dead = [await queue.get(job.id) for job in bad]
    assert [(job.state, job.reason, job.attempt) for job in dead] == [(State.DEAD, Reason.BAD_PAYLOAD, 1)] * len(bad)
    assert all(job.error is not None and job.error.startswith("bad payload: ") for job in dead)


@of_each_sort
async def test_when_all_are_bad_it_comes_back_empty(queue: Client, email: type[Any]) -> None:
    await queue.enqueue_many(BAD)
    assert await queue.typed("email", email).lease(limit=2) == []
    [stats] = await queue.stats()
    assert (stats.queued, stats.leased, stats.dead) == (0, 0, len(BAD))


async def test_all_bad_ones_of_a_call_are_dead_in_one_commit(queue: Client) -> None:
    jobs = await queue.enqueue_many(NewJob("email", number) for number in range(50))
    await queue.typed("email", StructEmail).lease(limit=100)
    assert len({(await queue.history(job.id))[-1].seq for job in jobs}) == 1


async def test_it_comes_back_though_bad_ones_never_end(queue: Client, clock: FakeClock) -> None:
    async def another(command: Command) -> None:
        if isinstance(command, Nack):
            await queue.enqueue("email", "bad")

    await queue.enqueue("email", "bad")
    endless = over_a_line(queue, clock, before=another).typed("email", StructEmail)
    assert await endless.lease() == []
    [stats] = await queue.stats()
    assert (stats.queued, stats.leased) == (1, 0)


async def test_a_bad_one_does_not_make_it_wait_longer(queue: Client, clock: FakeClock) -> None:
    waiting = await begun(queue.typed("email", StructEmail).lease(wait_s=20))
    clock.advance(15)
    bad = await begun(queue.enqueue("email", "bad"))
    assert (await queue.get((await bad).id)).state is State.DEAD
    assert not waiting.done()
    clock.advance(5)
    assert await waiting == []


async def test_nor_shorter(queue: Client, clock: FakeClock) -> None:
    emails = queue.typed("email", StructEmail)
    waiting = await begun(emails.lease(wait_s=20))
    clock.advance(15)
    await begun(queue.enqueue("email", "bad"))
    clock.advance(4)
    await emails.enqueue(StructEmail("a@b.c"))
    [lease] = await waiting
    assert lease.ends_at == clock.elapsed() + 30


async def test_a_bad_one_that_another_has_ended_meanwhile_does_not_cost_the_good_ones(
    queue: Client, clock: FakeClock
) -> None:
    bad = await queue.enqueue("email", "bad")
    await queue.enqueue("email", {"to": "good"})

    async def cancelled(command: Command) -> None:
        if isinstance(command, LeaseJobs):
            await queue.cancel(bad.id)

    [lease] = await over_a_line(queue, clock, after=cancelled).typed("email", StructEmail).lease(limit=2)
    assert lease.payload.to == "good"
    assert (await queue.get(bad.id)).state is State.CANCELLED


async def test_nor_does_one_that_cannot_be_ended_now(queue: Client, clock: FakeClock) -> None:
    bad = await queue.enqueue("email", "bad")
    await queue.enqueue("email", {"to": "good"})

    async def broken(command: Command) -> None:
        if isinstance(command, Nack):
            raise Unavailable("no answer")

    [lease] = await over_a_line(queue, clock, before=broken).typed("email", StructEmail).lease(limit=2)
    assert lease.payload.to == "good"
    clock.advance(30)
    await queue.expire_now()
    clock.advance(3600)
    await queue.typed("email", StructEmail).lease(limit=2)
    assert (await queue.get(bad.id)).reason is Reason.BAD_PAYLOAD


@dataclass
class Picky:
    to: str

    def __post_init__(self) -> None:
        {"a": 1}[self.to]


async def test_whatever_the_types_own_code_raises_is_a_bad_payload(queue: Client) -> None:
    bad = await queue.enqueue("email", {"to": "b"})
    await queue.enqueue("email", {"to": "a"})
    [lease] = await queue.typed("email", Picky).lease(limit=2)
    assert lease.payload == Picky("a")
    assert (await queue.get(bad.id)).reason is Reason.BAD_PAYLOAD
