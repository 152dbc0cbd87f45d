"""What time demands: commands for deadlines that have passed, leases that have run out, jobs that were kept long enough."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from penstock.domain.commands import Expire, Lapse, Purge
from penstock.domain.events import AnyEvent, Cancelled, Died, Extended, Failed, Leased, Released, Succeeded
from penstock.domain.job import State
from penstock.domain.limits import KEY_KEPT_S
from penstock.domain.settings import retained_s
from penstock.domain.tables import Tables

ACTOR: Final = "penstock"


class LeaseWatch:
    """Measures leases on this process's own elapsed clock, from when it knew of them (rule 10).

    Leases of one length end in the order they were last extended, so a dict per length is a queue by deadline:
    every step costs the same, however many leases there are.
    """

    def __init__(self) -> None:
        # By length, then by (tenant, job id): when it ends, its lease_no and its beats.
        self._by_length: dict[float, dict[tuple[str, str], tuple[float, int, int]]] = {}
        self._lengths: dict[tuple[str, str], float] = {}

    def hear(self, events: Iterable[AnyEvent], elapsed: float) -> None:
        """Take note of durable events, known since this moment."""
        for event in events:
            match event:
                case Leased():
                    self._watch((event.tenant, event.id), event.lease_s, (elapsed + event.lease_s, event.lease_no, 0))
                case Succeeded() | Failed() | Died() | Released() | Cancelled():
                    self._forget((event.tenant, event.id))
                case Extended():
                    self._extend(event, elapsed)
                case _:
                    pass

    def expired(self, elapsed: float) -> list[Expire]:
        """A command for every lease whose length has passed without a sign of life."""
        self._by_length = {length: line for length, line in self._by_length.items() if line}
        return [
            Expire(tenant=tenant, actor=ACTOR, job_id=job_id, lease_no=lease_no, beats=beats)
            for line in self._by_length.values()
            for (tenant, job_id), (_, lease_no, beats) in takewhile(lambda item: item[1][0] <= elapsed, line.items())
        ]

    def _extend(self, event: Extended, elapsed: float) -> None:
        key = (event.tenant, event.id)
        length = self._forget(key)
        if length is not None:
            self._watch(key, length, (elapsed + length, event.lease_no, event.beats))

    def _forget(self, key: tuple[str, str]) -> float | None:
        length = self._lengths.pop(key, None)
        if length is not None:
            del self._by_length[length][key]
        return length

    def _watch(self, key: tuple[str, str], length: float, watched: tuple[float, int, int]) -> None:
        self._lengths[key] = length
        line = self._by_length.get(length)
        if line is None:
            line = self._by_length[length] = {}
        line[key] = watched


def lapsed(tables: Tables, now: datetime) -> list[Lapse]:
    """A command for every job still queued at its deadline."""
    return [
        Lapse(tenant=name, actor=ACTOR, job_id=job.id)
        for name, tenant in tables.tenants.items()
        for job in tenant.deadlines.until(now)
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
