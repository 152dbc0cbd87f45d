"""Which answers about the log count: those about records that nobody can have deleted (rule 2).

A deleted record has forgotten its decision: a writer that stood still could create it again and believe that it won.
Whoever deletes (``clean.py``) first removes every snapshot below the one it deletes up to, so the oldest snapshot there
is says how far records may be gone. An answer about ``log/n`` counts

- when a listing of ``snapshot/`` that this process sent less than ``listing_s`` ago shows none at or above n: a record
  may go only when a snapshot at or above it is a day old; or
- when a listing sent after the answer shows an oldest snapshot below n.

Any other answer is void: the process opens the log anew and decides again. In a directory a listing costs next to
nothing, so there ``listing_s`` is 0, every answer is followed by a listing, and no clock is involved.
"""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgspec import Struct

from penstock.clock import Clock
from penstock.stores.log.bucket import Bucket, Listed
from penstock.stores.log.snapshot import FOLDER, seq_of

T = TypeVar("T")
NONE: Final = -1


class Void(Exception):
    """An answer does not count: a snapshot at or above that record is, or may be, all that is left of it."""


class Snapshots(Struct, frozen=True, gc=False):
    """What one listing showed, and when it was sent by both of this process's clocks."""

    elapsed: float
    now: datetime
    oldest: int = NONE
    newest: int = NONE
    newest_bytes: int = 0


class Boundary:
    """How far back the log may be gone, as far as this process knows."""

    def __init__(self, bucket: Bucket, clock: Clock, listing_s: float) -> None:
        self._bucket = bucket
        self._clock = clock
        self._listing_s = listing_s
        self.known: Snapshots | None = None

    async def look(self) -> Snapshots:
        """List the snapshots."""
        elapsed, now = self._clock.elapsed(), self._clock.now()
        found: dict[int, Listed] = {seq_of(listed.key): listed for listed in await self._bucket.list(FOLDER)}
        found.pop(NONE, None)
        newest = max(found, default=NONE)
        size = found[newest].size if found else 0
        self.known = Snapshots(elapsed, now, min(found, default=NONE), newest, size)
        return self.known

    async def counting(self, seq: int, answer: Awaitable[T], *, in_order: bool) -> T:
        """Give an answer about this record and those after it, if it counts; raises Void if it does not.

        ``in_order`` says that the bucket would carry out a listing made right after this call after it, too.
        """
        if in_order:
            given, shown = await asyncio.gather(answer, self.look())
        else:
            given = await answer
            if self._covers(seq):
                return given
            shown = await self.look()
        if shown.oldest >= seq:
            raise Void(seq)
        return given

    def _covers(self, seq: int) -> bool:
        """Whether an answer that has come now counts without another listing."""
        known, window = self.known, timedelta(seconds=self._listing_s)
        return (
            known is not None
            and known.newest < seq
            and self._clock.elapsed() - known.elapsed < self._listing_s
            and abs(self._clock.now() - known.now) < window
        )
