"""Whenever the machine stops, the directory opens with all that was answered, and with nothing by halves."""

import errno
import os
import shutil
from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from penstock.clock import SystemClock
from penstock.errors import NotFound, Unavailable
from penstock.stores.log.clerk import Clerk
from penstock.stores.log.directory import DirectoryBucket, Disk
from tests.stores.log.crashes import Crash, Recorder, build
from tests.stores.log.disks import tmpfs

SEEDS: Final = 16
BUCKET: Final = "bucket"
SMALL: Final = b"small" * 500
LARGE: Final = b"large" * ((1 << 20) // 5 + 1)
Kind = type[DirectoryBucket]
Sync = Callable[[Recorder, int], bool]


class Caller:
    """Calls a bucket, and claims what it begins and what it is told."""

    def __init__(self, bucket: DirectoryBucket, recorder: Recorder) -> None:
        self.bucket = bucket
        self._claim = recorder.claim

    async def put(self, key: str, data: bytes) -> None:
        self._claim(key, None, data)
        with suppress(Unavailable):
            await self.bucket.put(key, data)
            self._claim(key, data)

    async def get(self, key: str) -> None:
        self._claim(key, await self.bucket.get(key))

    async def delete(self, key: str, was: bytes) -> None:
        self._claim(key, None, was)
        with suppress(Unavailable):
            await self.bucket.delete(key)
            self._claim(key, None)


class Tale:
    """Calls on a directory, of which every file operation is recorded."""

    def __init__(self, base: Path, kind: Kind, sync: Sync) -> None:
        base.mkdir()
        self.recorder = Recorder(base, most_in_write=1024)
        self._root = base / BUCKET
        self._kind = kind
        self._sync = sync
        self._callers: list[Caller] = []

    def open(self) -> Caller:
        return self._open(self.recorder.disk(lambda node: self._sync(self.recorder, node)))

    def open_one_that_dies_before_it_syncs(self) -> Caller:
        """One whose objects are there for others to see, though it was never told so."""

        def die(node: int) -> bool:
            if node in self.recorder.folders:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return True

        return self._open(self.recorder.disk(die))

    def _open(self, disk: Disk) -> Caller:
        self._callers.append(Caller(self._kind(self._root, SystemClock(), disk), self.recorder))
        return self._callers[-1]

    async def close(self) -> None:
        for caller in self._callers:
            await caller.bucket.close()


Story = Callable[[Tale], Awaitable[None]]


async def one_after_the_other(tale: Tale) -> None:
    caller = tale.open()
    await caller.put("log/1", SMALL)
    await caller.put("log/2", b"")
    await caller.put("archive/day/3", SMALL)
    await caller.delete("log/1", SMALL)
    await caller.put("log/1", b"again")
    await caller.delete("archive/day/3", SMALL)
    await caller.delete("archive/day/3", SMALL)
    await caller.put("top", b"top")


async def many_at_once(tale: Tale) -> None:
    tale.recorder.most_in_write = 1 << 19
    one, other = tale.open(), tale.open()
    await one.put("log/0", SMALL)
    await gather(
        one.put("snapshot/1", LARGE),
        one.put("log/1", SMALL),
        other.put("log/2", SMALL),
        one.delete("log/0", SMALL),
        one.put("snapshot/2", SMALL),
        other.put("other/3", b"3"),
    )
    await gather(other.delete("snapshot/1", LARGE), other.put("log/4", SMALL))


async def left_by_another(tale: Tale) -> None:
    stays = tale.open()
    await stays.put("log/1", SMALL)
    await tale.open_one_that_dies_before_it_syncs().put("log/2", SMALL)
    await stays.get("log/2")
    await tale.open_one_that_dies_before_it_syncs().put("new/deep/3", SMALL)
    await stays.get("new/deep/3")
    await tale.open_one_that_dies_before_it_syncs().delete("log/1", SMALL)
    await stays.delete("log/1", SMALL)


async def begun_by_another(tale: Tale) -> None:
    await tale.open_one_that_dies_before_it_syncs().put("log/1", SMALL)
    await tale.open().put("log/2", SMALL)
    await tale.open().get("log/1")


def sync_all(_: Recorder, __: int) -> bool:
    return True


async def states_survived(story: Story, base: Path, kind: Kind = DirectoryBucket, sync: Sync = sync_all) -> int:
    """Tell the story, then let the machine stop after each of its operations; count the states that were looked at."""
    tale = Tale(base / "told", kind, sync)
    await story(tale)
    await tale.close()
    operations, seen = tale.recorder.operations, set()
    for end in range(len(operations) + 1):
        crash = Crash(operations[:end], tale.recorder.folders)
        for tree in crash.trees(SEEDS):
            state = (frozenset(tree.items()), frozenset(crash.claims.items()))
            if state not in seen:
                seen.add(state)
                left = base / "left"
                left.mkdir()
                build(tree, left)
                await keeps_the_promise(left / BUCKET, crash.claims)
                shutil.rmtree(left)
    return len(seen)


async def keeps_the_promise(root: Path, claims: dict[str, frozenset[bytes | None]]) -> None:
    bucket = DirectoryBucket(root, SystemClock(), Disk(fsync=lambda _: None, mounts=str))
    try:
        found = dict(zip(claims, await gather(*(object_of(bucket, key) for key in claims)), strict=True))
        broken = [key for key, data in found.items() if data not in claims[key]]
        assert broken == [], f"lost, by halves, or back again: {broken}"
        listed = {one.key: one.size for one in await bucket.list("")}
        assert listed == {key: len(data) for key, data in found.items() if data is not None}
        await bucket.put("log/after", b"after")
        assert await bucket.get("log/after") == b"after"
    finally:
        await bucket.close()


async def object_of(bucket: DirectoryBucket, key: str) -> bytes | None:
    with suppress(NotFound):
        return await bucket.get(key)
    return None


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """The crashes are made up, and so many that a disk would be slow from making and removing what they left."""
    with tmpfs(tmp_path / "memory", "size=64m") as point:
        yield point


@pytest.mark.parametrize("story", [one_after_the_other, many_at_once, left_by_another, begun_by_another])
async def test_after_a_crash_at_any_point_everything_answered_is_there(story: Story, memory: Path) -> None:
    # The faults below show that these are the states that matter.
    assert await states_survived(story, memory) > 40


class LinksBeforeItWrites(DirectoryBucket):
    def _put(self, clerk: Clerk, key: str, data: bytes | bytearray, draft: str) -> None:
        folder, _, name = key.rpartition("/")
        there, drafts = clerk.make(folder), clerk.make(".tmp")
        file = self._disk.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=drafts)
        self._disk.link(draft, name, src_dir_fd=drafts, dst_dir_fd=there, follow_symlinks=False)
        self._disk.unlink(draft, dir_fd=drafts)
        self._write(file, data)
        clerk.touch(folder)


