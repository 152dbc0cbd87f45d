"""What really happened: the log as the bucket ever held it, read without the store, and its fold on the true time line."""

import hashlib
import json
from bisect import bisect_right
from collections import defaultdict
from datetime import datetime
from typing import NamedTuple, Self

import msgspec

from penstock.domain.apply import apply
from penstock.domain.events import Aged, AnyEvent, JobEvent, Purged
from penstock.domain.job import Job
from penstock.domain.queries import Everything, Snapshot, snapshot
from penstock.domain.settings import QueueSettings
from penstock.domain.tables import Tables
from tests.simulation.bucket import Created, Vault

_events = msgspec.json.Decoder(AnyEvent)


class Commit(NamedTuple):
    """One record of the log, and when it came to be on the true time line."""

    seq: int
    at_s: float
    at: datetime
    events: tuple[AnyEvent, ...]


class Moment(NamedTuple):
    """A job as it was from one commit on; None when it has left the store."""

    at_s: float
    seq: int
    job: Job | None


class Broken(Exception):
    """The log itself is not one."""


class Evidence:
    """The log so far, and every state it has led to. ``catch_up`` reads what has come since."""

    def __init__(self, vault: Vault) -> None:
        self.commits: list[Commit] = []
        self.jobs: defaultdict[str, list[Moment]] = defaultdict(list)
        self.queues: defaultdict[str, list[tuple[float, QueueSettings]]] = defaultdict(list)
        self.tables = Tables()
        self._vault = vault
        self._looked_at = 0
        self._prev = ""
        self._snapshots: dict[int, Snapshot] = {0: Snapshot(0, (), ())}

    @property
    def head(self) -> int:
        """The seq of the last record."""
        return len(self.commits)

    @property
    def snapshots(self) -> bool:
        """Whether there was ever a snapshot."""
        return any(created.key.startswith("snapshot/") for created in self._vault.created)

    def catch_up(self) -> Self:
        """Read on. A key's first object is its record; a later one is a stray that nobody may trust."""
        fresh = self._vault.created[self._looked_at :]
        self._looked_at += len(fresh)
        for created in fresh:
            if created.key.startswith("log/") and created.key > f"log/{self.head:020}.jsonl":
                commit = self._read(created)
                self.commits.append(commit)
                self._fold(commit)
        return self

    def _read(self, created: Created) -> Commit:
        head, _, body = created.data.partition(b"\n")
        header = json.loads(head)
        seq = self.head + 1
        if created.key != f"log/{seq:020}.jsonl" or header["seq"] != seq:
            raise Broken(f"after seq {self.head} comes {created.key} with seq {header['seq']}")
        if header["prev"] != self._prev:
            raise Broken(f"seq {seq}: does not follow the record before it")
        if header["sha256"] != hashlib.sha256(body).hexdigest() or header["lines"] != body.count(b"\n"):
            raise Broken(f"seq {seq}: damaged")
        self._prev = header["commit"]
        return Commit(seq, created.at_s, datetime.fromisoformat(header["at"]), tuple(_events.decode_lines(body)))

    def _fold(self, commit: Commit) -> None:
        tables = self.tables
        tables.begin(commit.at, commit.seq)
        for event in commit.events:
            apply(tables, event)
            if isinstance(event, JobEvent):
                self.jobs[event.id].append(Moment(commit.at_s, commit.seq, tables.find(event.tenant, event.id)))
            elif isinstance(event, Purged):
                for job in tables.gone():
                    self.jobs[job.id].append(Moment(commit.at_s, commit.seq, None))
            elif isinstance(event, Aged):
                self.jobs[event.id].append(Moment(commit.at_s, commit.seq, tables.find(event.tenant, event.id)))
        for name, queue in tables.tenant("default").queues.items():
            settings = self.queues[name]
            if not settings or settings[-1][1] is not queue.settings:
                settings.append((commit.at_s, queue.settings))
        self._snapshots[commit.seq] = snapshot(tables, Everything(), commit.seq)

    def state(self, seq: int) -> Snapshot:
        """The fold of the log up to this commit."""
        return self._snapshots[seq]

    def during(self, job_id: str, began_s: float, ended_s: float) -> list[Job | None]:
        """Every value the job had at some moment of this time."""
        moments = self.jobs.get(job_id, [])
        first = bisect_right(moments, began_s, key=lambda moment: moment.at_s)
        # What began at this very moment may have been seen or not.
        while first > 0 and moments[first - 1].at_s == began_s:
            first -= 1
        before = moments[first - 1].job if first else None
        return [before, *(moment.job for moment in moments[first:] if moment.at_s <= ended_s)]

    def paused(self, queue: str, began_s: float, ended_s: float) -> bool:
        """Whether the queue was paused at some moment of this time."""
        settings = self.queues.get(queue, [])
        before = [held for at_s, held in settings if at_s < began_s][-1:]
        return any(held.paused for held in (*before, *(held for at_s, held in settings if began_s <= at_s <= ended_s)))
