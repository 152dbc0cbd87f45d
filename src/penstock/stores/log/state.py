"""What a process knows of the log: the tables as of one record, and which record that is."""

from collections.abc import Callable

from penstock.clock import Clock
from penstock.domain.apply import apply
from penstock.domain.due import LeaseWatch
from penstock.domain.events import Record
from penstock.errors import Corrupt
from penstock.stores.kept import Kept
from penstock.stores.log import record as records
from penstock.stores.log import snapshot


class State:
    """The tables after record ``seq``, whose commit id is ``head``; of the log ``log``.

    ``dirty`` says that the tables hold a batch which is not durable yet.
    """

    def __init__(self, clock: Clock, hearers: list[Callable[[Record], None]]) -> None:
        self.kept = Kept(clock, hearers)
        self.seq = 0
        self.head = ""
        self.log = ""
        self.dirty = False
        self._opened = False
        # The newest snapshot that is known, its size, and the bytes of the records since.
        self._imaged = 0
        self._image_bytes = 0
        self._lines = 0
        self._bytes = 0

    def begin_with(self, data: bytes, seq: int) -> None:
        """Take over the state of a snapshot."""
        header, self.kept.tables = snapshot.decode(data, seq)
        self.seq, self.head, self.log = seq, header.commit, header.log
        self._imaged, self._image_bytes, self._lines = seq, len(data), header.jobs

    def watch_all(self, elapsed: float, *, before: LeaseWatch) -> None:
        """Begin to watch the leases that were found on opening; those that were watched before count from then."""
        self.kept.watch.begin(self.kept.tables, elapsed, before)
        self._opened = True

    def follow(self, data: bytes) -> None:
        """Apply the next record, which another process has written."""
        self.settle()
        header, record = records.decode(data, self.seq + 1)
        if header.prev != self.head or (header.log is not None) != (record.seq == 1):
            raise Corrupt("this record does not follow the one before it", object=records.key(record.seq))
        self.log = header.log or self.log
        self._apply(record)
        self._keep(record, header.commit, len(data))

    def adopt(self, record: Record, commit: str, size: int) -> None:
        """The batch that was decided on these tables is durable as this record."""
        if not self.dirty:
            # Somebody has looked meanwhile, so it was taken back.
            self._apply(record)
        self.dirty = False
        self._keep(record, commit, size)

    def settle(self) -> None:
        """Take back what is not durable."""
        if self.dirty:
            self.kept.tables.rollback()
            self.dirty = False

    def grown(self, size: int, *, most_bytes: int, most_records: int) -> bool:
        """Whether the records since the last snapshot came to its cost with the last one, of this size (rule 7).

        If it was another process's record that did it, that one makes the snapshot; should it not, they grow to
        twice as much. Reading a record costs about as much as reading ten lines of a snapshot.
        """
        most_bytes = max(most_bytes, self._image_bytes)
        records = max(most_records, self._lines // 10)
        made = self.seq - self._imaged
        before = max((self._bytes - size) / most_bytes, (made - 1) / records)
        after = max(self._bytes / most_bytes, made / records)
        return before < 1 <= after or after >= 2

    def notice(self, seq: int, size: int) -> bool:
        """Count anew from here if this snapshot was not known; says so."""
        if seq <= self._imaged:
            return False
        self._imaged, self._image_bytes, self._bytes = seq, size, 0
        self._lines = sum(len(tenant.jobs) for tenant in self.kept.tables.tenants.values())
        return True

    def _apply(self, record: Record) -> None:
        tables = self.kept.tables
        tables.begin(record.at, record.seq)
        try:
            for event in record.events:
                apply(tables, event)
        except (KeyError, AssertionError) as error:
            tables.rollback()
            raise Corrupt("an event of this record fits no job", object=records.key(record.seq)) from error

    def _keep(self, record: Record, commit: str, size: int) -> None:
        self.seq, self.head = record.seq, commit
        self._bytes += size
        if self._opened:
            self.kept.keep(record)
