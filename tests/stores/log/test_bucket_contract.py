"""Our buckets keep the promise of the port, and a bucket that breaks it is found out."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import cycle
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.errors import NotFound
from penstock.stores.log.bucket import Bucket, Listed, Taken
from penstock.stores.log.directory import DirectoryBucket
from penstock.testing import FakeClock, bucket_contract
from penstock.testing.bucket import MemoryBucket
from penstock.testing.bucket_contract import CHECKS, Check, check_bucket
from tests.stores.log.disks import tmpfs

Opener = Callable[[], Bucket]


class InTurn:
    """Two buckets as one: each call goes to the other one."""

    def __init__(self, *buckets: Bucket) -> None:
        self._buckets = buckets
        self._turns = cycle(buckets)

    async def put(self, key: str, data: bytes | bytearray) -> None:
        await next(self._turns).put(key, data)

    async def get(self, key: str) -> bytes:
        return await next(self._turns).get(key)

    async def list(self, prefix: str) -> Sequence[Listed]:
        return await next(self._turns).list(prefix)

    async def delete(self, key: str) -> None:
        await next(self._turns).delete(key)

    async def close(self) -> None:
        for bucket in self._buckets:
            await bucket.close()


@contextmanager
def in_memory(_: Path) -> Iterator[Opener]:
    yield MemoryBucket(FakeClock()).again


@contextmanager
def in_a_directory(root: Path) -> Iterator[Opener]:
    yield lambda: DirectoryBucket(root, SystemClock())


@contextmanager
def in_a_directory_in_turn(root: Path) -> Iterator[Opener]:
    with tmpfs(root, "size=64m"):
        yield lambda: InTurn(DirectoryBucket(root, SystemClock()), DirectoryBucket(root, SystemClock()))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("place", [in_memory, in_a_directory, in_a_directory_in_turn])
async def test_a_bucket_keeps_the_promise(
    place: Callable[[Path], AbstractContextManager[Opener]], check: Check, tmp_path: Path
) -> None:
    with place(tmp_path / "bucket") as open_bucket:
        await check_bucket(open_bucket, [check])


async def test_the_checks_leave_nothing_behind(clock: FakeClock) -> None:
    bucket = MemoryBucket(clock)
    await bucket.put("theirs", b"theirs")
    await check_bucket(bucket.again)
    assert [found.key for found in await bucket.list("")] == ["theirs"]


class LastPutWins(MemoryBucket):
    async def put(self, key: str, data: bytes | bytearray) -> None:
        await self.delete(key)
        await super().put(key, data)


class LooksThenPuts(MemoryBucket):
    async def put(self, key: str, data: bytes | bytearray) -> None:
        if key in self._objects:
            raise Taken(key)
        await asyncio.sleep(0)
        await self.delete(key)
        await super().put(key, data)


class TakesTheSameAgain(MemoryBucket):
    async def put(self, key: str, data: bytes | bytearray) -> None:
        if self._objects.get(key, (b"",))[0] != data:
            await super().put(key, data)


class RemembersThatNothingWasThere(MemoryBucket):
    async def get(self, key: str) -> bytes:
        try:
            return await super().get(key)
        except NotFound:
            self._objects = dict(self._objects)
            raise


class ListsOnePage(MemoryBucket):
    async def list(self, prefix: str) -> Sequence[Listed]:
        return (await super().list(prefix))[:1000]


class ListsNaiveTimes(MemoryBucket):
    async def list(self, prefix: str) -> Sequence[Listed]:
        found = await super().list(prefix)
        return [Listed(one.key, one.size, datetime(2030, 1, 1)) for one in found]  # noqa: DTZ001 the mistake under test


class ListsByTheBeginning(MemoryBucket):
    async def list(self, prefix: str) -> Sequence[Listed]:
        await super().list(prefix)
        return [one for one in await super().list("") if one.key.startswith(prefix.removesuffix("/"))]


class MissesWhatItDeletes(MemoryBucket):
    async def delete(self, key: str) -> None:
        await self.get(key)
        await super().delete(key)


class KeepsDeletedKeys(MemoryBucket):
    async def delete(self, key: str) -> None:
        await super().delete(key)
        self._objects[key] = (b"", self._clock.now())


class CutsAtAMebibyte(MemoryBucket):
    async def put(self, key: str, data: bytes | bytearray) -> None:
        await super().put(key, data[: 1 << 20])


class TakesAnyKey(MemoryBucket):
    async def put(self, key: str, data: bytes | bytearray) -> None:
        if "\\" in key or ".." in key:
            self._objects[key] = (bytes(data), self._clock.now())
        else:
            await super().put(key, data)


class NeverCloses(MemoryBucket):
    async def close(self) -> None:
        pass


class ForgetsWhenClosed(MemoryBucket):
    async def close(self) -> None:
        await super().close()
        self._objects.clear()


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (LastPutWins, bucket_contract.of_puts_at_once_one_wins),
        (LastPutWins, bucket_contract.a_taken_object_stays_as_it_is),
        (LooksThenPuts, bucket_contract.of_puts_at_once_one_wins),
        (TakesTheSameAgain, bucket_contract.a_taken_object_stays_as_it_is),
        (RemembersThatNothingWasThere, bucket_contract.a_new_object_is_there_at_once),
        (ListsOnePage, bucket_contract.a_listing_is_whole),
        (ListsNaiveTimes, bucket_contract.a_listing_is_whole),
        (ListsByTheBeginning, bucket_contract.a_prefix_is_a_folder),
        (MissesWhatItDeletes, bucket_contract.what_is_deleted_is_gone),
        (KeepsDeletedKeys, bucket_contract.what_is_deleted_is_gone),
        (CutsAtAMebibyte, bucket_contract.an_object_has_any_size),
        (TakesAnyKey, bucket_contract.a_bad_key_is_refused),
        (NeverCloses, bucket_contract.a_closed_bucket_answers_nothing),
        (ForgetsWhenClosed, bucket_contract.what_is_there_outlives_the_bucket),
    ],
)
async def test_a_bucket_that_breaks_a_promise_is_found_out(
    kind: type[MemoryBucket], check: Check, clock: FakeClock
) -> None:
    objects = MemoryBucket(clock)._objects

    def open_bucket() -> Bucket:
        bucket = kind(clock)
        bucket._objects = objects
        return bucket

    # In words of ours, or as an error of the bucket where there should be none.
    found_out = (AssertionError, NotFound, Taken)
    with pytest.raises(found_out) as caught:
        await check_bucket(open_bucket, [check])
    assert caught.value.__notes__ == [f"the promise: {check.__doc__}"]
    with pytest.raises(found_out):
        await check_bucket(open_bucket)


def test_the_checks_need_no_test_framework(clock: FakeClock) -> None:
    asyncio.run(check_bucket(MemoryBucket(clock).again))
