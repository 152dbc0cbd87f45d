"""The object log: a commit is a create-only put of the next record, and whoever creates it owns it.

The state is kept in memory as of the last record this process knows. A batch is decided on it at once; if the put is
lost, the batch is taken back, the winner's record is applied, and the batch is decided again. So a commit costs one
request, whatever the depth, and any number of processes may use one bucket at once.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from penstock.clock import Clock, pause
from penstock.domain.batch import run
from penstock.domain.commands import Command
from penstock.domain.events import AnyEvent, Record
from penstock.domain.outcome import Outcome
from penstock.domain.queries import Answer, History, Query
from penstock.errors import Busy, Corrupt, NotFound, PenstockError, Unavailable
from penstock.stores.kept import Kept
from penstock.stores.log import record as records
from penstock.stores.log import snapshot
from penstock.stores.log.bucket import Bucket, Listed, Taken
from penstock.stores.log.clean import clean
from penstock.stores.log.directory import IN_ORDER_BYTES
from penstock.stores.log.floor import Floor, Void
from penstock.stores.log.history import Chain
from penstock.stores.log.probe import FOLDER as PROBES
from penstock.stores.log.probe import MOST_OFF, probe
from penstock.stores.log.state import State

_log: Final = logging.getLogger("penstock")

_FIRST_RETRY_S: Final = 0.02
_LAST_RETRY_S: Final = 2.0
# So many records are asked for at once, first and at most.
_OPENING: Final = 8
_WIDEST: Final = 64
# A process that saw a foreign commit so lately lets others have a turn after each win (rule 9).
_CROWDED_S: Final = 1.0


class LogOptions(Struct, frozen=True, kw_only=True):
    """The log's numbers: for object storage by default; a directory is looked at more often, since that is cheap."""

    # For how long a listing of the floors serves (rule 2).
    listing_s: float = 600.0
    # Up to so many bytes the bucket carries out calls in the order they were made; 0: it does not.
    in_order_bytes: int = 0
    # How often to look for what others have committed, while somebody waits (rule 1).
    look_s: float = 1.0
    # A snapshot is due when the records since the last one are so many bytes, or so many (rule 7).
    snapshot_bytes: int = 1 << 20
    snapshot_records: int = 10_000


DEFAULTS: Final = LogOptions()
DIRECTORY: Final = LogOptions(listing_s=0.0, in_order_bytes=IN_ORDER_BYTES, look_s=0.02)


