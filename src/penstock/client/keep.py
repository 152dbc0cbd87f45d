"""Keeps a lease alive while its job is worked on, and stops the work when the lease is lost."""

import asyncio
from types import TracebackType
from typing import Final, Protocol, Self

from penstock.clock import Clock, pause
from penstock.domain.job import Holding, Lease, State
from penstock.errors import LeaseLost, PenstockError

_MARGIN_S: Final = 1.0
_MARGIN_SHARE: Final = 0.05


class Beats(Protocol):
    """Whoever can send heartbeats."""

    async def heartbeat(self, lease: Lease, *, progress: float | None = None) -> Holding:
        """Extend the lease."""
        ...


class Keeper:
    """An async context: beats at a quarter of the lease, and cancels the body with LeaseLost when the lease is gone.

    Gone means: the store says so, the job was cancelled, or no heartbeat got through until shortly before the
    lease ends. Set ``progress`` to tell with the next beat how far the work is.
    """

    def __init__(self, client: Beats, clock: Clock, lease: Lease) -> None:
        self.progress: float | None = None
        self._client = client
        self._clock = clock
        self._lease = lease
        self._ends_at = lease.ends_at
        self._lost: LeaseLost | None = None
        self._body: asyncio.Task[object] | None = None
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._body = asyncio.current_task()
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._beating is not None
        assert self._body is not None
        self._beating.cancel()
        await asyncio.gather(self._beating, return_exceptions=True)
        if self._lost is not None and (kind is None or kind is asyncio.CancelledError) and self._body.uncancel() == 0:
            raise self._lost from error

    async def _beat(self) -> None:
        length_s = self._lease.expires_in_s
        margin_s = max(_MARGIN_S, _MARGIN_SHARE * length_s)
        while True:
            await pause(self._clock, min(length_s / 4, max(0.0, self._ends_at - margin_s - self._clock.elapsed())))
            sent_at = self._clock.elapsed()
            if sent_at >= self._ends_at - margin_s:
                self._stop(LeaseLost("no heartbeat got through in time: stop working on it", job_id=self._lease.job.id))
                return
            try:
                holding = await self._client.heartbeat(self._lease, progress=self.progress)
            except LeaseLost as lost:
                self._stop(lost)
                return
            except PenstockError:
                continue
            if holding is Holding.CANCELLED:
                self._stop(
                    LeaseLost(
                        "the job was cancelled: stop working on it", job_id=self._lease.job.id, state=State.CANCELLED
                    )
                )
                return
            self._ends_at = sent_at + length_s

    def _stop(self, lost: LeaseLost) -> None:
        self._lost = lost
        assert self._body is not None
        self._body.cancel()
