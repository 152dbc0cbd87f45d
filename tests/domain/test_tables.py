"""Rolling back: a batch that lost leaves no trace. The model test tries it at random; here are the hard cases."""

from collections.abc import Sequence

import pytest

from penstock.domain.batch import run
from penstock.domain.commands import (
    Cancel,
    Command,
    DeleteSetting,
    Enqueue,
    Expire,
    LeaseJobs,
    PutSetting,
    Requeue,
    SettingKind,
)
from penstock.domain.due import lapsed
from penstock.domain.job import NewJob, State
from penstock.domain.outcome import Leases, Outcome
from penstock.domain.queries import Everything, ListJobs, Stats, page, snapshot, stats
from penstock.domain.tables import Tables
from tests.domain.values import after

IDS = [f"01b8dac5-b400-7000-8000-{number:012}" for number in range(6)]
CALL = "a-request-id-of-16"


def _commit(tables: Tables, at_s: float, *batch: Command) -> list[Outcome]:
    tables.begin(after(at_s), tables.seq + 1)
    outcomes, _ = run(tables, batch)
    return outcomes


def _take_back(tables: Tables, at_s: float, *batch: Command) -> None:
    before = _seen(tables, at_s)
    _commit(tables, at_s, *batch)
    tables.rollback()
    assert _seen(tables, at_s) == before


def _seen(tables: Tables, at_s: float) -> Sequence[object]:
    return [
        snapshot(tables, Everything(), 0),
        stats(tables, Stats(), after(at_s)),
        page(tables, ListJobs()),
        lapsed(tables, after(at_s + 3600)),
        (tables.now, tables.log_time, tables.order),
    ]


def _new(number: int, **options: float) -> Enqueue:
    return Enqueue(
        jobs=(NewJob("mail", id=IDS[number], delay_s=options.get("delay_s"), deadline_s=options.get("deadline_s")),)
    )


def test_a_queue_that_was_never_there_is_not_there() -> None:
    tables = Tables()
    _take_back(tables, 0, _new(0), LeaseJobs(queues=("mail",), request_id=CALL))
    assert stats(tables, Stats(), after(0)) == ()
    _take_back(tables, 0, PutSetting(kind=SettingKind.QUEUE, name="sms", patch={"paused": True}))
    assert stats(tables, Stats(), after(0)) == ()


def test_a_setting_is_as_it_was_and_so_is_the_queue() -> None:
    tables = Tables()
    _commit(tables, 0, PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"paused": True}))
    _take_back(tables, 1, PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"paused": False}))
    _take_back(tables, 1, DeleteSetting(kind=SettingKind.QUEUE, name="mail"), _new(0))
    assert tables.queue_settings("default", "mail").paused


def test_a_scheduled_job_is_due_once_though_it_was_touched_and_left() -> None:
    tables = Tables()
    _commit(tables, 0, _new(0, delay_s=7.0))
    _take_back(tables, 1, Cancel(job_id=IDS[0], requeues=0))
    [told] = stats(tables, Stats(), after(7))
    assert (told.queued, told.ready, told.scheduled) == (1, 1, 0)


def test_a_deadline_is_named_once_though_it_was_touched_and_left() -> None:
    tables = Tables()
    _commit(tables, 0, _new(0, deadline_s=7.0))
    _take_back(tables, 1, LeaseJobs(queues=("mail",), request_id=CALL))
    assert [command.job_id for command in lapsed(tables, after(7))] == [IDS[0]]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (2, 1, 0), (1, 2, 0)])
def test_finished_jobs_are_in_the_order_they_finished_though_some_were_requeued_and_left(
    order: tuple[int, ...],
) -> None:
    tables = Tables()
    for number in range(4):
        _commit(tables, number, _new(number))
        _commit(tables, number, Cancel(job_id=IDS[number], requeues=0))
    _take_back(tables, 9, *(Requeue(job_id=IDS[number], requeues=0) for number in order))
    shelf = tables.tenants["default"].queues["mail"].finished[State.CANCELLED, False]
    for number in range(4):
        assert [job.id for job in shelf.until(after(number))] == IDS[: number + 1]


def test_a_repeated_lease_call_gets_its_leases_in_their_order_though_one_was_taken_over_and_left() -> None:
    tables = Tables()
    call = LeaseJobs(queues=("mail",), request_id=CALL, limit=3)
    _commit(tables, 0, _new(0), _new(1), _new(2))
    [first] = _commit(tables, 0, call)
    _take_back(
        tables,
        31,
        Expire(job_id=IDS[1], lease_no=1, beats=0),
        Cancel(job_id=IDS[1], requeues=0),
        Requeue(job_id=IDS[1], requeues=0),
        LeaseJobs(queues=("mail",), request_id="another-request-id"),
    )
    [again] = _commit(tables, 31, call)
    assert isinstance(first, Leases)
    assert isinstance(again, Leases)
    assert [lease.token for lease in again.leases] == [lease.token for lease in first.leases]
