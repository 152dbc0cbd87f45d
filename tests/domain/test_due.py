"""What time demands: which leases have run out, and which finished jobs were kept long enough."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.batch import run
from penstock.domain.commands import Cancel, Enqueue, PutSetting, SettingKind
from penstock.domain.due import LeaseWatch, outlived
from penstock.domain.events import AnyEvent, Extended, Leased, Released
from penstock.domain.job import NewJob
from penstock.domain.limits import REPEAT_S
from penstock.domain.tables import Tables
from tests.domain.values import a_job, after

HOUR_S = 3600.0


def _leased(job_id: str, *, lease_no: int = 1, lease_s: float = 30.0) -> Leased:
    return Leased(
        id=job_id, queue="mail", kind="mail", rev=2, attempt=1, lease_no=lease_no, lease_s=lease_s, call="c", index=0
    )


def _extended(job_id: str, beats: int, *, lease_no: int = 1) -> Extended:
    return Extended(id=job_id, queue="mail", kind="mail", rev=2, attempt=1, lease_no=lease_no, beats=beats)


def _released(job_id: str) -> Released:
    return Released(id=job_id, queue="mail", kind="mail", rev=3, attempt=1, lease_no=1)


def test_a_lease_ends_its_length_after_it_was_heard_of() -> None:
    watch = LeaseWatch()
    watch.hear([_leased("a")], 100.0)
    assert watch.expired(129.999) == []
    [expiry] = watch.expired(130.0)
    assert (expiry.job_id, expiry.lease_no, expiry.beats, expiry.actor) == ("a", 1, 0, "penstock")
    assert len(watch.expired(130.0)) == 1


def test_a_heartbeat_starts_its_time_again_and_is_named_in_the_expiry() -> None:
    watch = LeaseWatch()
    watch.hear([_leased("a")], 0.0)
    watch.hear([_extended("a", 1), _extended("a", 2)], 20.0)
    assert watch.expired(49.0) == []
    [expiry] = watch.expired(50.0)
    assert expiry.beats == 2


def test_a_lease_that_ended_otherwise_does_not_expire() -> None:
    watch = LeaseWatch()
    watch.hear([_leased("a"), _leased("b")], 0.0)
    watch.hear([_released("a")], 1.0)
    assert [expiry.job_id for expiry in watch.expired(99.0)] == ["b"]


def test_the_next_lease_of_a_job_counts_anew() -> None:
    watch = LeaseWatch()
    watch.hear([_leased("a", lease_s=30.0)], 0.0)
    watch.hear([_released("a"), _leased("a", lease_no=2, lease_s=60.0)], 10.0)
    assert watch.expired(69.0) == []
    assert [expiry.lease_no for expiry in watch.expired(70.0)] == [2]


def test_the_same_id_of_two_tenants_is_two_leases() -> None:
    watch = LeaseWatch()
    other = Leased(
        tenant="other", id="a", queue="q", kind="q", rev=2, attempt=1, lease_no=1, lease_s=30.0, call="c", index=0
    )
    watch.hear([_leased("a"), other], 0.0)
    assert {expiry.tenant for expiry in watch.expired(30.0)} == {"default", "other"}


@given(
    st.lists(
        st.tuples(st.sampled_from("lbr"), st.sampled_from("abcd"), st.sampled_from((10.0, 30.0)), st.integers(0, 9)),
        max_size=30,
    )
)
def test_it_knows_what_a_plain_list_of_leases_would_know(steps: list[tuple[str, str, float, int]]) -> None:
    watch = LeaseWatch()
    known: dict[str, tuple[float, float, int]] = {}
    now = 0.0
    for verb, job_id, lease_s, passed in steps:
        now += passed
        events: list[AnyEvent] = []
        if verb == "l" and job_id not in known:
            known[job_id] = (now + lease_s, lease_s, 0)
            events = [_leased(job_id, lease_s=lease_s)]
        elif verb == "b" and job_id in known:
            _, length_s, beats = known[job_id]
            known[job_id] = (now + length_s, length_s, beats + 1)
            events = [_extended(job_id, beats + 1)]
        elif verb == "r" and job_id in known:
            del known[job_id]
            events = [_released(job_id)]
        watch.hear(events, now)
        over = {(job_id, beats) for job_id, (ends, _, beats) in known.items() if ends <= now}
        assert {(expiry.job_id, expiry.beats) for expiry in watch.expired(now)} == over


def _cancelled(*, key: str | None = None, **settings: float) -> Tables:
    tables = Tables()
    tables.begin(after(0), 1)
    job_id = a_job(0).id.replace("00000000-0000", "01b8dac5-b400")
    run(tables, [PutSetting(kind=SettingKind.QUEUE, name="mail", patch=settings)])
    run(tables, [Enqueue(jobs=(NewJob("mail", id=job_id, idempotency_key=key),))])
    run(tables, [Cancel(job_id=job_id, requeues=0)])
    return tables


def test_a_finished_job_is_kept_as_long_as_its_queue_says() -> None:
    for tables, kept_s in ((_cancelled(), HOUR_S), (_cancelled(retain_cancelled_s=900.0), 900.0)):
        assert outlived(tables, after(kept_s - 0.001)) == []
        [purge] = outlived(tables, after(kept_s))
        assert (purge.queue, purge.state, purge.keyed, purge.finished_by) == ("mail", "cancelled", False, after(0))


def test_a_keyed_job_is_kept_for_a_day_at_least() -> None:
    tables = _cancelled(key="k", retain_cancelled_s=900.0)
    assert outlived(tables, after(24 * HOUR_S - 1)) == []
    assert [purge.keyed for purge in outlived(tables, after(24 * HOUR_S))] == [True]
    tables = _cancelled(key="k", retain_cancelled_s=48 * HOUR_S)
    assert outlived(tables, after(48 * HOUR_S - 1)) == []


def test_of_too_many_finished_jobs_the_first_go_early_but_not_before_repeats_are_over() -> None:
    tables = _cancelled()
    assert outlived(tables, after(REPEAT_S), most=1) == []
    assert outlived(tables, after(REPEAT_S - 1), most=0) == []
    [purge] = outlived(tables, after(REPEAT_S), most=0)
    assert (purge.queue, purge.keyed, purge.finished_by) == ("mail", False, after(0))
    assert outlived(_cancelled(key="k"), after(REPEAT_S), most=0) == []
