"""Group commit: commands that arrive while a commit is under way become the next one."""

import asyncio
import logging
from asyncio import Future
from collections.abc import Sequence
from functools import partial
from typing import Final

from penstock.clock import Clock, Timer, pause
from penstock.domain.commands import Command
from penstock.domain.outcome import Result
from penstock.errors import Busy, PenstockError, Unavailable
from penstock.stores.port import Store

_log: Final = logging.getLogger("penstock")
_FIRST_RETRY_S: Final = 0.05
_LAST_RETRY_S: Final = 2.0


class _Batch:
    """Commands that are committed together, and whoever waits for them."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.replies: list[Future[Result]] = []
        self.timer: Timer | None = None

    def tell(self, error: PenstockError) -> None:
        """Tell everybody who still waits."""
        for reply in self.replies:
            if not reply.done():
                reply.set_exception(error)

    def awaited(self) -> bool:
        """Whether anybody still waits for it."""
        return any(not reply.done() for reply in self.replies)


class GroupCommit:
    """The one loop that commits. Callers wait for the outcome of their own command, in one batch with the others.

    A store that is unavailable is asked again until it answers; nobody waits longer than ``answer_s`` for that.
    """

    def __init__(self, store: Store, clock: Clock, *, most_waiting: int, answer_s: float) -> None:
        self._store = store
        self._clock = clock
        self._most_waiting = most_waiting
        self._answer_s = answer_s
        self._waiting = _Batch()
        self._arrived = asyncio.Event()
        # Whether those waiting have caused a commit already.
        self._called = False
        self._ride: Timer | None = None
        self._closed: PenstockError | None = None

    def submit(self, command: Command, *, ride_s: float = 0.0) -> "Future[Result]":
        """Have the command committed with whatever else is waiting; the future gives its outcome or raises its refusal.

        One with ``ride_s`` may wait so long for another to ride with before it causes a commit.
        """
        if self._closed is not None:
            raise self._closed
        batch = self._waiting
        if len(batch.commands) >= self._most_waiting:
            raise Busy("too many commands are waiting", retry_after_s=0.1, waiting=len(batch.commands))
        if not self._called:
            self._call(ride_s)
        reply: Future[Result] = Future()
        batch.commands.append(command)
        batch.replies.append(reply)
        return reply

    async def submit_all(self, commands: Sequence[Command]) -> list[Result]:
        """Have the broker's own commands committed; they are not refused for being many."""
        if self._closed is not None:
            raise self._closed
        if not commands:
            return []
        self._call(0.0)
        batch = self._waiting
        replies: list[Future[Result]] = [Future() for _ in commands]
        batch.commands += commands
        batch.replies += replies
        return await asyncio.gather(*replies)

    async def run(self) -> None:
        """Commit until closed. Whoever still waits when this ends for another reason is told, not left hanging."""
        fault: BaseException | None = None
        try:
            while self._waiting.commands or self._closed is None:
                await self._arrived.wait()
                self._arrived.clear()
                batch = self._taken()
                if batch.commands:
                    await self._commit(batch)
        except BaseException as error:
            fault = error
            raise
        finally:
            if self._closed is None:
                self._closed = Unavailable("the broker has stopped")
            unheard = Unavailable("the broker stopped before this command was committed")
            unheard.__cause__ = fault
            self._taken().tell(unheard)

    def close(self) -> None:
        """Take no more commands; those waiting are still committed."""
        self._closed = Unavailable("the broker is closed")
        self._arrived.set()

    def _call(self, ride_s: float) -> None:
        """Have those waiting committed, now or after the ride, and answered in time."""
        batch = self._waiting
        if batch.timer is None:
            batch.timer = self._clock.call_later(self._answer_s, partial(self._give_up, batch))
        if ride_s <= 0:
            self._called = True
            self._arrived.set()
        elif self._ride is None:
            self._ride = self._clock.call_later(ride_s, self._arrived.set)

    def _taken(self) -> _Batch:
        batch, self._waiting = self._waiting, _Batch()
        self._called = False
        if self._ride is not None:
            self._ride.cancel()
            self._ride = None
        return batch

    def _give_up(self, batch: _Batch) -> None:
        """Leave nobody waiting for a store that does not answer. What is under way goes on: its outcome is unknown."""
        if batch is self._waiting:
            self._taken()
        batch.tell(Unavailable("the store does not answer; send the same command again", waited_s=self._answer_s))

    async def _commit(self, batch: _Batch) -> None:
        try:
            for reply, outcome in zip(batch.replies, await self._outcomes(batch), strict=True):
                if reply.done():
                    continue
                if isinstance(outcome, PenstockError):
                    reply.set_exception(outcome)
                else:
                    reply.set_result(outcome)
        except PenstockError as refusal:
            batch.tell(refusal)
        except BaseException as error:
            told = Unavailable("the commit was broken off; its outcome is unknown")
            told.__cause__ = error
            batch.tell(told)
            raise
        finally:
            if batch.timer is not None:
                batch.timer.cancel()

    async def _outcomes(self, batch: _Batch) -> Sequence[Result | PenstockError]:
        wait_s = _FIRST_RETRY_S
        while True:
            try:
                return await self._store.commit(batch.commands, batch.awaited)
            except Unavailable as error:
                if not batch.awaited():
                    raise
                _log.warning("store_unavailable commands=%s error=%s", len(batch.commands), error)
            await pause(self._clock, wait_s * (0.5 + self._clock.chance() / 2))
            wait_s = min(2 * wait_s, _LAST_RETRY_S)
