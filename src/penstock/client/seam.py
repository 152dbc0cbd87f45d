"""The one way in: whatever serves jobs, here or elsewhere, has these three methods."""

from collections.abc import AsyncIterator, Awaitable
from typing import Protocol

from penstock.domain.commands import Command
from penstock.domain.events import Entry
from penstock.domain.outcome import Result
from penstock.domain.queries import Answer, Query


class Seam(Protocol):
    """What a client talks to: the broker in this process, or one behind HTTP or gRPC."""

    def submit(self, command: Command) -> Awaitable[Result]:
        """Change something. Answered when durable; raises the refusal, or Unavailable: send the same again."""
        ...

    async def ask(self, query: Query) -> Answer:
        """Look; nothing is written."""
        ...

    def watch(self, tenant: str) -> AsyncIterator[Entry]:
        """Every event of the tenant from now on."""
        ...
