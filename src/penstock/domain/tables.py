"""The state of a store in memory: all jobs and settings, and every index over them."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from penstock.domain import limits
from penstock.domain.commands import SettingKind
from penstock.domain.heap import Heap
from penstock.domain.job import Ending, Hold, Job, State
from penstock.domain.line import Line
from penstock.domain.settings import DEFAULTS, QueueSettings, Setting, queue_settings

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STALE_IDS: Final = 1024


class QueueTable:
    """The jobs of one queue: in line by kind, finished ones by time, and counted by state."""

    __slots__ = ("counts", "finished", "lines", "settings")

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.counts: dict[State, int] = dict.fromkeys(State, 0)
        self.finished: dict[tuple[State, bool], Heap] = {}
        self.settings: QueueSettings = DEFAULTS

    def tidy(self) -> bool:
        """Forget lines that nobody stands in; say whether nothing is left to remember of this queue."""
        self.lines = {kind: line for kind, line in self.lines.items() if line.ready or line.later}
        return not any(self.counts.values()) and self.settings is DEFAULTS


class TenantTable:
    """The jobs of one tenant, by id, by idempotency key and by the lease call that took them last."""

    __slots__ = ("calls", "deadlines", "ids", "jobs", "keys", "queues")

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.keys: dict[str, str] = {}
        self.calls: dict[str, tuple[str, ...]] = {}
        self.queues: dict[str, QueueTable] = {}
        self.deadlines = Heap(self.jobs)
        # In the order of ids; may hold ids of jobs that are gone.
        self.ids: list[str] = []

    def queue(self, name: str) -> QueueTable:
        """The queue of this name, made when it is new."""
        table = self.queues.get(name)
        if table is None:
            table = self.queues[name] = QueueTable()
        return table

    def newest_first(self, before: str | None) -> Iterator[Job]:
        """All jobs from the highest id down, beginning below the given one."""
        position = len(self.ids) if before is None else bisect_left(self.ids, before)
        while position:
            position -= 1
            job = self.jobs.get(self.ids[position])
            if job is not None:
                yield job


class Tables:
    """All tenants' jobs and settings. ``put`` (by its three cases) and ``put_setting`` are the only ways to change them.

    Every change since ``begin`` is kept in a journal, so that a commit that lost can be rolled back.
    """

    def __init__(self) -> None:
        self.tenants: dict[str, TenantTable] = {}
        self.settings: dict[tuple[str, SettingKind, str], Setting] = {}
        self.setting_revs: dict[tuple[str, SettingKind, str], int] = {}
        self.now: datetime = _EPOCH
        self.now_s = 0.0
        # The commit that is being made or was made last.
        self.seq = 0
        # The latest time any commit carried; serves for nothing but the order within a priority (rule 8).
        self.log_time: datetime = _EPOCH
        self.order = 0
        self._journal: list[tuple[Job | None, Job | None]] = []
        self._settings_journal: list[tuple[tuple[str, SettingKind, str], Setting | None, int]] = []
        self._before = (self.now, self.log_time, self.order, self.seq)
        self._fresh_ids: tuple[str, str] | None = None

    def begin(self, now: datetime, seq: int) -> None:
        """Start commit ``seq`` at this time; what came before can no longer be rolled back."""
        self._journal.clear()
        self._settings_journal.clear()
        self._before = (self.now, self.log_time, self.order, self.seq)
        self.seq = seq
        self.now = now
        self.now_s = now.timestamp()
        self._fresh_ids = None
        self.log_time = max(self.log_time, now)

    def rollback(self) -> None:
        """Undo everything since ``begin``: jobs, settings, order and time."""
        changes = self._journal[::-1]
        for old, new in changes:
            self.put(new, old)
        for tenant, queue in {(job.tenant, job.queue) for change in changes for job in change if job is not None}:
            self.tidy(tenant, queue)
        for key, setting, rev in reversed(self._settings_journal):
            self._set(key, setting, rev)
        self._journal.clear()
        self._settings_journal.clear()
        self.now, self.log_time, self.order, self.seq = self._before
        self.now_s = self.now.timestamp()

    @property
    def fresh_ids(self) -> tuple[str, str]:
        """Between which texts an id is surely fresh in this commit."""
        if self._fresh_ids is None:
            self._fresh_ids = limits.fresh_ids(self.now_s)
        return self._fresh_ids

    def tenant(self, name: str) -> TenantTable:
        """The tenant of this name, made when it is new."""
        table = self.tenants.get(name)
        if table is None:
            table = self.tenants[name] = TenantTable()
        return table

    def find(self, tenant: str, job_id: str) -> Job | None:
        """The job, unless there is none of that id or it is another tenant's."""
        table = self.tenants.get(tenant)
        return None if table is None else table.jobs.get(job_id)

    def queue(self, tenant: str, name: str) -> QueueTable | None:
        """The queue, if there is anything to say of it."""
        table = self.tenants.get(tenant)
        return None if table is None else table.queues.get(name)

    def queue_settings(self, tenant: str, queue: str) -> QueueSettings:
        """How the queue behaves."""
        table = self.tenants.get(tenant)
        known = None if table is None else table.queues.get(queue)
        return DEFAULTS if known is None else known.settings

    def put(self, old: Job | None, new: Job | None) -> None:
        """Replace one value of a job by the next, in every index there is; None stands for absent."""
        if old is not None and new is not None:
            self.change(old, new)
        elif new is not None:
            self.add(new)
        elif old is not None:
            self.remove(old)

    def add(self, job: Job) -> None:
        """Take in a job, in every index there is."""
        self._journal.append((None, job))
        tenant = self.tenants.get(job.tenant) or self.tenant(job.tenant)
        queue = tenant.queues.get(job.queue) or tenant.queue(job.queue)
        tenant.jobs[job.id] = job
        queue.counts[job.state] += 1
        if job.lease is None:
            _enter(tenant, queue, job, self.now)
        ids = tenant.ids
        if not ids or job.id > ids[-1]:
            ids.append(job.id)
        elif ids[bisect_left(ids, job.id)] != job.id:
            insort(ids, job.id)
        if job.idempotency_key is not None:
            tenant.keys[job.idempotency_key] = job.id
        if job.lease is not None or job.ending is not None:
            _called(tenant, job.id, None, job.lease or job.ending)

    def change(self, old: Job, new: Job) -> None:
        """Replace one value of a job by the next. It keeps its names, so what is indexed by those stays as it is."""
        self._journal.append((old, new))
        tenant = self.tenants[new.tenant]
        queue = tenant.queues[new.queue]
        tenant.jobs[new.id] = new
        counts = queue.counts
        counts[old.state] -= 1
        counts[new.state] += 1
        if old.lease is None:
            if old.state is State.QUEUED and old.deadline_at is None:
                # As nearly every job that is leased.
                queue.lines[old.kind].leave(old)
            else:
                _leave(tenant, queue, old)
        if new.lease is None:
            _enter(tenant, queue, new, self.now)
        before, after = old.lease or old.ending, new.lease or new.ending
        if before is not after and (before is None or after is None or before.call != after.call):
            _called(tenant, new.id, before, after)

    def remove(self, job: Job) -> None:
        """Take a job out of every index."""
        self._journal.append((job, None))
        tenant = self.tenants[job.tenant]
        queue = tenant.queues[job.queue]
        del tenant.jobs[job.id]
        queue.counts[job.state] -= 1
        if job.lease is None:
            _leave(tenant, queue, job)
        if job.idempotency_key is not None and tenant.keys.get(job.idempotency_key) == job.id:
            del tenant.keys[job.idempotency_key]
        if len(tenant.ids) > 2 * len(tenant.jobs) + _STALE_IDS:
            tenant.ids = [job_id for job_id in tenant.ids if job_id in tenant.jobs]
        _called(tenant, job.id, job.lease or job.ending, None)

    def load(self, job: Job) -> None:
        """Put in a job of a snapshot, which cannot be rolled back."""
        self.add(job)
        self._journal.clear()

    def gone(self) -> Iterator[Job]:
        """The jobs that left the tables since ``begin``."""
        return (old for old, new in self._journal if new is None and old is not None)

    def tidy(self, tenant: str, queue: str) -> None:
        """Forget what is empty of a queue."""
        table = self.tenant(tenant)
        if table.queue(queue).tidy():
            del table.queues[queue]

    def put_setting(self, key: tuple[str, SettingKind, str], setting: Setting | None, rev: int) -> None:
        """Replace a setting, or forget it; ``rev`` goes on either way."""
        self._settings_journal.append((key, self.settings.get(key), self.setting_revs.get(key, 0)))
        self._set(key, setting, rev)

    def _set(self, key: tuple[str, SettingKind, str], setting: Setting | None, rev: int) -> None:
        tenant, kind, name = key
        if rev:
            self.setting_revs[key] = rev
        else:
            self.setting_revs.pop(key, None)
        if setting is None:
            self.settings.pop(key, None)
        else:
            self.settings[key] = setting
        if kind is SettingKind.QUEUE:
            self.tenant(tenant).queue(name).settings = DEFAULTS if setting is None else queue_settings(setting.value)
            self.tidy(tenant, name)


