"""Does a bucket keep its promise? Checks for whoever writes one; they need no test framework.

    import asyncio
    from penstock.testing.bucket_contract import check_bucket

    def test_my_bucket_keeps_the_promise() -> None:
        asyncio.run(check_bucket(lambda: MyBucket("somewhere")))

Each call of the function given opens the same place once more. A check works in a folder with a random name and
removes what it has put there: the place may be in use. ``CHECKS`` are the checks one by one, and
``check_bucket(open_bucket, [check])`` makes one of them. The first promise that is broken is raised.
"""

from asyncio import gather
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from penstock.clock import SystemClock
from penstock.errors import Invalid, NotFound, Unavailable
from penstock.stores.log.bucket import LONGEST_KEY, Bucket, Taken

_RIVALS: Final = 16
_RACES: Final = 50
_AT_ONCE: Final = 50
# Object stores show a thousand names at a time.
_MORE_THAN_A_PAGE: Final = 1_001
_SIZES: Final = (0, 1, 2_048, 1 << 20, (1 << 20) + 1, 5 << 20)

_BAD_KEYS: Final = (
    *("", ".", "..", "/", "../x", "x/..", "x/../y", "./x", "x/./y"),
    *("/x", "x/", "x//y", "x\\y", "..\\x", "x\0", "x\0/y", ".x", "x/.y", "-x"),
    *("x y", "x\n", "x:y", "x*", "x%2e", "\N{LATIN SMALL LETTER E WITH ACUTE}", "x" * (LONGEST_KEY + 1)),
)
_BAD_PREFIXES: Final = ("x", "/", "//", "../", "x/../", "/x/", "x//", "x\0/", "x\\/")


class Place:
    """What one check works on: a folder that nobody else knows, and buckets that are open on the same place."""

    def __init__(self, open_bucket: Callable[[], Bucket]) -> None:
        self._open_bucket = open_bucket
        self._opened: list[Bucket] = []
        self.folder: Final = f"check/{SystemClock().secret()}/"

    def open(self) -> Bucket:
        """Open the place once more."""
        self._opened.append(self._open_bucket())
        return self._opened[-1]

    async def leave(self) -> None:
        """Delete what the check has put, and close what it has opened."""
        bucket = self.open()
        await _in_parts(bucket.delete, await _keys(bucket, self.folder))
        for opened in self._opened:
            await opened.close()


Check = Callable[[Place], Awaitable[None]]


async def check_bucket(open_bucket: Callable[[], Bucket], checks: Iterable[Check] | None = None) -> None:
    """Make the checks, or those given, on buckets that the function opens. Raises at the first broken promise."""
    for check in CHECKS if checks is None else checks:
        place = Place(open_bucket)
        try:
            await check(place)
        except Exception as error:
            error.add_note(f"the promise: {check.__doc__}")
            with suppress(Exception):
                await place.leave()
            raise
        await place.leave()


async def of_puts_at_once_one_wins(place: Place) -> None:
    """Of sixteen puts of one key at once, from two buckets, one creates the object and the others are Taken."""
    buckets = place.open(), place.open()
    for race in range(_RACES):
        key = f"{place.folder}race/{race}"
        rivals = [_wins(buckets[rival % 2], key, b"%d %d" % (race, rival)) for rival in range(_RIVALS)]
        winners = [rival for rival, wins in enumerate(await gather(*rivals)) if wins]
        _expect(len(winners) == 1, f"{len(winners)} puts of one key have succeeded")
        for bucket in buckets:
            _expect(await bucket.get(key) == b"%d %d" % (race, winners[0]), "the object is not the winner's")


async def a_taken_object_stays_as_it_is(place: Place) -> None:
    """A put that is Taken changes nothing, whatever it brings."""
    one, other = place.open(), place.open()
    key = f"{place.folder}taken"
    await one.put(key, b"first")
    for bucket in (one, other):
        for data in (b"first", b"second", b""):
            _expect(not await _wins(bucket, key, data), "a second put has succeeded")
            _expect(await bucket.get(key) == b"first", "a put that was Taken has changed the object")


async def a_new_object_is_there_at_once(place: Place) -> None:
    """What has been put is got and listed at once, also by a bucket that has just found nothing there."""
    one, other = place.open(), place.open()
    for number in range(10):
        key = f"{place.folder}new/{number}"
        await _expect_none(other, key)
        await one.put(key, b"new")
        _expect(await other.get(key) == b"new", "the new object is not got")
        _expect(key in await _keys(other, f"{place.folder}new/"), "the new object is not listed")


async def a_listing_is_whole(place: Place) -> None:
    """A listing shows all that were put before, each once, with size and an aware time; none that were deleted before."""
    bucket, other = place.open(), place.open()
    keys = [f"{place.folder}many/{number:04}" for number in range(_MORE_THAN_A_PAGE)]
    await _in_parts(lambda key: bucket.put(key, b"four"), keys)
    found = await other.list(f"{place.folder}many/")
    _expect(sorted(one.key for one in found) == keys, "the listing does not show each object once")
    _expect({one.size for one in found} == {4}, "the listing shows a wrong size")
    _expect(all(one.stamped_at.utcoffset() is not None for one in found), "the listing shows a time without an offset")
    await _in_parts(bucket.delete, keys[1::2])
    _expect(
        await _keys(other, f"{place.folder}many/") == keys[::2], "the listing shows what was deleted, or hides the rest"
    )


