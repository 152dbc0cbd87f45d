"""What callers of a directory bucket may count on when they call it together, give up, or close it."""

import asyncio
import os
from asyncio import gather, to_thread
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from penstock.clock import SystemClock
from penstock.errors import Unavailable
from penstock.stores.log.clerk import _Call
from penstock.stores.log.directory import DirectoryBucket, Disk
from tests.stores.log.disks import HUNG_S, LARGE, Gate, is_folder, keys, names, opened, run
from tests.waiting import begun


def counting(calls: list[str]) -> Disk:
    def fsync(file: int) -> None:
        calls.append("folder" if is_folder(file) else "file")
        os.fsync(file)

    def link(draft: str, name: str, **folders: Any) -> None:
        calls.append(f"link {name}")
        os.link(draft, name, **folders)

    return Disk(fsync=fsync, link=link)


async def test_a_put_costs_one_sync_of_the_file_and_one_of_the_directory(tmp_path: Path) -> None:
    calls: list[str] = []
    async with opened(tmp_path, counting(calls)) as bucket:
        await bucket.put("log/0", b"")
        calls.clear()
        await bucket.put("log/1", bytes(2048))
    assert calls == ["file", "link 1", "folder"]


async def test_directories_that_are_made_again_are_synced_again(tmp_path: Path) -> None:
    calls: list[str] = []
    async with opened(tmp_path / "root", counting(calls)) as bucket:
        await bucket.put("log/1", b"")
        first = calls.copy()
        run("rm", "-r", str(tmp_path / "root"))
        await bucket.put("log/1", b"")
    assert calls == first * 2
    assert first.count("folder") > 2


async def test_calls_made_together_are_done_in_their_order_and_share_the_sync(tmp_path: Path) -> None:
    calls: list[str] = []
    async with opened(tmp_path, counting(calls)) as bucket:
        await bucket.put("log/0", b"")
        calls.clear()
        _, listed, _, _ = await gather(
            bucket.put("log/1", bytes(1 << 20)), bucket.list("log/"), bucket.put("log/2", b""), bucket.delete("log/0")
        )
    assert calls == ["file", "link 1", "file", "link 2", "folder"]
    assert {found.key for found in listed} == {"log/0", "log/1"}


async def test_more_calls_than_a_round_takes_are_all_answered(tmp_path: Path) -> None:
    calls: list[str] = []
    async with opened(tmp_path, counting(calls)) as bucket:
        await gather(*(bucket.put(f"log/{number}", b"") for number in range(150)))
        assert len(await keys(bucket)) == 150
    assert [call for call in calls if call.startswith("link")] == [f"link {number}" for number in range(150)]


async def test_a_large_object_holds_up_no_small_one(tmp_path: Path) -> None:
    gate = Gate()
    waits_for_large = Disk(fsync=lambda file: gate.fsync(file) if os.fstat(file).st_size > 1 << 20 else os.fsync(file))
    async with opened(tmp_path, waits_for_large) as bucket:
        large = await begun(bucket.put("snapshot/1", LARGE))
        await to_thread(gate.reached.wait, HUNG_S)
        await bucket.put("log/1", b"one")
        assert not large.done()
        gate.opened.set()
        await large


async def test_a_call_cancelled_before_its_turn_is_not_carried_out_and_the_others_are(tmp_path: Path) -> None:
    gate = Gate()
    async with opened(tmp_path, Disk(fsync=gate.fsync)) as bucket:
        first = await begun(bucket.put("log/1", b"one"))
        await to_thread(gate.reached.wait, HUNG_S)
        second, third = await begun(bucket.put("log/2", b"two")), await begun(bucket.put("log/3", b"three"))
        first.cancel()
        second.cancel()
        gate.opened.set()
        await third
        assert await keys(bucket) == ["log/1", "log/3"]
        assert await bucket.get("log/1") == b"one"


async def test_closing_answers_those_who_wait_and_may_be_done_twice_at_once(tmp_path: Path) -> None:
    gate = Gate()
    bucket = DirectoryBucket(tmp_path, SystemClock(), Disk(fsync=gate.fsync))
    waiting = [await begun(bucket.put("log/1", b"one")), await begun(bucket.put("log/2", LARGE))]
    closing = [await begun(bucket.close()), await begun(bucket.close())]
    for data in (b"", LARGE):
        with pytest.raises(Unavailable, match="closed"):
            await bucket.put("log/3", data)
    gate.opened.set()
    await gather(*closing)
    assert all(task.done() for task in waiting)
    await gather(*waiting)
    await bucket.close()


async def test_closing_that_is_cancelled_can_be_done_again(tmp_path: Path) -> None:
    gate = Gate()
    bucket = DirectoryBucket(tmp_path, SystemClock(), Disk(fsync=gate.fsync))
    put, closing = await begun(bucket.put("log/1", b"one")), await begun(bucket.close())
    closing.cancel()
    again = await begun(bucket.close())
    gate.opened.set()
    await again
    await put


async def test_several_event_loops_may_use_one_bucket(tmp_path: Path) -> None:
    async def put_some(loop: int) -> None:
        for number in range(20):
            await gather(bucket.put(f"log/{loop}-{number}", b""), bucket.list("log/"))

    async with opened(tmp_path) as bucket:
        await gather(*(to_thread(asyncio.run, put_some(loop)) for loop in range(4)))
        assert len(await keys(bucket)) == 80


async def test_closing_in_the_middle_leaves_nobody_of_another_loop_waiting(tmp_path: Path) -> None:
    done: list[str] = []

    async def put_until_closed(loop: int) -> None:
        for number in range(10_000):
            await bucket.put(f"log/{loop}-{number}", b"")
            done.append(f"log/{loop}-{number}")
            some.set()

    some = Event()
    bucket = DirectoryBucket(tmp_path, SystemClock())
    loops = [asyncio.create_task(to_thread(asyncio.run, put_until_closed(loop))) for loop in range(3)]
    await to_thread(some.wait, HUNG_S)
    await bucket.close()
    for outcome in await gather(*loops, return_exceptions=True):
        assert isinstance(outcome, Unavailable)
    assert {f"log/{name}" for name in names(tmp_path / "log")} == set(done)


async def test_an_event_loop_that_ends_in_the_middle_harms_no_other(tmp_path: Path) -> None:
    gate = Gate()

    async def leave() -> None:
        await begun(bucket.put("log/1", b"one"))
        gate.reached.wait(HUNG_S)

    async with opened(tmp_path, Disk(fsync=gate.fsync)) as bucket:
        await to_thread(asyncio.run, leave())
        gate.opened.set()
        assert await bucket.get("log/1") == b"one"


def test_an_answer_to_an_event_loop_that_is_gone_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    call = _Call(str, loop.create_future())
    loop.close()
    call.tell("")
    assert not call.answer.done()


class NoThread(ThreadPoolExecutor):
    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        raise RuntimeError("can't start new thread")


async def test_when_no_thread_can_be_had_the_caller_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as bucket:
        had, bucket._small._thread = bucket._small._thread, NoThread()
        with pytest.raises(Unavailable, match="thread"):
            await bucket.put("log/1", b"")
        bucket._small._thread = had
        assert await keys(bucket) == []