class WritesInPlace(DirectoryBucket):
    def _put(self, clerk: Clerk, key: str, data: bytes | bytearray, draft: str) -> None:  # noqa: ARG002 there is no draft
        folder, _, name = key.rpartition("/")
        self._write(self._disk.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=clerk.make(folder)), data)
        clerk.touch(folder)


class GetsWithoutSync(DirectoryBucket):
    def _get(self, key: str) -> bytes:
        data = super()._get(key)
        self._small._touched.clear()
        return data


class DeletesOnlyWhatIsThere(DirectoryBucket):
    def _delete(self, key: str) -> None:
        if (self._root / key).exists():
            super()._delete(key)


def sync_no_folder(recorder: Recorder, node: int) -> bool:
    return node not in recorder.folders


def sync_no_file(recorder: Recorder, node: int) -> bool:
    return node in recorder.folders


def sync_not_the_root(recorder: Recorder, node: int) -> bool:
    return not recorder.is_root(node)


def sync_not_above_the_root(_: Recorder, node: int) -> bool:
    return node != Recorder.BASE


@pytest.mark.parametrize(
    ("story", "kind", "sync"),
    [
        (one_after_the_other, DirectoryBucket, sync_no_folder),
        (one_after_the_other, DirectoryBucket, sync_no_file),
        (one_after_the_other, DirectoryBucket, sync_not_the_root),
        (one_after_the_other, DirectoryBucket, sync_not_above_the_root),
        (one_after_the_other, LinksBeforeItWrites, sync_all),
        (one_after_the_other, WritesInPlace, sync_all),
        (left_by_another, GetsWithoutSync, sync_all),
        (left_by_another, DeletesOnlyWhatIsThere, sync_all),
        (begun_by_another, DirectoryBucket, sync_not_above_the_root),
        (many_at_once, DirectoryBucket, sync_no_folder),
    ],
)
async def test_a_planted_fault_is_found(story: Story, kind: Kind, sync: Sync, memory: Path) -> None:
    with pytest.raises(AssertionError, match="lost, by halves, or back again"):
        await states_survived(story, memory, kind, sync)
