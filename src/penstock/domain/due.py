"""What time demands: commands for deadlines that have passed, leases that have run out, jobs that were kept long enough."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from penstock.domain.commands import Age, Expire, Lapse, Purge
from penstock.domain.events import Aged, AnyEvent, Cancelled, Died, Extended, Failed, Leased, Released, Succeeded
from penstock.domain.job import State
from penstock.domain.limits import KEY_KEPT_S, MOST_KEPT, REPEAT_S
from penstock.domain.settings import retained_s
from penstock.domain.tables import Tables

ACTOR: Final = "penstock"
# A process that watches a lease for less than this says nothing of it: a short command writes no more than its own.
_NOTABLE_S: Final = 1.0
_ENDINGS: Final = frozenset({Succeeded, Failed, Died, Released, Cancelled})
_Key = tuple[str, str]


class _Watched(Struct, frozen=True, gc=False):
    """When a lease ends by this process's elapsed clock, if nothing happens to it."""

    ends_at: float
    lease_no: int
    beats: int
    lease_s: float


class LeaseWatch:
    """Measures leases on this process's own elapsed clock, from when it knew of them (rule 10).

    Leases that were as long when this process came to know them end in the order it did, so a dict per length is a
    queue by the end: every step costs the same, however many leases there are.
    """

    def __init__(self) -> None:
        # By (left_s, lease_s) when it was known, then by (tenant, job id).
        self._lines: dict[tuple[float, float], dict[_Key, _Watched]] = {}
        self._where: dict[_Key, dict[_Key, _Watched]] = {}
        self._notes: dict[type[AnyEvent], Callable[[Any, float], None]] = {
            Leased: self._begun,
            Extended: self._extended,
            Aged: self._aged,
        }

    def __len__(self) -> int:
        """How many leases are outstanding."""
        return len(self._where)

    def begin(self, tables: Tables, elapsed: float, before: "LeaseWatch") -> None:
        """Watch every lease there is, known since this moment, or since ``before`` knew it as it is."""
        for name, tenant in tables.tenants.items():
            for job in tenant.jobs.values():
                if job.lease is not None:
                    left_s = job.lease.lease_s if job.lease.left_s is None else job.lease.left_s
                    watched = _Watched(elapsed + left_s, job.lease_no, job.lease.beats, job.lease.lease_s)
                    earlier = before.of((name, job.id))
                    if earlier is not None and (earlier.lease_no, earlier.beats) == (job.lease_no, job.lease.beats):
                        watched = min(earlier, watched, key=_ends_at)
                    self._watch((name, job.id), left_s, watched)

    def of(self, key: _Key) -> _Watched | None:
        """What is known of one lease."""
        return self._where[key][key] if key in self._where else None

    def hear(self, events: Iterable[AnyEvent], elapsed: float) -> None:
        """Take note of durable events, known since this moment."""
        notes, where = self._notes, self._where
        event: Any
        for event in events:
            kind = type(event)
            if kind in _ENDINGS:
                # Here and not in a note: every job comes to this, and none of it needs the time.
                key = (event.tenant, event.id)
                line = where.pop(key, None)
                if line is not None:
                    del line[key]
            elif kind in notes:
                notes[kind](event, elapsed)

    def expired(self, elapsed: float) -> list[Expire]:
        """A command for every lease whose length has passed without a sign of life."""
        self._lines = {length: line for length, line in self._lines.items() if line}
        return [
            Expire(tenant=tenant, actor=ACTOR, job_id=job_id, lease_no=watched.lease_no, beats=watched.beats)
            for line in self._lines.values()
            for (tenant, job_id), watched in takewhile(lambda item: item[1].ends_at <= elapsed, line.items())
        ]

    def halfway(self, elapsed: float) -> list[Age]:
        """A command for every lease of which half is left at most while the store says more. What is over is not old."""
        return [
            _to_age(key, watched, elapsed)
            for (left_s, lease_s), line in self._lines.items()
            if left_s > lease_s / 2
            for key, watched in takewhile(
                lambda item, half_s=lease_s / 2: item[1].ends_at - half_s <= elapsed,  # type: ignore[misc] # a default binds it
                line.items(),
            )
            if watched.ends_at > elapsed
        ]

    def parting(self, elapsed: float) -> list[Age]:
        """A command for every lease that was watched for a while: that must not be lost with the process."""
        return [
            _to_age(key, watched, elapsed)
            for (left_s, _), line in self._lines.items()
            for key, watched in takewhile(
                lambda item, left_s=left_s: left_s - (item[1].ends_at - elapsed) >= _NOTABLE_S,  # type: ignore[misc] # a default binds it
                line.items(),
            )
        ]

    def _begun(self, event: Leased, elapsed: float) -> None:
        lease_s = event.lease_s
        self._watch((event.tenant, event.id), lease_s, _Watched(elapsed + lease_s, event.lease_no, 0, lease_s))

    def _extended(self, event: Extended, elapsed: float) -> None:
        key = (event.tenant, event.id)
        watched = self._forget(key)
        if watched is not None:
            lease_s = watched.lease_s
            self._watch(key, lease_s, _Watched(elapsed + lease_s, event.lease_no, event.beats, lease_s))

    def _aged(self, event: Aged, elapsed: float) -> None:
        key = (event.tenant, event.id)
        watched = self._forget(key)
        if watched is not None:
            # This process has perhaps watched it for longer than whoever said so.
            ends_at = min(watched.ends_at, elapsed + event.left_s)
            self._watch(key, event.left_s, replace(watched, ends_at=ends_at))

    def _forget(self, key: _Key) -> _Watched | None:
        line = self._where.pop(key, None)
        return None if line is None else line.pop(key)

    def _watch(self, key: _Key, left_s: float, watched: _Watched) -> None:
        length = (left_s, watched.lease_s)
        line = self._lines.get(length)
        if line is None:
            line = self._lines[length] = {}
        self._where[key] = line
        line[key] = watched


