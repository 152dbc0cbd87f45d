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
        self._commands: list[Command] = []
        self._replies: list[asyncio.Future[Result]] = []
        self._arrived = asyncio.Event()
        self._closed: PenstockError | None = None

    def submit(self, command: Command) -> "asyncio.Future[Result]":
        """Have the command committed with whatever else is waiting; the future gives its outcome or raises its refusal."""
        if self._closed is not None:
            raise self._closed
        if len(self._commands) >= self._most_waiting:
            raise Busy("too many commands are waiting", retry_after_s=0.1, waiting=len(self._commands))
        if not self._commands:
            self._arrived.set()
        self._commands.append(command)
        reply: asyncio.Future[Result] = asyncio.Future()
        self._replies.append(reply)
        return reply

    async def run(self) -> None:
        """Commit until closed. Whoever still waits when this ends for another reason is told, not left hanging."""
        try:
            while self._commands or self._closed is None:
                await self._arrived.wait()
                self._arrived.clear()
                if self._commands:
                    commands, self._commands = self._commands, []
                    replies, self._replies = self._replies, []
                    await self._commit(commands, replies)
        finally:
            if self._closed is None:
                self._closed = Unavailable("the broker has stopped")
            for reply in self._replies:
                _fail(reply, Unavailable("the broker stopped before this command was committed"))

    def close(self) -> None:
        """Take no more commands; those waiting are still committed."""
        self._closed = Unavailable("the broker is closed")
        self._arrived.set()

    async def _commit(self, commands: list[Command], replies: "list[asyncio.Future[Result]]") -> None:
        try:
            outcomes = await self._store.commit(commands)
        except BaseException as error:
            told = error if isinstance(error, PenstockError) else Unavailable("the commit was broken off")
            for reply in replies:
                _fail(reply, told)
            if not isinstance(error, PenstockError):
                raise
        else:
            for reply, outcome in zip(replies, outcomes, strict=True):
                if isinstance(outcome, PenstockError):
                    _fail(reply, outcome)
                elif not reply.done():
                    reply.set_result(outcome)


def _fail(reply: asyncio.Future[Result], error: PenstockError) -> None:
    if not reply.done():
        reply.set_exception(error)
