"""One of the processes that are killed: it enqueues and works, and tells the ledger on stdout what it was answered.

``storm_process.py URL NAME JOBS``: enqueue so many jobs, then only work, until stdin ends.
"""

import asyncio
import os
import sys

import penstock
from penstock import Backoff, BrokerOptions, Client, LeaseLost, NewJob, PenstockError, Policy

LEASE_S = 1.0
CALLERS = 8
AT_ONCE = Backoff(Policy.FIXED, base_s=0.0, cap_s=0.0)


def tell(*words: object) -> None:
    """Write one line in one call: a kill leaves the whole line or nothing."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def produce(queue: Client, name: str, jobs: int) -> None:
    for number in range(jobs):
        job = await _insisting(queue, f"{name}-{number}")
        tell("accepted", job)


async def _insisting(queue: Client, key: str) -> str:
    """Send the same enqueue until it is answered."""
    while True:
        try:
            job = await queue.enqueue("storm", key, idempotency_key=key, max_attempts=100, backoff=AT_ONCE)
        except PenstockError as error:
            tell("refused", type(error).__name__)
        else:
            return job.id


async def work(queue: Client, name: str) -> None:
    while True:
        for lease in await queue.lease("storm", limit=2, lease_s=LEASE_S, wait_s=5, worker=name):
            tell("leased", lease.job.id, lease.job.lease_no)
            try:
                ended = await queue.ack(lease, then=_follow_up(lease.job.payload))
            except LeaseLost:
                tell("lost", lease.job.id, lease.job.lease_no)
            else:
                tell("acked", lease.job.id, lease.job.lease_no, ended.rev)


def _follow_up(payload: str) -> list[NewJob]:
    return [] if payload.endswith("+") else [NewJob("storm", f"{payload}+", max_attempts=100, backoff=AT_ONCE)]


async def stdin_ended() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


async def main(url: str, name: str, jobs: int) -> None:
    async with penstock.connect(url, options=BrokerOptions(sweep_s=0.2)) as queue:
        tell("opened", name)
        working = [asyncio.create_task(work(queue, name)) for _ in range(CALLERS)]
        producing = [
            asyncio.create_task(produce(queue, f"{name}-{caller}", jobs // CALLERS)) for caller in range(CALLERS)
        ]
        await stdin_ended()
        for task in (*working, *producing):
            task.cancel()
        await asyncio.gather(*working, *producing, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
