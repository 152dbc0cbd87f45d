"""What time demands: commands for deadlines that have passed, leases that have run out, jobs that were kept long enough."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from penstock.domain.commands import Expire, Lapse, Purge
from penstock.domain.events import AnyEvent, Cancelled, Died, Extended, Failed, Leased, Released, Succeeded
from penstock.domain.job import State
from penstock.domain.limits import KEY_KEPT_S
from penstock.domain.settings import retained_s
from penstock.domain.tables import Tables

ACTOR = "penstock"


class _Watched(NamedTuple):
    ends_at: float
    tenant: str
    job_id: str
    lease_no: int
    beats: int


class LeaseWatch:
    """Measures leases on this process's own elapsed clock, from when it knew of them (rule 10).

    Leases of one length end in the order they were last extended, so a dict per length is a queue by deadline:
    every step costs the same, however many leases there are.
    """

    def __init__(self) -> None:
        self._by_length: dict[float, dict[tuple[str, str], _Watched]] = {}
        self._lengths: dict[tuple[str, str], float] = {}

    def hear(self, events: Iterable[AnyEvent], elapsed: float) -> None:
        """Take note of durable events, known since this moment."""
        for event in events:
            if isinstance(event, Leased):
                self._watch(event, elapsed, event.lease_s, beats=0)
            elif isinstance(event, Extended):
                length = self._lengths.get((event.tenant, event.id))
                if length is not None:
                    self._watch(event, elapsed, length, beats=event.beats)
            elif isinstance(event, Succeeded | Failed | Died | Released | Cancelled):
                self._forget((event.tenant, event.id))

    def expired(self, elapsed: float) -> list[Expire]:
        """A command for every lease whose length has passed without a sign of life."""
        return [
            Expire(
                tenant=watched.tenant,
                actor=ACTOR,
                job_id=watched.job_id,
                lease_no=watched.lease_no,
                beats=watched.beats,
            )
            for line in self._by_length.values()
            for watched in _ended(line.values(), elapsed)
        ]

    def _watch(self, event: Leased | Extended, elapsed: float, length: float, *, beats: int) -> None:
        key = (event.tenant, event.id)
        self._forget(key)
        self._lengths[key] = length
        line = self._by_length.setdefault(length, {})
        line[key] = _Watched(elapsed + length, event.tenant, event.id, event.lease_no, beats)

    def _forget(self, key: tuple[str, str]) -> None:
        length = self._lengths.pop(key, None)
        if length is not None:
            line = self._by_length[length]
            del line[key]
            if not line:
                del self._by_length[length]


def _ended(line: Iterable[_Watched], elapsed: float) -> Iterator[_Watched]:
    for watched in line:
        if watched.ends_at > elapsed:
            return
        yield watched


def lapsed(tables: Tables, now: datetime) -> list[Lapse]:
    """A command for every job still queued at its deadline."""
    return [
        Lapse(tenant=name, actor=ACTOR, job_id=job.id)
        for name, tenant in tables.tenants.items()
        for job in tenant.deadlines.early(now, tenant.jobs)
    ]


def outlived(tables: Tables, now: datetime) -> list[Purge]:
    """A command for every queue and state with finished jobs that were kept long enough."""
    purges = []
    for tenant_name, tenant in tables.tenants.items():
        for queue_name, queue in tenant.queues.items():
            for (state, keyed), shelf in queue.finished.items():
                bound = now - timedelta(seconds=_kept_s(retained_s(queue.settings, state), keyed=keyed))
                head = shelf.head()
                if head is not None and head.finished_at is not None and head.finished_at <= bound:
                    purges.append(
                        Purge(
                            tenant=tenant_name,
                            actor=ACTOR,
                            queue=queue_name,
                            state=State(state),
                            keyed=keyed,
                            finished_by=bound,
                        )
                    )
    return purges


def _kept_s(retained: float, *, keyed: bool) -> float:
    # Counted from the finish, which is after the enqueue: a key is kept 24 h from its enqueue at least.
    return max(retained, KEY_KEPT_S) if keyed else retained
