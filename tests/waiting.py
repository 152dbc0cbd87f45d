"""Waiting without time: let everything that can go on go on."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# Far more turns of the event loop than any chain of wake-ups takes.
TURNS = 200


async def settled() -> None:
    """Return when all tasks wait for something that has not happened yet."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin this beside the test and let it run until it waits."""
    task = asyncio.create_task(work)
    await settled()
    return task
