"""What is the directory bucket's own. The port's promise is in test_bucket_contract."""

import os
import stat
from asyncio import gather
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import pytest

from penstock.errors import Corrupt, Denied, NotFound
from penstock.stores.log.directory import Disk, network_type
from tests.stores.log.disks import LARGE, as_nobody, each_method_raises, keys, names, opened, run, tmpfs

DAY_S = 86_400

# Files


async def test_an_object_is_a_plain_file_at_its_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as bucket:
        await bucket.put("log/1", b"one")
    assert (tmp_path / "log/1").read_bytes() == b"one"
    assert (tmp_path / "log/1").stat().st_nlink == 1
    assert names(tmp_path / ".tmp") == []


async def test_looking_makes_no_directory(tmp_path: Path) -> None:
    async with opened(tmp_path / "none") as bucket:
        assert await bucket.list("") == ()
        assert await bucket.list("log/") == ()
        await bucket.delete("log/1")
        with pytest.raises(NotFound):
            await bucket.get("log/1")
    assert not (tmp_path / "none").exists()


async def test_a_directory_that_is_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "root") as bucket:
        await bucket.put("log/1", b"one")
        run("rm", "-r", str(tmp_path / "root"))
        await bucket.put("log/1", b"two")
        assert await bucket.get("log/1") == b"two"


async def test_a_relative_root_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(Path("here")) as bucket:
        monkeypatch.chdir("/")
        await bucket.put("log/1", b"one")
    assert (tmp_path / "here/log/1").exists()


async def test_the_root_may_be_a_link_to_a_directory(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    async with opened(tmp_path / "link") as bucket:
        await bucket.put("log/1", b"one")
    assert (tmp_path / "there/log/1").exists()


async def test_names_that_are_no_keys_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".hidden").write_bytes(b"")
    async with opened(tmp_path) as bucket:
        await bucket.put("log/1", b"one")
        assert await keys(bucket) == ["log/1"]


