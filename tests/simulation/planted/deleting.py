"""Planted where records are deleted, and where answers about deleted ones are told from those that count (rule 2)."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

from penstock.stores.log import clean as cleaning
from penstock.stores.log import floor as floors
from penstock.stores.log import snapshot
from penstock.stores.log.bucket import Bucket, Taken
from penstock.stores.log.floor import Floor, Void
from tests.simulation.planted.bug import bug

# Processes that stand still for longer than a day, while the others make records and snapshots and delete them.
STANDING: Final[dict[str, Any]] = {
    "listing_s": 0.0,
    "day_s": 0.5,
    "pause_every": 150,
    "pause_s": 8.0,
    "clean_every_s": 0.5,
    "snapshot_records": 3,
    "processes": 3,
    "jobs": 40,
    "workers": 4,
    "active_s": 40.0,
    "crash_every": 0,
}
# The same, where a listing serves for some time and a day is longer than that.
LISTING: Final[dict[str, Any]] = {
    **STANDING,
    "listing_s": 1.0,
    "day_s": 1.2,
    "jobs": 60,
    "pause_every": 100,
    "in_order_bytes": 0,
}

# Floors that arrive when a higher one has long been there.
LATE: Final[dict[str, Any]] = {**STANDING, "late_floors": 0.7, "cleaners": 4, "pause_every": 60, "jobs": 60}


@bug("floor unchecked on delete", breaks="G1", where=Floor, what="counting", seeds=200, **STANDING)
async def _counts_always(_: Floor, __: int, answer: Awaitable[Any], **___: bool) -> Any:
    return await answer


@bug("the listing's age is asked before the answer", breaks="G1", where=Floor, what="counting", seeds=200, **LISTING)
async def _asked_before(floor: Floor, seq: int, answer: Awaitable[Any], **_: bool) -> Any:
    known = floor._known()
    given = await answer
    if (await floor.look() if known is None else known) >= seq:
        raise Void(seq)
    return given


@bug(
    "the floors are listed before the put",
    breaks="G1",
    where=Floor,
    what="counting",
    seeds=200,
    **STANDING | {"in_order_bytes": 1 << 20},
)
async def _listed_first(floor: Floor, seq: int, answer: Awaitable[Any], **_: bool) -> Any:
    shown, given = await asyncio.gather(floor.look(), answer)
    if shown >= seq:
        raise Void(seq)
    return given


@bug("the lowest floor counts", breaks="G1", where=Floor, what="look", seeds=100, **LATE)
async def _lowest(floor: Floor) -> int:
    return min((floors.seq_of(listed.key) for listed in await floor._bucket.list(floors.FOLDER)), default=-1)


@bug(
    "records deleted before their floor is a day old",
    breaks="G1",
    where=cleaning,
    what="clean",
    seeds=200,
    **LISTING | {"listing_s": 8.0, "day_s": 10.0, "pause_s": 3.0},
)
async def _deleted_at_once(bucket: Bucket, *, archived_to: int) -> int:
    newest = max([snapshot.seq_of(found.key) for found in await bucket.list(snapshot.FOLDER)], default=-1)
    return await _raised_and_deleted(bucket, min(newest, archived_to))


async def _raised_and_deleted(bucket: Bucket, reached: int) -> int:
    if reached <= 0:
        return 0
    with suppress(Taken):
        await bucket.put(floors.key(reached), b"")
    return await _deleted(bucket, reached)


async def _deleted(bucket: Bucket, reached: int) -> int:
    names = await cleaning._records(bucket, reached)
    for name in names:
        await bucket.delete(name)
    return len(names)


@bug(
    "floor put after the records are deleted",
    breaks="G1",
    where=cleaning,
    what="clean",
    seeds=200,
    **STANDING | {"slow": 0.05},
)
async def _floor_last(bucket: Bucket, *, archived_to: int) -> int:
    newest = max([snapshot.seq_of(found.key) for found in await bucket.list(snapshot.FOLDER)], default=-1)
    reached = min(newest, archived_to)
    deleted = await _deleted(bucket, reached) if reached > 0 else 0
    if deleted:
        with suppress(Taken):
            await bucket.put(floors.key(reached), b"")
    return deleted
