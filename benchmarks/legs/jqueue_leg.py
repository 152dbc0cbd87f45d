"""jqueue on a store of its own: closed, drain or waits, as ``task.py`` says."""

import asyncio
from functools import partial
from pathlib import Path

from jqueue import BrokerQueue, InMemoryStorage, LocalFileSystemStorage
from measure import PAYLOAD, Figures, Requests, measured, report, waits
from task import Task, given

_AT_ONCE = 500


class Counted:
    """jqueue's storage port around another: every request is counted, and late if the task says so."""

    def __init__(self, inner: InMemoryStorage | LocalFileSystemStorage, requests: Requests) -> None:
        self._inner = inner
        self._requests = requests

    async def read(self) -> tuple[bytes, str | None]:
        """The whole state."""
        await self._requests.read("read")
        return await self._inner.read()

    async def write(self, content: bytes, if_match: str | None = None) -> str:
        """The whole state, under the one name it has."""
        await self._requests.write("write", "state", len(content))
        return await self._inner.write(content, if_match)


async def put(queue: BrokerQueue) -> None:
    """One job more."""
    await queue.enqueue("bench", PAYLOAD)


async def take(queue: BrokerQueue) -> None:
    """One job less."""
    [job] = await queue.dequeue("bench")
    await queue.ack(job.id)


async def both(queue: BrokerQueue) -> None:
    """One job from beginning to end."""
    await put(queue)
    await take(queue)


STEPS = {"closed": (both,), "drain": (put, take), "waits": (put,)}


async def run(task: Task) -> Figures:
    """Preload, measure, and see that nothing was lost."""
    requests = Requests(task)
    on_disk = task.store == "directory"
    inner = LocalFileSystemStorage(Path(task.place) / "queue.json") if on_disk else InMemoryStorage()
    async with BrokerQueue(Counted(inner, requests)) as queue:
        for _ in range(task.depth // _AT_ONCE):
            await asyncio.gather(*(put(queue) for _ in range(_AT_ONCE)))
        await requests.quiet()
        measure = waits if task.workload == "waits" else measured
        figures = await measure(task, requests, *(partial(step, queue) for step in STEPS[task.workload]))
        left = task.jobs if task.workload == "waits" else 0
        assert len((await queue.read_state()).jobs) == task.depth + left
    return figures


if __name__ == "__main__":
    report(asyncio.run(run(given())))