def _leave(tenant: TenantTable, queue: QueueTable, job: Job) -> None:
    if job.state is State.QUEUED:
        queue.lines[job.kind].leave(job)
        if job.deadline_at is not None:
            tenant.deadlines.live -= 1
    else:
        queue.finished[job.state, job.idempotency_key is not None].live -= 1


def _enter(tenant: TenantTable, queue: QueueTable, job: Job, now: datetime) -> None:
    if job.state is State.QUEUED:
        line = queue.lines.get(job.kind)
        if line is None:
            line = queue.lines[job.kind] = Line(tenant.jobs)
        line.enter(job, now)
        if job.deadline_at is not None:
            tenant.deadlines.enter(job.deadline_at, job)
    else:
        key = job.state, job.idempotency_key is not None
        shelf = queue.finished.get(key)
        if shelf is None:
            shelf = queue.finished[key] = Heap(tenant.jobs)
        assert job.finished_at is not None
        shelf.enter(job.finished_at, job)


def _called(tenant: TenantTable, job_id: str, before: Hold | Ending | None, after: Hold | Ending | None) -> None:
    """Keep the index from a lease call to the jobs it took last."""
    calls = tenant.calls
    if before is not None:
        left = tuple(other for other in calls.get(before.call, ()) if other != job_id)
        if left:
            calls[before.call] = left
        else:
            calls.pop(before.call, None)
    if after is not None:
        others = calls.get(after.call)
        calls[after.call] = (job_id,) if others is None else (*others, job_id)
