"""Reading a log from its beginning, beside any store: for ``verify``, and for whoever wants its whole history.

Nothing is written or created here, and what cannot be read is said, never passed over.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, Self, TypeVar

import msgspec
from msgspec import Struct

from penstock.clock import Clock
from penstock.domain.events import Record
from penstock.domain.job import DEFAULT_TENANT
from penstock.domain.queries import Everything, Query, Snapshot, Stats
from penstock.domain.verify import Base, Live
from penstock.errors import Corrupt, NotFound, Unavailable
from penstock.stores.log import floor, snapshot
from penstock.stores.log import record as records
from penstock.stores.log.bucket import Bucket
from penstock.stores.log.store import LogOptions, LogStore

_FOLDER: Final = "log/"
_WIDTH: Final = 64
# One look on opening and none after: all questions are answered as of the same commit.
_STILL: Final = LogOptions(look_s=float("inf"))
_T = TypeVar("_T")


class Extent(Struct, frozen=True, gc=False, kw_only=True):
    """Which records to read: those after ``after``, which is 0 or a snapshot's seq, up to ``last``.

    ``prev`` is the commit id of record ``after``.
    """

    after: int
    last: int
    prev: str = ""

    @property
    def records(self) -> int:
        """How many there are."""
        return self.last - self.after


async def extent(bucket: Bucket) -> tuple[Extent, Base | None]:
    """How far back the log goes, and the state to begin with if that is not its beginning. NotFound: there is no log.

    Only up to the floor may records be gone. Then the oldest snapshot serves after which they are all there.
    """
    seqs = {_seq_of(found.key) for found in await bucket.list(_FOLDER)} - {0}
    images = {snapshot.seq_of(found.key) for found in await bucket.list(snapshot.FOLDER)} - {-1}
    if not seqs and not images:
        raise NotFound("there is no queue here yet; the first enqueue makes one")
    last = max(seqs | images)
    lowest = max((floor.seq_of(found.key) for found in await bucket.list(floor.FOLDER)), default=0)
    gone = next((seq for seq in range(lowest, 0, -1) if seq not in seqs), 0)
    if gone:
        after = min((seq for seq in images if seq >= gone), default=0)
        if not after:
            raise Corrupt("this record is gone, and no snapshot is left that holds it", object=records.key(gone))
        return await _from_snapshot(bucket, after, last)
    if 1 not in seqs:
        raise Corrupt("the log's first record is missing", object=records.key(1))
    return Extent(after=0, last=last), None


async def _from_snapshot(bucket: Bucket, seq: int, last: int) -> tuple[Extent, Base]:
    header, tables = snapshot.decode(await bucket.get(snapshot.key(seq)), seq)
    jobs = [job for tenant in tables.tenants.values() for job in tenant.jobs.values()]
    base = Base(seq, header.log_time, jobs, tables.settings.values(), tables.setting_revs)
    return Extent(after=seq, last=last, prev=header.commit), base


def _seq_of(name: str) -> int:
    digits = name.removeprefix(_FOLDER).removesuffix(".jsonl")
    return int(digits) if digits.isdecimal() and records.key(int(digits)) == name else 0


async def read_log(bucket: Bucket, within: Extent) -> AsyncIterator[Record]:
    """Give the records in order, read ahead in parallel. Corrupt, with the object's name, for one that is not right."""
    prev = within.prev
    ahead = asyncio.ensure_future(_window(bucket, within, within.after + 1))
    try:
        for first in range(within.after + 1, within.last + 1, _WIDTH):
            found = await ahead
            ahead = asyncio.ensure_future(_window(bucket, within, first + _WIDTH))
            for seq, data in enumerate(found, first):
                if data is None:
                    raise await _missing(bucket, within, seq)
                header, record = records.decode(data, seq)
                if header.prev != prev or (header.log is not None) != (seq == 1):
                    raise Corrupt("this record does not follow the one before it", object=records.key(seq))
                prev = header.commit
                yield record
    finally:
        ahead.cancel()
        await asyncio.gather(ahead, return_exceptions=True)


async def _window(bucket: Bucket, within: Extent, first: int) -> list[bytes | None]:
    seqs = range(first, min(first + _WIDTH, within.last + 1))
    return await asyncio.gather(*(_read(bucket, seq) for seq in seqs))


async def _read(bucket: Bucket, seq: int) -> bytes | None:
    try:
        return await bucket.get(records.key(seq))
    except NotFound:
        return None


async def _missing(bucket: Bucket, within: Extent, seq: int) -> Corrupt | Unavailable:
    now, _ = await extent(bucket)
    if now.after > within.after:
        return Unavailable("records were deleted while they were read; read again", object=records.key(seq))
    return Corrupt("this record is missing", object=records.key(seq))


class StillStore:
    """The store as a process finds it that opens it now; of what is committed later it learns nothing."""

    def __init__(self, bucket: Bucket, store: LogStore, seq: int) -> None:
        self._bucket = bucket
        self._store = store
        self.seq = seq

    @classmethod
    async def open(cls, bucket: Bucket, clock: Clock) -> Self:
        """Open it. It is not to be closed: the bucket is the caller's. NotFound: there is no queue."""
        store = LogStore(bucket, clock, _STILL)
        try:
            await store.open()
        except (TypeError, ValueError, LookupError, AssertionError) as error:
            # It stumbles over what it reads: every other process would, too.
            raise Corrupt(f"no process can open this store ({error!r})", object=_FOLDER) from error
        return cls(bucket, store, (await _asked(store, Everything(), Snapshot)).seq)

    async def live(self, tenants: Iterable[str]) -> Live:
        """All that it says of these tenants, and of those in the snapshot it began with."""
        held = {}
        for tenant in {*tenants, *await self._tenants()}:
            jobs = await _asked(self._store, Everything(tenant=tenant), Snapshot)
            held[tenant] = (jobs, await _asked(self._store, Stats(tenant=tenant), tuple))
        return Live(self.seq, held)

    async def _tenants(self) -> set[str]:
        images = [snapshot.seq_of(found.key) for found in await self._bucket.list(snapshot.FOLDER)]
        newest = max((seq for seq in images if 0 <= seq <= self.seq), default=None)
        if newest is None:
            return set()
        _, *lines = (await self._bucket.get(snapshot.key(newest))).split(b"\n")
        return {_owned.decode(line).tenant for line in lines if line}


async def _asked(store: LogStore, query: Query, kind: type[_T]) -> _T:
    answer = await store.ask(query)
    assert isinstance(answer, kind)
    return answer


class _Owned(Struct, frozen=True, gc=False):
    """What every line of a snapshot says, unless it is the default."""

    tenant: str = DEFAULT_TENANT


_owned: Final = msgspec.json.Decoder(_Owned)
