"""Many jobs, some at a time."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TypeVar

from penstock.client import Client
from penstock.domain.job import Job
from penstock.domain.limits import MAX_PAGE

T = TypeVar("T")


async def every(
    client: Client, *, state: str, queue: str | None = None, kind: str | None = None, reason: str | None = None
) -> AsyncIterator[Job]:
    """All jobs that fit, page by page. Ids do not change, so jobs that do on the way are neither missed nor doubled."""
    cursor: str | None = None
    while True:
        page = await client.list(queue=queue, state=state, kind=kind, reason=reason, limit=MAX_PAGE, cursor=cursor)
        for job in page:
            yield job
        if len(page) < MAX_PAGE:
            return
        cursor = page[-1].id


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The same, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