async def test_drafts_of_a_crash_go_after_a_day_and_not_before(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    now = (tmp_path / ".tmp").stat().st_mtime
    for name, age_s in (("old", DAY_S + 60), ("young", DAY_S - 60), ("new", 0), ("ahead", -DAY_S)):
        (tmp_path / ".tmp" / name).write_bytes(b"half")
        os.utime(tmp_path / ".tmp" / name, (now - age_s, now - age_s))
    # A directory that was idle for days must not pass for the present.
    os.utime(tmp_path / ".tmp", (now - 3 * DAY_S, now - 3 * DAY_S))
    async with opened(tmp_path) as bucket:
        await bucket.list("")
        assert len(names(tmp_path / ".tmp")) == 4
        await bucket.put("log/1", b"one")
    assert names(tmp_path / ".tmp") == ["ahead", "new", "young"]


# Things that no bucket has put


async def test_a_link_for_a_folder_does_not_lead_out_of_the_root(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for folder in (outside, root):
        folder.mkdir()
    (outside / "1").write_bytes(b"secret")
    (root / "log").symlink_to(outside)
    async with opened(root) as bucket:
        await each_method_raises(Corrupt, bucket, "log/1")
        await each_method_raises(Corrupt, bucket, "log/2")
        with pytest.raises(Corrupt):
            await bucket.list("")
    assert names(outside) == ["1"]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.symlink_to("../../outside"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to(path),
        os.mkfifo,
        lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    ],
    ids=["link", "dangling", "loop", "fifo", "socket"],
)
async def test_what_is_no_plain_file_is_corrupt_and_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    async with opened(tmp_path / "root") as bucket:
        await bucket.put("log/1", b"one")
        make(tmp_path / "root/log/2")
        await each_method_raises(Corrupt, bucket, "log/2")
        assert await bucket.get("log/1") == b"one"
    assert names(tmp_path / "root/log") == ["1", "2"]
    assert (tmp_path / "outside").read_bytes() == b"secret"


async def test_a_directory_for_an_object_is_corrupt_and_so_is_an_object_for_a_directory(tmp_path: Path) -> None:
    async with opened(tmp_path) as bucket:
        await bucket.put("a/b/c", b"c")
        for call in (bucket.get("a/b"), bucket.put("a/b", b""), bucket.delete("a/b")):
            with pytest.raises(Corrupt):
                await call
        for call in (bucket.get("a/b/c/d"), bucket.put("a/b/c/d", b""), bucket.delete("a/b/c/d")):
            with pytest.raises(Corrupt):
                await call
        assert await keys(bucket) == ["a/b/c"]


@pytest.mark.parametrize("root", ["file", "file/below", "loop"])
async def test_a_root_that_is_no_directory_is_corrupt(root: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"theirs")
    (tmp_path / "loop").symlink_to("loop")
    async with opened(tmp_path / root) as bucket:
        await each_method_raises(Corrupt, bucket, "log/1")
    assert (tmp_path / "file").read_bytes() == b"theirs"


# Rights


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory to which everybody finds the way."""
    with TemporaryDirectory() as made:
        yield Path(made)


def allow(folder: Path, mode: int) -> None:
    folder.chmod(mode)


async def test_a_root_that_may_not_be_read_is_denied(public: Path) -> None:
    allow(public, 0)
    with as_nobody():
        async with opened(public) as bucket:
            await each_method_raises(Denied, bucket, "log/1")


async def test_a_root_that_may_not_be_written_is_denied_and_can_be_read(public: Path) -> None:
    async with opened(public) as bucket:
        await bucket.put("log/1", b"one")
    allow(public, 0o755)
    with as_nobody():
        async with opened(public) as bucket:
            for call in (bucket.put("log/2", b""), bucket.put("new/1", b""), bucket.delete("log/1")):
                with pytest.raises(Denied):
                    await call
            assert await bucket.get("log/1") == b"one"


async def test_a_file_system_that_is_read_only_is_denied_and_can_be_read(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", "size=1m") as root:
        async with opened(root) as bucket:
            await bucket.put("log/1", b"one")
            run("mount", "-o", "remount,ro", str(root))
            for call in (bucket.put("log/2", b""), bucket.delete("log/1")):
                with pytest.raises(Denied):
                    await call
            assert await bucket.get("log/1") == b"one"


async def test_a_folder_on_another_file_system_is_denied(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with tmpfs(tmp_path / "root/log", "size=1m"):
        async with opened(tmp_path / "root") as bucket:
            with pytest.raises(Denied, match="cross-device"):
                await bucket.put("log/1", b"")


# Network file systems

LOCAL = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"
MOUNTS = rf"""{LOCAL}
30 22 0:40 / /mnt rw shared:2 master:3 - nfs4 host:/a rw
31 30 8:2 / /mnt/local rw - xfs /dev/sdb1 rw
32 31 0:41 / /mnt/local/far rw - fuse.sshfs host:/ rw
33 22 0:42 / /with\040space\134and\011tab rw - cifs //host/share rw
34 22 0:43 / /twice rw - nfs host:/b rw
35 34 8:3 / /twice rw - ext4 /dev/sdc1 rw
36 22 0:44 / /hidden/inner rw - nfs host:/c rw
37 22 8:4 / /hidden rw - btrfs /dev/sdd1 rw
38 22 0:45 / /block rw - fuseblk /dev/sde1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/srv/queue", None),
        ("/mnt", "nfs4"),
        ("/mnt/queue", "nfs4"),
        ("/mntx", None),
        ("/mnt/local/queue", None),
        ("/mnt/local/far/queue", "fuse.sshfs"),
        ("/with space\\and\ttab/queue", "cifs"),
        ("/twice/queue", None),
        ("/hidden/inner/queue", None),
        ("/block/queue", None),
    ],
)
def test_a_network_file_system_is_known_by_the_mounts(path: str, kind: str | None) -> None:
    assert network_type(MOUNTS, PurePath(path)) == kind


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("", None),
        ("not a mount\n\n - \n", None),
        ("1 1 0:1 / / rw - rootfs rootfs rw\n", None),
        ("50 9 0:9 / /mnt rw - lustre host rw\n51 9 0:8 / /proc rw - proc proc rw", "lustre"),
        (f"40 22 0:40 / /mnt rw - ceph host rw\n{LOCAL}", "ceph"),
    ],
    ids=["nothing", "nonsense", "on itself", "without a root", "in another order"],
)
def test_odd_mounts_are_read_as_far_as_they_go(mounts: str, kind: str | None) -> None:
    assert network_type(mounts, PurePath("/mnt/queue")) == kind


async def test_a_network_file_system_is_warned_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(tmp_path, Disk(mounts=lambda: "1 0 0:1 / / rw - nfs4 host:/ rw")) as bucket:
        await gather(bucket.put("log/1", b""), bucket.put("log/2", LARGE))
    assert [record.message for record in caplog.records] == [f"network_file_system root={tmp_path} type=nfs4"]


async def test_a_system_that_does_not_show_its_mounts_is_no_hindrance(tmp_path: Path) -> None:
    async with opened(tmp_path, Disk(mounts=(tmp_path / "none").read_text)) as bucket:
        await bucket.put("log/1", b"")
        assert await keys(bucket) == ["log/1"]
