"""A job's history, read from the log: every event names the commit of the one before it, so it is a chain."""

from collections import OrderedDict
from typing import Final

from penstock.domain.decide import found
from penstock.domain.events import Entry, Record
from penstock.domain.queries import History
from penstock.domain.tables import Tables
from penstock.errors import NotFound
from penstock.stores.kept import link
from penstock.stores.log import record as records
from penstock.stores.log.bucket import Bucket

_KEPT: Final = 64


class Chain:
    """Follows the chain from a job's last event to its first; the records read last are kept for the next reader."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._read: OrderedDict[int, Record] = OrderedDict()

    async def history(self, tables: Tables, query: History) -> tuple[Entry, ...]:
        """Every event of the job, in order, as far back as the log goes."""
        seq = found(tables, query.tenant, query.job_id).seq
        entries: list[Entry] = []
        while seq:
            try:
                record = await self._record(seq)
            except NotFound:
                break
            seq, found_here = link(seq, record.at, record.events, query)
            entries += found_here
        return tuple(reversed(entries))

    async def _record(self, seq: int) -> Record:
        record = self._read.get(seq)
        if record is None:
            _, record = records.decode(await self._bucket.get(records.key(seq)), seq)
            self._read[seq] = record
            if len(self._read) > _KEPT:
                self._read.popitem(last=False)
        return record
