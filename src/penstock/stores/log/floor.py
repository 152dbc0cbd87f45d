"""Which answers about the log count: those about records above the floor (rule 2).

    gone/00000000000000000040

A deleted record has forgotten its decision: a writer that stood still could create it again and believe that it won.
So whoever deletes records (``clean.py``) puts a floor first, an empty object that says how far records may be gone from
now on, and deletes a day later. Floors only rise: one that arrives late lowers nothing. An answer about ``log/n`` counts
when a listing of the floors shows none at or above n, and was sent after the answer or less than ``listing_s`` before.
Any other answer is void: the process opens the log anew and decides again.

In a directory a listing costs next to nothing, so there ``listing_s`` is 0: every answer is followed by a listing, and no
clock is involved.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Final, TypeVar

from penstock.clock import Clock
from penstock.stores.log.bucket import Bucket

T = TypeVar("T")
FOLDER: Final = "gone/"


class Void(Exception):
    """An answer does not count: the record may have been deleted before it came."""


def key(seq: int) -> str:
    """The floor that says that records up to this one may be gone."""
    return f"{FOLDER}{seq:020}"


def seq_of(name: str) -> int:
    """Which floor a key names; -1 for what is none."""
    digits = name.removeprefix(FOLDER)
    return int(digits) if digits.isdecimal() and key(int(digits)) == name else -1


class Floor:
    """How far records may be gone, as far as this process knows."""

    def __init__(self, bucket: Bucket, clock: Clock, listing_s: float) -> None:
        self._bucket = bucket
        self._clock = clock
        self._listing_s = listing_s
        # When the last listing was sent, by both clocks, and what it showed.
        self._sent_at = (clock.elapsed(), clock.now())
        self._shown: int | None = None

    async def look(self) -> int:
        """List the floors: the highest counts."""
        sent_at = (self._clock.elapsed(), self._clock.now())
        shown = max((seq_of(listed.key) for listed in await self._bucket.list(FOLDER)), default=-1)
        self._sent_at, self._shown = sent_at, shown
        return shown

    async def counting(self, seq: int, answer: Awaitable[T], *, in_order: bool) -> T:
        """Give an answer about this record and those after it, if it counts; raises Void if it does not.

        ``in_order`` says that the bucket would carry out a listing made right after this call after it, too.
        """
        if in_order:
            given, floor = await asyncio.gather(answer, self.look())
        else:
            given, known = await answer, self._known()
            floor = await self.look() if known is None else known
        if floor >= seq:
            raise Void(seq)
        return given

    def _known(self) -> int | None:
        """The floor, if an answer that has come now counts without another listing."""
        elapsed, now = self._sent_at
        fresh = self._clock.elapsed() - elapsed < self._listing_s and abs(self._clock.now() - now) < timedelta(
            seconds=self._listing_s
        )
        return self._shown if fresh else None
