"""Before the first write: does this bucket keep its promise, and does this machine's clock agree with it?"""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from penstock.clock import Clock
from penstock.errors import Invalid, NotFound, Unavailable
from penstock.stores.log.bucket import Bucket, Taken

FOLDER: Final = "probe/"
MOST_OFF: Final = timedelta(seconds=30)


async def probe(bucket: Bucket, clock: Clock) -> None:
    """Refuse a bucket that lets two win, or that does not show at once what was put; and a clock that is far off."""
    key, data = f"{FOLDER}{clock.secret()}", clock.secret().encode()
    try:
        await _create(bucket, key, data)
        await _create_again(bucket, key)
        await _read(bucket, key, data)
        stamps = [found.stamped_at for found in await bucket.list(FOLDER) if found.key == key]
    finally:
        await bucket.delete(key)
    if not stamps:
        raise Invalid("this bucket does not list a new object at once: it cannot hold a queue, use another")
    off = clock.now() - stamps[0]
    if abs(off) > MOST_OFF:
        raise Unavailable("this machine's clock is too far from the bucket's; set it", seconds=off.total_seconds())


async def _create(bucket: Bucket, key: str, data: bytes) -> None:
    # Nobody else knows the key: if it is taken, an earlier try of the same call has created it.
    with suppress(Taken):
        await bucket.put(key, data)


async def _read(bucket: Bucket, key: str, data: bytes) -> None:
    try:
        if await bucket.get(key) != data:
            raise Invalid("this bucket changes objects that exist: it cannot hold a queue, use another")
    except NotFound as error:
        raise Invalid("this bucket does not show a new object at once: it cannot hold a queue, use another") from error


async def _create_again(bucket: Bucket, key: str) -> None:
    try:
        await bucket.put(key, b"")
    except Taken:
        return
    raise Invalid("this bucket ignores create-only puts, so two could win: it cannot hold a queue, use another")
