"""The checker of logs: it names every kind of damage, and finds nothing wrong with what the state machine makes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.domain import apply, due
from penstock.domain.batch import run
from penstock.domain.commands import Ack, Command, Enqueue, Expire, LeaseJobs, Nack, Release, Update
from penstock.domain.events import AnyEvent, AttemptEvent, Died, Failed, Record, Released, Succeeded, Updated
from penstock.domain.job import NewJob, Verb
from penstock.domain.outcome import Leases
from penstock.domain.tables import Tables
from penstock.domain.verify import RULES, Base, Verifier
from penstock.testing import FakeClock
from tests.domain import broken_lives
from tests.domain.broken_logs import BROKEN, Damage
from tests.domain.chronicle import QUEUE, Chronicle, findings
from tests.model.machine import LONG_S, SHORT_S
from tests.model.wishes import Wish, any_wish, to_enqueue, to_lease, to_work

assert broken_lives.__name__ in {damage.__module__ for _, damage in BROKEN}


@pytest.mark.parametrize(("rule", "damage"), [pytest.param(*one, id=one[1].__name__) for one in BROKEN])
def test_a_broken_log_is_named_by_rule_seq_and_job(rule: str, damage: Damage) -> None:
    wrong = damage()
    found = findings(wrong.log.records, wrong.live)
    assert (rule, wrong.seq, wrong.job_id) in [(one.rule, one.seq, one.job_id) for one in found]
    assert {one.rule for one in found} == {rule, *wrong.also}


def test_every_rule_has_a_broken_log() -> None:
    # What cannot be read at all is no record: see the tests of reading.
    assert {rule for rule, _ in BROKEN} == set(RULES) - {"corrupt"}


# Wishes for one commit, seconds that pass, or what time demands.
_steps: st.SearchStrategy[list[list[Wish] | float | str]] = st.lists(
    st.one_of(
        st.lists(any_wish, min_size=1, max_size=5),
        st.tuples(to_enqueue, to_lease, to_work, to_work).map(list),
        st.sampled_from(SHORT_S * 3 + LONG_S),
        st.sampled_from(("overdue", "outlived")),
    ),
    min_size=20,
    max_size=80,
)


def _played(steps: list[list[Wish] | float | str]) -> Chronicle:
    log = Chronicle()
    for step in steps:
        match step:
            case float():
                log.clock.advance(step)
            case "overdue":
                log.commit(*log.overdue())
            case "outlived":
                log.commit(*log.outlived())
            case list():
                log.commit(*(wish.command(log.world) for wish in step))
    return log


_MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@_MANY
@given(_steps)
def test_nothing_is_wrong_with_what_the_state_machine_makes(steps: list[list[Wish] | float | str]) -> None:
    log = _played(steps)
    assert findings(log.records, log.live()) == []


@_MANY
@given(_steps, st.lists(any_wish, min_size=5, max_size=20))
def test_nor_when_the_oldest_records_are_gone(steps: list[list[Wish] | float | str], later: list[Wish]) -> None:
    log = _played(steps)
    tables = log.tables
    jobs = [job for tenant in tables.tenants.values() for job in tenant.jobs.values()]
    base = Base(log.seq, tables.log_time, jobs, list(tables.settings.values()), dict(tables.setting_revs))
    for wish in later:
        log.commit(wish.command(log.world))
    log.commit(*log.overdue())
    verifier = Verifier(base)
    found = [one for record in log.records[base.seq :] for one in verifier.check(record)]
    assert [*found, *verifier.finish(log.live())] == []
    assert verifier.seq == log.seq


def _keeps_the_attempt(tables: Tables, event: Released) -> None:
    apply.released(tables, replace(event, charged=True))


def _forgets_an_expiry(tables: Tables, event: Failed) -> None:
    apply.failed(tables, replace(event, verb=Verb.NACK))


def _queues_a_dead_job(tables: Tables, event: Died) -> None:
    failed = {name: getattr(event, name) for name in AttemptEvent.__struct_fields__}
    apply.failed(tables, Failed(**failed, run_at=tables.now))


def _loses_the_result(tables: Tables, event: Succeeded) -> None:
    apply.succeeded(tables, replace(event, result=None))


def _stands_at_the_end(tables: Tables, event: Updated) -> None:
    apply.updated(tables, replace(event, run_at=tables.now))


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        (Released, _keeps_the_attempt),
        (Failed, _forgets_an_expiry),
        (Died, _queues_a_dead_job),
        (Succeeded, _loses_the_result),
        (Updated, _stands_at_the_end),
    ],
)
def test_a_fault_of_the_state_machine_itself_is_found(
    monkeypatch: pytest.MonkeyPatch, event: type[AnyEvent], wrong: Callable[[Tables, Any], None]
) -> None:
    monkeypatch.setitem(apply.CHANGES, event, wrong)
    log = Chronicle()
    job_id, token = log.leased(max_attempts=2)
    log.commit(Release(job_id=job_id, token=token))
    log.lease()
    log.commit(Expire(job_id=job_id, lease_no=2, beats=0))
    log.clock.advance(60)
    job_id, token = log.lease()
    log.commit(Nack(job_id=job_id, token=token))
    job_id, token = log.leased()
    log.commit(Ack(job_id=job_id, token=token, result=b"1"))
    log.commit(Update(job_id=log.enqueue(), requeues=0, priority=1))
    assert findings(log.records, log.live()) != []


def test_a_lease_that_leaves_other_kinds_in_line_is_in_order() -> None:
    log = Chronicle()
    log.enqueue(kind="a")
    job_id = log.enqueue(kind="b")
    assert log.lease(kinds=("b",))[0] == job_id
    assert findings(log.records, log.live()) == []


def test_a_job_that_was_ready_before_the_clock_went_back_need_not_wait_for_it_again() -> None:
    log = Chronicle()
    first = log.enqueue(delay_s=10.0)
    second = log.enqueue(delay_s=11.0)
    third = log.enqueue(delay_s=5.0)
    log.clock.advance(12)
    assert log.lease()[0] == third
    log.clock.advance(-4)
    assert [log.lease()[0], log.lease()[0]] == [first, second]
    assert findings(log.records, log.live()) == []


def test_of_jobs_that_wait_for_the_clock_again_none_is_passed_over_by_one_that_does_not() -> None:
    log = Chronicle()
    ahead, behind = log.enqueue(delay_s=1.0), log.enqueue(delay_s=2.0)
    log.enqueue(delay_s=10.0, priority=-1)
    log.clock.advance(12)
    log.lease()
    log.enqueue(delay_s=1.0, priority=-1)
    log.clock.advance(-9.5)
    seq = log.add(log.a_lease(behind))
    assert [(one.rule, one.seq, one.job_id) for one in findings(log.records)] == [("order", seq, behind)]
    assert ahead in findings(log.records)[0].message


def test_a_job_that_changes_its_priority_often_leaves_little_behind() -> None:
    log = Chronicle()
    job_id = log.enqueue()
    for priority in (1, 0) * 200:
        log.commit(Update(job_id=job_id, requeues=0, priority=priority))
    verifier = Verifier()
    assert [one for record in log.records for one in verifier.check(record)] == []
    line = verifier._book.tenants["default"].queues[QUEUE].lines[QUEUE]
    assert len(line._ready) < 100


def _busy_log(events: int, *, jobs_at_once: int = 200) -> Iterator[Record]:
    """Jobs come, are leased and succeed, and are purged an hour later. Made without detours: it is long."""
    clock, tables = FakeClock(), Tables()
    acks: list[Command] = []
    yield Record(1, clock.now(), ())
    seq, made_so_far = 1, 0
    while made_so_far < events:
        seq += 1
        tables.begin(clock.now(), seq)
        jobs = tuple(NewJob(QUEUE, b"", id=clock.job_id()) for _ in range(jobs_at_once))
        to_take = LeaseJobs(queues=(QUEUE,), request_id=clock.secret(), limit=jobs_at_once)
        outcomes, made = run(tables, [*acks, *due.outlived(tables, clock.now()), Enqueue(jobs=jobs), to_take])
        taken = outcomes[-1]
        assert isinstance(taken, Leases)
        acks = [Ack(job_id=lease.job.id, token=lease.token) for lease in taken.leases]
        yield Record(seq, clock.now(), tuple(made))
        made_so_far += len(made)
        clock.advance(120)


def _kept(verifier: Verifier) -> int:
    """How many entries the checker's books have."""
    return sum(
        len(tenant.jobs) + len(tenant.calls) + sum(len(shelf._jobs) for shelf in queue.shelves.values())
        for tenant in verifier._book.tenants.values()
        for queue in tenant.queues.values()
    )


def test_purged_jobs_leave_nothing_behind() -> None:
    verifier = Verifier()
    kept = []
    for record in _busy_log(30_000):
        assert verifier.check(record) == []
        kept.append(_kept(verifier))
    # An hour's worth, from the first purge on.
    assert max(kept[40:]) <= max(kept[:40])


@pytest.mark.slow
def test_a_clean_million_events_pass() -> None:
    verifier = Verifier()
    found = [one for record in _busy_log(1_000_000) for one in verifier.check(record)]
    assert found == []
    assert verifier.events >= 1_000_000
    assert verifier.finished == verifier.jobs - 200
    assert _kept(verifier) < 20_000
