"""Planted in the state machine and its tables."""

from heapq import heappop
from typing import Any

from penstock.domain import apply, decide
from penstock.domain.events import AttemptEvent, Failed, Released
from penstock.domain.heap import Heap
from penstock.domain.job import Job, Verb
from penstock.domain.tables import Tables
from tests.simulation.planted.bug import bug


@bug("no token check", breaks="G6", where=decide, what="held", seeds=20, vanish=0.0, lease_s=2.0)
def _held_by_anybody(tables: Tables, command: Any, verb: Verb) -> Job | None:
    job = tables.find(command.tenant, command.job_id)
    return job if job is not None and job.lease is not None else _held(tables, command, verb)


_held = decide.held


@bug("expiry not counted", breaks="G4", where=apply.CHANGES, what=Failed, seeds=20, vanish=0.4)
def _failed_for_free(tables: Tables, event: Failed) -> None:
    if event.verb is not Verb.EXPIRE:
        _failed(tables, event)
        return
    attempt = {name: getattr(event, name) for name in AttemptEvent.__struct_fields__}
    apply.CHANGES[Released](tables, Released(**attempt, run_at=event.run_at))


_failed = apply.CHANGES[Failed]


@bug("time not restored after a lost race", breaks="G1", where=Tables, what="rollback", seeds=40, processes=3)
def _time_goes_on(tables: Tables) -> None:
    after = (tables.now, tables.log_time, tables.order)
    _rollback(tables)
    tables.now, tables.log_time, tables.order = after


_rollback = Tables.rollback


@bug("a job twice in line", breaks="G5", where=Heap, what="head", seeds=20, processes=3)
def _head_by_id(heap: Heap) -> Job | None:
    def gone(job: Job) -> bool:
        return job.id not in heap._jobs or heap._jobs[job.id].state.finished

    while heap._line and gone(heap._line[0][2]):
        heap._line.popleft()
    while heap._heap and gone(heap._heap[0][2]):
        heappop(heap._heap)
    return heap._line[0][2] if heap._line else heap._heap[0][2] if heap._heap else None


@bug("a heap tie comparing jobs", breaks="unhandled", where=Job, what="__lt__", seeds=40, operators=4, workers=1)
def _by_value(job: Job, other: Job) -> bool:
    return job.payload_bytes < other  # type: ignore[operator] # the bug: a job has no order
