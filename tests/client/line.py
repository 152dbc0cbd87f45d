"""The line between a client and its broker, on which a test can do what networks do."""

from collections.abc import AsyncIterator, Awaitable, Callable

from penstock import Client, Entry
from penstock.client.seam import Seam
from penstock.clock import Clock
from penstock.domain.commands import Command
from penstock.domain.outcome import Result
from penstock.domain.queries import Answer, Query

Happens = Callable[[Command], Awaitable[None]]


async def nothing(command: Command) -> None:
    del command


class Line:
    """Passes everything on. What happens before and after a command is the test's to say."""

    def __init__(self, seam: Seam, before: Happens, after: Happens) -> None:
        self._seam = seam
        self._before = before
        self._after = after

    async def submit(self, command: Command) -> Result:
        await self._before(command)
        answer = await self._seam.submit(command)
        await self._after(command)
        return answer

    async def ask(self, query: Query) -> Answer:
        return await self._seam.ask(query)

    def watch(self, tenant: str) -> AsyncIterator[Entry]:
        return self._seam.watch(tenant)


def over_a_line(queue: Client, clock: Clock, *, before: Happens = nothing, after: Happens = nothing) -> Client:
    """A client of the same broker, over a line."""
    return Client(Line(queue._seam, before, after), clock)
