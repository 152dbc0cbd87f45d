"""Keeps a lease alive while its job is worked on, and stops the work when the lease is lost."""

import asyncio
from types import TracebackType
from typing import Final, Protocol, Self

from penstock.clock import Clock, pause
from penstock.domain import limits
from penstock.domain.job import Holding, Lease, State
from penstock.errors import LeaseLost, PenstockError

_MARGIN_S: Final = 1.0
_MARGIN_SHARE: Final = 0.05


class Beats(Protocol):
    """Whoever can send heartbeats."""

    async def heartbeat(self, lease: Lease, *, progress: float | None = None, ride_s: float = 0.0) -> Holding:
        """Extend the lease."""
        ...


class Keeper:
    """An async context: beats at a quarter of the lease, and cancels the body with LeaseLost when the lease is gone.

    Gone means: the store says so, the job was cancelled, or no heartbeat got through until shortly before the
    lease ends. Set ``progress`` to tell with the next beat how far the work is.
    """

    def __init__(self, client: Beats, clock: Clock, lease: Lease) -> None:
        self._client = client
        self._clock = clock
        self._lease = lease
        self._progress: float | None = None
        self._ends_at = lease.ends_at
        self._lost: LeaseLost | None = None
        self._body: asyncio.Task[object] | None = None
        self._cancels_before = 0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def progress(self) -> float | None:
        """How far the work is, from 0 to 1."""
        return self._progress

    @progress.setter
    def progress(self, value: float | None) -> None:
        # Refused here, where the mistake is: a beat that is refused each time would cost the lease.
        if value is not None:
            limits.progress(value)
        self._progress = value

    async def __aenter__(self) -> Self:
        self._body = asyncio.current_task()
        assert self._body is not None
        self._cancels_before = self._body.cancelling()
        self._tasks = [asyncio.create_task(work) for work in (self._guard(), self._beat())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._body is not None
        for task in self._tasks:
            task.cancel()
        others_cancel = False
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            if self._lost is not None:
                # Our own cancellation is taken back whatever happens: the task may go on with its next job.
                others_cancel = self._body.uncancel() > self._cancels_before
        if self._lost is not None and (kind is None or (kind is asyncio.CancelledError and not others_cancel)):
            raise self._lost from error

    async def _guard(self) -> None:
        # Beside the beats, since one that is never answered must not keep the body running.
        while (left_s := self._left_s()) > 0:
            await pause(self._clock, left_s)
        self._run_out()

    async def _beat(self) -> None:
        quarter_s = self._lease.expires_in_s / 4
        # A lease that has lain about before it is kept is extended at once.
        await pause(self._clock, max(0.0, self._ends_at - 3 * quarter_s - self._clock.elapsed()))
        while self._left_s() > 0:
            if not await self._extended():
                return
            await pause(self._clock, quarter_s)
        self._run_out()

    async def _extended(self) -> bool:
        sent_at = self._clock.elapsed()
        ride_s = self._lease.expires_in_s / 12
        try:
            holding = await self._client.heartbeat(self._lease, progress=self._progress, ride_s=ride_s)
        except LeaseLost as lost:
            self._stop(lost)
            return False
        except PenstockError:
            # The next one may get through.
            return True
        if holding is Holding.CANCELLED:
            message = "the job was cancelled: stop working on it"
            self._stop(LeaseLost(message, job_id=self._lease.job.id, state=State.CANCELLED))
            return False
        self._ends_at = sent_at + self._lease.expires_in_s
        return True

    def _left_s(self) -> float:
        margin_s = max(_MARGIN_S, _MARGIN_SHARE * self._lease.expires_in_s)
        return self._ends_at - margin_s - self._clock.elapsed()

    def _run_out(self) -> None:
        self._stop(LeaseLost("no heartbeat got through in time: stop working on it", job_id=self._lease.job.id))

    def _stop(self, lost: LeaseLost) -> None:
        if self._lost is None:
            self._lost = lost
            assert self._body is not None
            self._body.cancel()
