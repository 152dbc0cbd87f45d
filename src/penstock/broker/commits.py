"""Group commit: commands that arrive while a commit is under way become the next one."""

import asyncio

from penstock.domain.commands import Command
from penstock.domain.outcome import Result
from penstock.errors import Busy, PenstockError, Unavailable
from penstock.stores.port import Store


class GroupCommit:
    """The one loop that commits. Callers wait for the outcome of their own command, in one batch with the others."""

    def __init__(self, store: Store, *, most_waiting: int) -> None:
        self._store = store
        self._most_waiting = most_waiting
        self._waiting: list[tuple[Command, asyncio.Future[Result]]] = []
        self._arrived = asyncio.Event()
        self._closed: PenstockError | None = None

    def submit(self, command: Command) -> "asyncio.Future[Result]":
        """Have the command committed with whatever else is waiting; the future gives its outcome or raises its refusal."""
        if self._closed is not None:
            raise self._closed
        if len(self._waiting) >= self._most_waiting:
            raise Busy("too many commands are waiting", retry_after_s=0.1, waiting=len(self._waiting))
        reply: asyncio.Future[Result] = asyncio.Future()
        if not self._waiting:
            self._arrived.set()
        self._waiting.append((command, reply))
        return reply

    async def run(self) -> None:
        """Commit until closed. Whoever still waits when this ends for another reason is told, not left hanging."""
        try:
            while self._waiting or self._closed is None:
                await self._arrived.wait()
                self._arrived.clear()
                if self._waiting:
                    batch, self._waiting = self._waiting, []
                    await self._commit(batch)
        finally:
            if self._closed is None:
                self._closed = Unavailable("the broker has stopped")
            for _, reply in self._waiting:
                _fail(reply, Unavailable("the broker stopped before this command was committed"))

    def close(self) -> None:
        """Take no more commands; those waiting are still committed."""
        self._closed = Unavailable("the broker is closed")
        self._arrived.set()

    async def _commit(self, batch: list[tuple[Command, asyncio.Future[Result]]]) -> None:
        try:
            outcomes = await self._store.commit([command for command, _ in batch])
        except BaseException as error:
            told = error if isinstance(error, PenstockError) else Unavailable("the commit was broken off")
            for _, reply in batch:
                _fail(reply, told)
            if not isinstance(error, PenstockError):
                raise
        else:
            for (_, reply), outcome in zip(batch, outcomes, strict=True):
                if not reply.done():
                    if isinstance(outcome, PenstockError):
                        reply.set_exception(outcome)
                    else:
                        reply.set_result(outcome)


def _fail(reply: asyncio.Future[Result], error: PenstockError) -> None:
    if not reply.done():
        reply.set_exception(error)