class LogStore:
    """Jobs in a bucket. Looking never writes; the first command makes the log if there is none."""

    def __init__(self, bucket: Bucket, clock: Clock, options: LogOptions = DEFAULTS) -> None:
        self._bucket = bucket
        self._clock = clock
        self._options = options
        self._floor = Floor(bucket, clock, options.listing_s)
        self._hearers: list[Callable[[Record], None]] = []
        self._state = State(clock, self._hearers)
        self._chain = Chain(bucket)
        # Whoever holds this may change the state: one put in flight, one reader of the tail.
        self._turn = asyncio.Lock()
        self._looked_at = 0.0
        self._crowded_at: float | None = None
        self._put_s = 0.0
        # When the elapsed clock began, by the wall clock, as the bucket was probed; None: not yet.
        self._steady: datetime | None = None
        self._imaging: asyncio.Task[None] | None = None

    @property
    def look_s(self) -> float:
        """Seconds between two looks for what others have committed."""
        return self._options.look_s

    async def open(self) -> None:
        """Read the newest snapshot and the records after it. A bucket without a log is no error yet."""
        async with self._turn:
            await self._load()

    async def close(self) -> None:
        """Let go of the bucket; a snapshot that is being made is given up."""
        if self._imaging is not None:
            self._imaging.cancel()
            await asyncio.gather(self._imaging, return_exceptions=True)
        await self._bucket.close()

    async def commit(self, batch: Sequence[Command], awaited: Callable[[], bool] = lambda: True) -> list[Outcome]:
        """Decide the batch and put it as the next record, again and again until it is this process that wins.

        A batch that changes nothing is not written; it counts when a look at the log, sent after the batch came in,
        shows nothing new (rule 1).
        """
        async with self._turn:
            await self._prepare()
            while True:
                if not awaited():
                    raise Unavailable("nobody waits for this batch any more")
                try:
                    outcomes, events = self._decided(batch)
                    if await self._put(tuple(events)) if events else not await self._catch_up(self._state):
                        return outcomes
                except Void:
                    await self._load()
                finally:
                    self._state.settle()

    async def ask(self, query: Query) -> Answer:
        """Look at committed state, one look behind others at most. That there is no such job is said only after one."""
        if not self._turn.locked() and self._clock.elapsed() - self._looked_at >= self._options.look_s:
            await self.refresh()
        try:
            return await self._answer(query)
        except NotFound:
            async with self._turn:
                await self._look()
            return await self._answer(query)

    async def refresh(self) -> None:
        """Learn what others have committed; a commit under way learns it as well."""
        if not self._turn.locked():
            async with self._turn:
                await self._look()

    async def overdue(self) -> Sequence[Command]:
        """Leases by the elapsed clock, after a look at the log; deadlines by the wall clock."""
        if len(self._state.kept.watch):
            await self.refresh()
        kept = self._settled()
        return [*kept.overdue(), *kept.watch.halfway(self._clock.elapsed())]

    async def outlived(self) -> Sequence[Command]:
        """Finished jobs past their queue's retention."""
        return self._settled().outlived()

    async def parting(self) -> Sequence[Command]:
        """How long each lease was watched, unless this process has only looked."""
        return () if self._steady is None else self._settled().watch.parting(self._clock.elapsed())

    def listen(self, hear: Callable[[Record], None]) -> Callable[[], None]:
        """Pass every record on, this process's own and those of others."""
        self._hearers.append(hear)
        return lambda: self._hearers.remove(hear)

    def _settled(self) -> Kept:
        """What is durable. A batch whose put is under way is taken back, and applied again when it has won (rule 6)."""
        self._state.settle()
        return self._state.kept

    async def _answer(self, query: Query) -> Answer:
        kept = self._settled()
        if self._state.seq == 0:
            raise NotFound("there is no queue here yet; the first enqueue makes one")
        if isinstance(query, History):
            return await self._chain.history(kept.tables, query)
        return kept.answer(query)

    async def _look(self) -> None:
        try:
            await self._catch_up(self._state)
        except Void:
            await self._load()

    async def _load(self) -> None:
        """Open the log anew: the newest snapshot, then every record after it."""
        watched = self._state.kept.watch
        while True:
            try:
                state = await self._from_snapshot()
                await self._catch_up(state, width=_OPENING)
            except Void:
                # Somebody has deleted records meanwhile, so there is a newer snapshot now.
                continue
            state.watch_all(self._clock.elapsed(), before=watched)
            self._state = state
            return

    async def _from_snapshot(self) -> State:
        state = State(self._clock, self._hearers)
        newest = await self._newest_snapshot()
        if newest is not None:
            try:
                data = await self._bucket.get(newest.key)
            except NotFound:
                raise Void(newest.key) from None
            state.begin_with(data, snapshot.seq_of(newest.key))
        return state

    async def _newest_snapshot(self) -> Listed | None:
        found = [listed for listed in await self._bucket.list(snapshot.FOLDER) if snapshot.seq_of(listed.key) >= 0]
        return max(found, key=lambda listed: listed.key, default=None)

    async def _catch_up(self, state: State, *, width: int = 1) -> bool:
        """Apply every record there is after the last one known to the state; says whether there was any.

        By name, in growing windows: the first that is absent ends it, whatever those after it answered (rule 3).
        """
        began = state.seq
        while True:
            sent_at = self._clock.elapsed()
            first = state.seq + 1
            in_order = width == 1 and self._options.in_order_bytes > 0
            found = await self._floor.counting(first, self._window(first, width), in_order=in_order)
            for data in found:
                if data is None:
                    await self._check_hole(state.seq + 1, found)
                    self._looked_at = sent_at
                    return state.seq > began
                self._follow(state, data)
            width = min(2 * width, _WIDEST)
            await asyncio.sleep(0)

    async def _check_hole(self, seq: int, found: Sequence[bytes | None]) -> None:
        """Refuse a log from which a record is missing, rather than write another in its place."""
        # One that was put while the window was read looks like that for a moment.
        if any(data is not None for data in found[found.index(None) :]) and await self._read(seq) is None:
            raise Corrupt("a record is missing, and there are later ones", object=records.key(seq))

    async def _window(self, first: int, width: int) -> list[bytes | None]:
        if width == 1:
            return [await self._read(first)]
        return await asyncio.gather(*(self._read(seq) for seq in range(first, first + width)))

    async def _read(self, seq: int) -> bytes | None:
        try:
            return await self._bucket.get(records.key(seq))
        except NotFound:
            return None

    async def _prepare(self) -> None:
        """Before a batch is decided: the bucket can be trusted, there is a log, and others had their turn."""
        if self._steady is None or abs(_zero(self._clock) - self._steady) > MOST_OFF:
            await probe(self._bucket, self._clock)
            self._steady = _zero(self._clock)
        if self._state.seq == 0:
            await self._begin_log()
        if self._crowded_at is not None and self._clock.elapsed() - self._crowded_at < _CROWDED_S:
            await pause(self._clock, 2 * self._clock.chance() * self._put_s)

    async def _begin_log(self) -> None:
        """Write the genesis record, unless somebody else does."""
        await self._look()
        if self._state.seq:
            return
        strays = [found.key for found in await self._bucket.list("") if not found.key.startswith(PROBES)]
        if strays:
            await self._look()
        else:
            genesis = Record(1, self._clock.now(), ())
            commit = self._clock.secret()
            data = records.encode(genesis, commit=commit, prev="", log=self._clock.secret())
            with suppress(Void):
                await self._create(1, commit, data)
            await self._look()
        if self._state.seq == 0:
            raise Corrupt("this place is not empty, and there is no queue in it; use another", object=min(strays))

    def _decided(self, batch: Sequence[Command]) -> tuple[list[Outcome], list[AnyEvent]]:
        state = self._state
        state.settle()
        tables = state.kept.tables
        tables.begin(self._clock.now(), state.seq + 1)
        state.dirty = True
        outcomes, events = run(tables, batch)
        if not events:
            state.settle()
        return outcomes, events

    async def _put(self, events: tuple[AnyEvent, ...]) -> bool:
        """Put the events as the next record; says whether they are durable there, and applied."""
        state = self._state
        record = Record(state.seq + 1, state.kept.tables.now, events)
        commit = self._clock.secret()
        data = records.encode(record, commit=commit, prev=state.head)
        sent_at = self._clock.elapsed()
        winner = await self._create(record.seq, commit, data)
        if winner is not None:
            self._follow(state, winner)
            return False
        self._put_s = self._clock.elapsed() - sent_at
        self._looked_at = sent_at
        state.adopt(record, commit, len(data))
        self._consider_snapshot(len(data))
        return True

    def _follow(self, state: State, data: bytes) -> None:
        """Apply the next record, which another process has written."""
        state.follow(data)
        self._crowded_at = self._clock.elapsed()

    async def _create(self, seq: int, commit: str, data: bytes) -> bytes | None:
        """Put the same bytes until they are created or the record is found (rule 4); answers another's, if it won."""
        key, wait_s, sure = records.key(seq), _FIRST_RETRY_S, True
        in_order = len(data) <= self._options.in_order_bytes
        while True:
            try:
                await self._floor.counting(seq, self._bucket.put(key, data), in_order=in_order)
            except Taken:
                # Perhaps by an earlier put of ours.
                sure = False
            except Busy:
                # Nothing was written now; but an earlier put may have been.
                if sure:
                    raise
            except Unavailable:
                sure = False
            else:
                return None
            found = await self._found(seq)
            if found is not None:
                return None if records.decode(found, seq)[0].commit == commit else found
            await pause(self._clock, wait_s * (0.5 + self._clock.chance() / 2))
            wait_s = min(2 * wait_s, _LAST_RETRY_S)

    async def _found(self, seq: int) -> bytes | None:
        """The record, if it can be read now."""
        try:
            return await self._floor.counting(seq, self._bucket.get(records.key(seq)), in_order=False)
        except (NotFound, Unavailable):
            return None

    def _consider_snapshot(self, size: int) -> None:
        """Begin a snapshot if the records since the last one have grown to its size with this one."""
        busy = self._imaging is not None and not self._imaging.done()
        most_bytes, most_records = self._options.snapshot_bytes, self._options.snapshot_records
        if not busy and self._state.grown(size, most_bytes=most_bytes, most_records=most_records):
            self._imaging = asyncio.create_task(self._write_snapshot())

    async def _write_snapshot(self) -> None:
        try:
            newest = await self._newest_snapshot()
            if newest is not None and self._state.notice(snapshot.seq_of(newest.key), newest.size):
                return
            image = snapshot.Image(self._settled().tables, log=self._state.log, commit=self._state.head)
            data = await image.encode(self._clock)
            self._state.notice(image.seq, len(data))
            await self._bucket.put(snapshot.key(image.seq), data)
            await clean(self._bucket, archived_to=0)
        except Taken:
            pass
        except PenstockError as error:
            # It only saves time: the next one is made when as much has come again.
            _log.warning("snapshot_failed error=%s", error)


def _zero(clock: Clock) -> datetime:
    """When the elapsed clock began, by the wall clock: it moves when the wall clock jumps."""
    return clock.now() - timedelta(seconds=clock.elapsed())