async def a_prefix_is_a_folder(place: Place) -> None:
    """A prefix shows what lies below that folder at any depth, and nothing beside it; an empty one shows everything."""
    bucket = place.open()
    folder = f"{place.folder}a/"
    inside = [f"{folder}{name}" for name in ("b/c", "b/d/e", "f")]
    beside = [f"{place.folder}{name}" for name in ("aa", "ab/c", "b/c")]
    for key in (*inside, *beside):
        await bucket.put(key, b"")
    for prefix, keys in (
        (folder, inside),
        (f"{folder}b/", inside[:2]),
        (f"{folder}b/d/", inside[1:2]),
        (place.folder, [*inside, *beside]),
        (f"{place.folder}none/", []),
    ):
        _expect(await _keys(bucket, prefix) == sorted(keys), f"the listing is wrong, prefix={prefix}")
    _expect({*inside, *beside} <= {*await _keys(bucket, "")}, "the empty prefix does not show everything")


async def what_is_deleted_is_gone(place: Place) -> None:
    """A missing object is NotFound, to delete it is harmless, and a deleted key can be put again."""
    one, other = place.open(), place.open()
    key = f"{place.folder}gone/1"
    await _expect_none(one, key)
    await one.delete(key)
    for data in (b"first", b"second"):
        await one.put(key, data)
        _expect(await other.get(key) == data, "the object is not the one that was put last")
        await other.delete(key)
        await _expect_none(one, key)
        await one.delete(key)
    _expect(await _keys(one, place.folder) == [], "a deleted object is listed")


async def an_object_has_any_size(place: Place) -> None:
    """Objects of no bytes up to 5 MiB come back as they were, whatever the bytes."""
    bucket = place.open()
    for size in _SIZES:
        key = f"{place.folder}size/{size}"
        data = (bytes(range(256)) * (size // 256 + 1))[:size]
        await bucket.put(key, data)
        _expect(await bucket.get(key) == data, f"the object has come back otherwise, size={size}")
    sizes = {found.size for found in await bucket.list(f"{place.folder}size/")}
    _expect(sizes == {*_SIZES}, "the listing shows a wrong size")


async def a_bad_key_is_refused(place: Place) -> None:
    """What is no key is Invalid for every method, and nothing happens; the longest key works."""
    bucket = place.open()
    for bad in _BAD_KEYS:
        await _expect_raised(Invalid, bucket.put(bad, b"bad"), f"put {bad!r}")
        await _expect_raised(Invalid, bucket.get(bad), f"get {bad!r}")
        await _expect_raised(Invalid, bucket.delete(bad), f"delete {bad!r}")
        if bad:
            await _expect_raised(Invalid, bucket.put(f"{place.folder}{bad}/{bad}", b"bad"), f"put a folder {bad!r}")
    for bad in _BAD_PREFIXES:
        await _expect_raised(Invalid, bucket.list(bad), f"list {bad!r}")
    _expect(await _keys(bucket, place.folder) == [], "a key that was refused has left an object")
    longest = place.folder + "x" * (LONGEST_KEY - len(place.folder))
    await bucket.put(longest, b"long")
    _expect(await bucket.get(longest) == b"long", "the longest key does not work")


async def a_closed_bucket_answers_nothing(place: Place) -> None:
    """Closing answers the calls made before; later ones are Unavailable, and closing again is harmless."""
    bucket, key = place.open(), f"{place.folder}closed"
    await gather(bucket.put(key, b"before"), bucket.close())
    await _expect_raised(Unavailable, bucket.put(f"{key}-later", b""), "put after close")
    await _expect_raised(Unavailable, bucket.get(key), "get after close")
    await _expect_raised(Unavailable, bucket.list(""), "list after close")
    await _expect_raised(Unavailable, bucket.delete(key), "delete after close")
    await bucket.close()
    _expect(await _keys(place.open(), place.folder) == [key], "closing has lost a call, or a closed bucket did one")


async def what_is_there_outlives_the_bucket(place: Place) -> None:
    """An object is Taken and whole when the place is opened again, and a deleted one is still gone."""
    first = place.open()
    await first.put(f"{place.folder}kept", b"kept")
    await first.put(f"{place.folder}gone", b"gone")
    await first.delete(f"{place.folder}gone")
    await first.close()
    second = place.open()
    _expect(not await _wins(second, f"{place.folder}kept", b"other"), "a put has succeeded again after reopening")
    _expect(await second.get(f"{place.folder}kept") == b"kept", "the object has not outlived the bucket")
    await _expect_none(second, f"{place.folder}gone")


CHECKS: Final[tuple[Check, ...]] = (
    of_puts_at_once_one_wins,
    a_taken_object_stays_as_it_is,
    a_new_object_is_there_at_once,
    a_listing_is_whole,
    a_prefix_is_a_folder,
    what_is_deleted_is_gone,
    an_object_has_any_size,
    a_bad_key_is_refused,
    a_closed_bucket_answers_nothing,
    what_is_there_outlives_the_bucket,
)


def _expect(kept: bool, broken: str) -> None:  # noqa: FBT001 - it reads as an assert, which -O would leave out
    if not kept:
        raise AssertionError(broken)


async def _expect_raised(kind: type[Exception], call: Awaitable[object], what: str) -> None:
    try:
        await call
    except kind:
        return
    raise AssertionError(f"not refused with {kind.__name__}: {what}")


async def _expect_none(bucket: Bucket, key: str) -> None:
    await _expect_raised(NotFound, bucket.get(key), "get of a key that has no object")


async def _wins(bucket: Bucket, key: str, data: bytes) -> bool:
    try:
        await bucket.put(key, data)
    except Taken:
        return False
    return True


async def _keys(bucket: Bucket, prefix: str) -> list[str]:
    return sorted(found.key for found in await bucket.list(prefix))


async def _in_parts(call: Callable[[str], Awaitable[None]], keys: list[str]) -> None:
    for first in range(0, len(keys), _AT_ONCE):
        await gather(*map(call, keys[first : first + _AT_ONCE]))
