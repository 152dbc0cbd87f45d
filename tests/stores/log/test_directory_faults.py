"""A directory bucket on a disk that is full, or that fails."""

import errno
import os
from asyncio import gather
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Busy, Unavailable
from penstock.stores.log.bucket import Taken
from penstock.stores.log.directory import DirectoryBucket, Disk
from tests.stores.log.disks import LARGE, Fault, each_method_raises, is_file, is_folder, keys, names, opened, tmpfs

# A full disk


@pytest.mark.parametrize("options", ["size=1m", "size=64m,nr_inodes=40"])
async def test_a_full_disk_is_busy_and_everything_answered_before_is_there(options: str, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", options) as root:
        async with opened(root) as bucket:
            held = await fill(bucket)
            with pytest.raises(Busy):
                await bucket.put("log/large", LARGE if "1m" in options else b"")
            assert await keys(bucket) == sorted(held)
            assert names(root / ".tmp") == []
            for key, data in held.items():
                assert await bucket.get(key) == data
            await bucket.delete("log/00")
            await bucket.put("log/new", held["log/00"])
            assert await bucket.get("log/new") == held["log/00"]
        async with opened(root) as again:
            assert len(await keys(again)) == len(held)


async def fill(bucket: DirectoryBucket) -> dict[str, bytes]:
    held: dict[str, bytes] = {}
    for number in range(100):
        key, data = f"log/{number:02}", bytes([number]) * 50_000
        try:
            await bucket.put(key, data)
        except Busy:
            return held
        held[key] = data
    pytest.fail("the disk is not full after 5 MB")


def is_draft(name: object) -> bool:
    return isinstance(name, str) and len(name) == 32


@pytest.mark.parametrize(
    ("call", "code", "among"),
    [
        ("open", errno.ENOSPC, is_draft),
        ("write", errno.ENOSPC, is_file),
        ("fsync", errno.ENOSPC, is_file),
        ("fsync", errno.EDQUOT, is_file),
        ("link", errno.ENOSPC, is_draft),
        ("mkdir", errno.ENOSPC, lambda name: name == "new"),
    ],
)
async def test_no_space_at_any_call_is_busy_and_changes_nothing(
    call: str, code: int, among: Callable[[Any], bool], tmp_path: Path
) -> None:
    fault = Fault(getattr(os, call), code, among)
    async with opened(tmp_path, Disk()._replace(**{call: fault})) as bucket:
        fault.on = False
        await bucket.put("log/1", b"one")
        fault.on = True
        with pytest.raises(Busy) as full:
            await bucket.put("new/2", b"two")
        assert full.value.retry_after_s > 0
        assert await keys(bucket) == ["log/1"]
        assert names(tmp_path / ".tmp") == []
        fault.on = False
        await bucket.put("new/2", b"two")
        assert await bucket.get("new/2") == b"two"


async def test_a_disk_that_is_full_in_the_middle_of_a_write_leaves_nothing(tmp_path: Path) -> None:
    fault = Fault(os.write, errno.ENOSPC, lambda _: bool(written))
    written: list[int] = []

    def write(file: int, data: memoryview) -> int:
        written.append(fault(file, data[:1000]))
        return written[-1]

    async with opened(tmp_path, Disk(write=write)) as bucket:
        with pytest.raises(Busy):
            await bucket.put("log/1", bytes(2048))
        assert await keys(bucket) == names(tmp_path / ".tmp") == []
        fault.on = False
        await bucket.put("log/1", bytes(2048))
        assert await bucket.get("log/1") == bytes(2048)


# A failing disk


async def test_short_writes_are_continued(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20
    async with opened(tmp_path, Disk(write=lambda file, left: os.write(file, left[:7]))) as bucket:
        await bucket.put("log/1", data)
        assert await bucket.get("log/1") == data


@pytest.mark.parametrize(
    ("call", "code", "among"),
    [
        ("open", errno.EMFILE, is_draft),
        ("write", errno.EIO, is_file),
        ("fsync", errno.EIO, is_file),
        ("close", errno.EIO, is_file),
        ("link", errno.EIO, is_draft),
        ("link", errno.EINTR, is_draft),
    ],
)
async def test_a_put_that_failed_leaves_no_object_and_can_be_repeated(
    call: str, code: int, among: Callable[[Any], bool], tmp_path: Path
) -> None:
    fault = Fault(getattr(os, call), code, among)
    async with opened(tmp_path, Disk()._replace(**{call: fault})) as bucket:
        with pytest.raises(Unavailable):
            await bucket.put("log/1", b"one")
        assert await keys(bucket) == names(tmp_path / ".tmp") == []
        fault.on = False
        await bucket.put("log/1", b"one")
        assert await bucket.get("log/1") == b"one"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EINVAL])
async def test_after_a_failed_sync_of_a_directory_nothing_is_answered_from_the_cache(
    code: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Fault(os.fsync, code, is_folder)
    async with opened(tmp_path, Disk(fsync=fault)) as bucket:
        with pytest.raises(Unavailable):
            await bucket.put("log/1", b"one")
        # The kernel reports a failed write once; the next sync succeeds, with nothing on the disk.
        fault.on = False
        assert (tmp_path / "log/1").exists()
        await each_method_raises(Unavailable, bucket, "log/1")
        for call in (bucket.put("log/2", b""), bucket.put("log/3", LARGE), bucket.get("log/4")):
            with pytest.raises(Unavailable, match="open the bucket again"):
                await call
        assert names(tmp_path / "log") == ["1"]
    assert [record.message.split()[0] for record in caplog.records] == ["directory_sync_failed"]
    async with opened(tmp_path) as again:
        with pytest.raises(Taken):
            await again.put("log/1", b"one")


async def test_when_the_shared_sync_fails_nobody_of_the_round_is_told_anything_else(tmp_path: Path) -> None:
    fault = Fault(os.fsync, errno.EIO, is_folder)
    fault.on = False
    async with opened(tmp_path, Disk(fsync=fault)) as bucket:
        await bucket.put("log/1", b"one")
        fault.on = True
        calls = (bucket.put("log/2", b""), bucket.put("log/2", b""), bucket.get("log/1"), bucket.get("log/3"))
        told = await gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in told] == [Unavailable] * 4


async def test_a_folder_that_cannot_be_closed_fails_nobody_and_none_stays_open(tmp_path: Path) -> None:
    def close(file: int) -> None:
        folder = is_folder(file)
        os.close(file)
        if folder:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with opened(tmp_path, Disk(close=close)) as bucket:
        await bucket.put("log/0", b"")
        before = names(Path("/proc/self/fd"))
        await bucket.put("log/1", b"")
        await bucket.get("log/1")
        assert names(Path("/proc/self/fd")) == before
