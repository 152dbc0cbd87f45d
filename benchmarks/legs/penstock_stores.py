"""Penstock's stores as the legs use them: what is asked of the bucket is counted, and late if the task says so."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from measure import PAYLOAD, Requests
from task import Task

from penstock import Client, MemoryStore, NewJob, connect
from penstock.clock import Clock, SystemClock
from penstock.stores.log.bucket import Bucket, Listed
from penstock.stores.log.directory import DirectoryBucket
from penstock.stores.log.store import DEFAULTS, DIRECTORY, LogOptions, LogStore
from penstock.testing.bucket import MemoryBucket

_AT_ONCE = 1_000
QUEUE = "bench"


class Counted:
    """A bucket around another."""

    def __init__(self, inner: Bucket, requests: Requests) -> None:
        self._inner = inner
        self._requests = requests

    async def put(self, key: str, data: bytes | bytearray) -> None:
        """Create the object."""
        requests, snapshot = self._requests, key.startswith("snapshot/")
        await requests.write("put", key, len(data))
        requests.pending += 1
        try:
            await self._inner.put(key, data)
            requests.snapshots += snapshot
        finally:
            requests.pending -= 1

    async def get(self, key: str) -> bytes:
        """Answer the object."""
        await self._requests.read("get")
        return await self._inner.get(key)

    async def list(self, prefix: str) -> Sequence[Listed]:
        """Show what is there."""
        await self._requests.read("list")
        return await self._inner.list(prefix)

    async def delete(self, key: str) -> None:
        """Remove the object."""
        await self._requests.write("delete", key, 0)
        await self._inner.delete(key)

    async def close(self) -> None:
        """Let go."""
        await self._inner.close()


@asynccontextmanager
async def opened(
    task: Task, clock: Clock | None = None, options: LogOptions | None = None
) -> AsyncIterator[tuple[Client, Requests]]:
    """A client of the task's store, and what it asks of its bucket."""
    clock = clock or SystemClock()
    requests = Requests(task)
    if task.store == "memory":
        store = MemoryStore(clock)
    else:
        bucket = DirectoryBucket(Path(task.place), clock) if task.store == "directory" else MemoryBucket(clock)
        usual = DEFAULTS if task.store == "far" else DIRECTORY
        store = LogStore(Counted(bucket, requests), clock, options or usual)
    async with connect(store=store, clock=clock) as queue:
        yield queue, requests


async def filled(queue: Client, depth: int) -> None:
    """Preload so many jobs."""
    for first in range(0, depth, _AT_ONCE):
        await queue.enqueue_many([NewJob(QUEUE, PAYLOAD) for _ in range(min(_AT_ONCE, depth - first))])


async def put(queue: Client) -> None:
    """One job more."""
    await queue.enqueue(QUEUE, PAYLOAD)


async def take(queue: Client) -> None:
    """One job less."""
    [lease] = await queue.lease(QUEUE)
    await queue.ack(lease)


async def both(queue: Client) -> None:
    """One job from beginning to end."""
    await put(queue)
    await take(queue)
