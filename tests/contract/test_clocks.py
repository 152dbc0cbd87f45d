"""Wall clocks (rules 8 and 10): they jump, and serve for delays alone; leases and order do not ask them."""

from datetime import datetime, timedelta

import pytest

from penstock import Client
from penstock.testing import FakeClock


class JumpingClock(FakeClock):
    """A clock whose wall time somebody sets, while elapsed time goes on as it should."""

    jumped_s = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.jumped_s)


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.mark.parametrize("jump_s", [86_400, -86_400])
async def test_a_lease_lasts_its_length_whatever_the_wall_clock_does(
    queue: Client, clock: JumpingClock, jump_s: float
) -> None:
    await queue.enqueue("mail")
    await queue.lease("mail", lease_s=30)
    clock.jumped_s = jump_s
    clock.advance(29)
    assert await queue.expire_now() == 0
    clock.advance(1)
    assert await queue.expire_now() == 1


async def test_first_in_is_first_out_though_the_wall_clock_went_back(queue: Client, clock: JumpingClock) -> None:
    first = await queue.enqueue("mail", 1)
    clock.jumped_s = -20
    second = await queue.enqueue("mail", 2)
    assert [lease.job.id for lease in await queue.lease("mail", limit=2)] == [first.id, second.id]


async def test_a_job_without_delay_is_ready_though_the_wall_clock_went_back(queue: Client, clock: JumpingClock) -> None:
    await queue.enqueue("mail")
    clock.jumped_s = -20
    assert len(await queue.lease("mail")) == 1


async def test_a_delay_is_kept_though_the_wall_clock_went_back(queue: Client, clock: JumpingClock) -> None:
    await queue.enqueue("mail", 1, delay_s=5)
    clock.advance(10)
    assert len(await queue.lease("mail")) == 1
    clock.jumped_s = -20
    job = await queue.enqueue("mail", 2, delay_s=10)
    assert job.run_at == clock.now() + timedelta(seconds=10)
    assert await queue.lease("mail") == []
    clock.advance(10)
    assert len(await queue.lease("mail")) == 1
