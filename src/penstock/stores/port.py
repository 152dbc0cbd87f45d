"""What a store must do: the port that every store implements and the contract suite tests."""

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.domain.commands import Command
from penstock.domain.events import Record
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Answer, Query


class Store(Protocol):
    """Where jobs live.

    ``look_s`` is how often to ``refresh`` while somebody waits; None when nobody else can commit here.
    """

    @property
    def look_s(self) -> float | None:
        """Seconds between two looks for what others have committed."""
        ...

    async def open(self) -> None:
        """Get ready. Raises Unavailable or Corrupt rather than serve from a store that cannot keep its promise."""
        ...

    async def close(self) -> None:
        """Let go of what ``open`` took; everything committed is durable already."""
        ...

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = ...) -> list[Outcome]:
        """Apply the batch atomically and durably: one outcome per command, in order.

        When this returns, a crash loses nothing. When it raises Unavailable, the batch may or
        may not have been applied; committing the same commands again adds and loses nothing.

        ``awaited`` says whether anybody still waits for it, and is asked before the batch is decided: a caller that was
        told "unknown" may have sent the same call elsewhere and gone on from its answer.
        """
        ...

    async def ask(self, query: Query) -> Answer:
        """Look, at committed state only. Raises NotFound for an unknown job."""
        ...

    async def refresh(self) -> None:
        """Learn what others have committed by now, and tell whoever listens."""
        ...

    async def overdue(self) -> Sequence[Command]:
        """What time demands now: commands for leases that have run out or grown old, and deadlines that have passed."""
        ...

    async def outlived(self) -> Sequence[Command]:
        """Commands that purge finished jobs which were kept long enough."""
        ...

    async def parting(self) -> Sequence[Command]:
        """What must be committed before this process goes: how long it has watched which lease."""
        ...

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        """Call ``hear`` with every record from now on, once it is durable; answers how to stop that.

        Hints: a missed one costs time only.
        """
        ...
