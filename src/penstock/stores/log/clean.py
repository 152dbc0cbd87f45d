"""Deleting what is no longer needed, so that no acknowledged commit is ever lost (rule 2).

Nothing in this release calls it with ``archived_to`` above 0, since there is no archive yet: records stay, and only
snapshots that others have made superfluous go.
"""

from datetime import timedelta
from typing import Final

from penstock.stores.log import record
from penstock.stores.log.bucket import Bucket, Listed
from penstock.stores.log.snapshot import FOLDER, key, seq_of

KEPT: Final = timedelta(hours=24)
_LOG: Final = "log/"


async def clean(bucket: Bucket, *, archived_to: int, kept: timedelta = KEPT) -> int:
    """Delete superfluous snapshots, then the records up to a snapshot that was old when the newest was made.

    Of the last day the first snapshot of each hour stays, and the newest always. Records go only as far as the archive holds
    them. Answers how many objects went. May be broken off anywhere and run by several processes at once.
    """
    listed = {seq_of(found.key): found for found in await bucket.list(FOLDER) if seq_of(found.key) >= 0}
    if not listed:
        return 0
    newest = listed[max(listed)].stamped_at
    old = [seq for seq, found in listed.items() if newest - found.stamped_at >= kept]
    boundary = max(old, default=-1)
    gone = superfluous(listed, boundary)
    # The snapshots first, and all of them: the oldest that is left tells how far records may be gone.
    for seq in gone:
        await bucket.delete(key(seq))
    return len(gone) + (await _delete_records(bucket, min(boundary, archived_to)) if boundary >= 0 else 0)


def superfluous(listed: dict[int, Listed], boundary: int) -> list[int]:
    """The snapshots that may go: all below the boundary, and above it all but the first of each hour and the newest."""
    first: dict[int, int] = {}
    for seq in sorted(seq for seq in listed if seq > boundary):
        first.setdefault(int(listed[seq].stamped_at.timestamp() // 3600), seq)
    kept = {boundary, max(listed), *first.values()}
    return sorted(seq for seq in listed if seq not in kept)


async def _delete_records(bucket: Bucket, last: int) -> int:
    gone = sorted(found.key for found in await bucket.list(_LOG) if found.key <= record.key(last))
    for name in gone:
        await bucket.delete(name)
    return len(gone)