def _ends_at(watched: _Watched) -> float:
    return watched.ends_at


def _to_age(key: _Key, watched: _Watched, elapsed: float) -> Age:
    left_s = round(max(0.0, watched.ends_at - elapsed), 3)
    tenant, job_id = key
    return Age(
        tenant=tenant,
        actor=ACTOR,
        job_id=job_id,
        lease_no=watched.lease_no,
        beats=watched.beats,
        left_s=left_s,
    )


def lapsed(tables: Tables, now: datetime) -> list[Lapse]:
    """A command for every job still queued at its deadline."""
    return [
        Lapse(tenant=name, actor=ACTOR, job_id=job.id)
        for name, tenant in tables.tenants.items()
        for job in tenant.deadlines.until(now)
    ]


def outlived(tables: Tables, now: datetime, most: int = MOST_KEPT) -> list[Purge]:
    """A command for every queue and state with finished jobs that were kept long enough.

    If more than ``most`` without a key are kept in all, those that finished first go early, though not before repeats
    of their last call are over (rules 5 and 23).
    """
    purges: list[Purge] = []
    crowd: list[tuple[datetime, dict[str, Any]]] = []
    without_key = 0
    for tenant_name, tenant in tables.tenants.items():
        for queue_name, queue in tenant.queues.items():
            for (state, keyed), shelf in queue.finished.items():
                head = shelf.head()
                if head is None or head.finished_at is None:
                    continue
                about: dict[str, Any] = {
                    "tenant": tenant_name,
                    "queue": queue_name,
                    "state": State(state),
                    "keyed": keyed,
                }
                bound = now - timedelta(seconds=_kept_s(retained_s(queue.settings, state), keyed=keyed))
                if head.finished_at <= bound:
                    purges.append(Purge(**about, actor=ACTOR, finished_by=bound))
                elif not keyed:
                    crowd.append((head.finished_at, about))
                without_key += 0 if keyed else shelf.live
    if without_key > most and crowd:
        finished_at, about = min(crowd, key=lambda one: one[0])
        if finished_at <= (early := now - timedelta(seconds=REPEAT_S)):
            purges.append(Purge(**about, actor=ACTOR, finished_by=early))
    return purges


def _kept_s(retained: float, *, keyed: bool) -> float:
    # Counted from the finish, which is after the enqueue: a key is kept 24 h from its enqueue at least.
    return max(retained, KEY_KEPT_S) if keyed else retained
