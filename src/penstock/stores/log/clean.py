"""Deleting what is no longer needed, so that no acknowledged commit is ever lost (rule 2).

Nothing in this release calls it with ``archived_to`` above 0, since there is no archive yet: records stay, and only
snapshots that others have made superfluous go.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from penstock.stores.log import floor, record, snapshot
from penstock.stores.log.bucket import Bucket, Listed, Taken

KEPT: Final = timedelta(hours=24)
_LOG: Final = "log/"


async def clean(bucket: Bucket, *, archived_to: int) -> int:
    """Delete superfluous snapshots, and the records below a floor that was old when the newest snapshot was made.

    Then raise the floor as far as the archive and the newest snapshot go, for another day. The time is the bucket's
    own. Answers how many objects went. May be broken off anywhere, and run by several processes at once.
    """
    snapshots = {snapshot.seq_of(found.key): found for found in await bucket.list(snapshot.FOLDER)}
    snapshots.pop(-1, None)
    if not snapshots:
        return 0
    newest = max(snapshots)
    now = snapshots[newest].stamped_at
    floors = {floor.seq_of(found.key): found for found in await bucket.list(floor.FOLDER)}
    gone_to = max((seq for seq, found in floors.items() if now - found.stamped_at >= KEPT), default=-1)
    names = [
        *(snapshot.key(seq) for seq in superfluous(snapshots, gone_to, now)),
        *(await _records(bucket, gone_to) if gone_to > 0 else ()),
        *(floor.key(seq) for seq in floors if 0 <= seq < gone_to),
    ]
    for name in names:
        await bucket.delete(name)
    reached = min(newest, archived_to)
    if reached > max(floors, default=0):
        with suppress(Taken):
            await bucket.put(floor.key(reached), b"")
    return len(names)


def superfluous(listed: Mapping[int, Listed], gone_to: int, now: datetime) -> list[int]:
    """The snapshots that may go: all but the newest, and the first of each hour of the last day above the floor."""
    first: dict[int, int] = {}
    for seq, found in sorted(listed.items()):
        if seq >= gone_to and now - found.stamped_at < KEPT:
            first.setdefault(int(found.stamped_at.timestamp() // 3600), seq)
    kept = {max(listed), *first.values()}
    return sorted(seq for seq in listed if seq not in kept)


async def _records(bucket: Bucket, last: int) -> list[str]:
    return sorted(found.key for found in await bucket.list(_LOG) if found.key <= record.key(last))
