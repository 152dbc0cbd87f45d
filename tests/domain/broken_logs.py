"""Logs that are damaged in one way each, for the checker to say what is wrong with them, where, and with which job."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from penstock.domain.commands import (
    DeleteSetting,
    Nack,
    Purge,
    PutSetting,
    SettingKind,
    Update,
)
from penstock.domain.events import (
    Enqueued,
    Extended,
    Failed,
    Purged,
    Record,
    Requeued,
    SettingDeleted,
    Succeeded,
    Updated,
)
from penstock.domain.job import State
from penstock.domain.verify import Live
from tests.domain.chronicle import QUEUE, Chronicle


class Wrong(NamedTuple):
    """What the checker must say, and of which log and store."""

    log: Chronicle
    seq: int
    job_id: str | None
    live: Live | None = None
    # What else is wrong with it, inevitably.
    also: tuple[str, ...] = ()


Damage = Callable[[], Wrong]
BROKEN: list[tuple[str, Damage]] = []


def breaks(rule: str) -> Callable[[Damage], Damage]:
    """Register a log that breaks this rule, and no other."""

    def register(damage: Damage) -> Damage:
        BROKEN.append((rule, damage))
        return damage

    return register


@breaks("seq")
def a_record_is_missing() -> Wrong:
    log = Chronicle()
    log.commit(PutSetting(kind=SettingKind.QUEUE, name="a", patch={"max_attempts": 2}))
    log.commit(PutSetting(kind=SettingKind.QUEUE, name="b", patch={"max_attempts": 2}))
    del log.records[1]
    return Wrong(log, 3, None)


@breaks("seq")
def a_record_is_there_twice() -> Wrong:
    log = Chronicle()
    log.enqueue()
    log.records.append(replace(log.records[-1], events=()))
    return Wrong(log, 2, None)


@breaks("seq")
def the_store_ends_elsewhere() -> Wrong:
    log = Chronicle()
    log.enqueue()
    return Wrong(log, 2, None, replace(log.live(), seq=3))


@breaks("time")
def a_record_has_a_time_without_an_offset() -> Wrong:
    log = Chronicle()
    log.records.append(Record(2, datetime(2030, 1, 1), ()))  # noqa: DTZ001 what is wrong with it
    return Wrong(log, 2, None)


@breaks("time")
def a_job_has_a_time_without_an_offset() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue(deadline_s=60.0)
    seq = log.change(2, run_at=datetime(2031, 1, 1))  # noqa: DTZ001 what is wrong with it
    return Wrong(log, seq, job_id)


@breaks("time")
def a_new_job_was_ready_before_it_was_made() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    return Wrong(log, log.change(2, run_at=log.clock.now() - timedelta(seconds=1)), job_id)


@breaks("time")
def a_retry_is_before_the_failure() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    failed = Failed(**log.attempt(job_id), run_at=log.clock.now() - timedelta(seconds=1))
    return Wrong(log, log.add(failed), job_id)


@breaks("rev")
def an_event_is_lost() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Nack(job_id=job_id, token=token, delay_s=0.0))
    log.lease()
    log.drop(4)
    return Wrong(log, 5, job_id)


@breaks("rev")
def a_rev_is_used_twice() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    updated = Updated(**{**log.next(job_id), "rev": 1}, priority=1)
    return Wrong(log, log.add(updated), job_id)


@breaks("rev")
def a_heartbeat_without_progress_is_counted_as_a_change() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    return Wrong(log, log.add(Extended(**log.attempt(job_id), beats=1)), job_id)


@breaks("before")
def an_event_names_another_record_as_the_one_before() -> Wrong:
    log = Chronicle()
    log.enqueue()
    job_id, _ = log.leased()
    return Wrong(log, log.change(log.seq, before=1), job_id)


@breaks("first")
def a_job_is_enqueued_a_second_time() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    return Wrong(log, log.add(*log.records[-1].events), job_id)


@breaks("first")
def a_job_begins_at_another_rev() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    return Wrong(log, log.change(2, rev=2), job_id)


@breaks("unknown")
def a_job_was_never_enqueued() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    log.drop(2)
    return Wrong(log, 3, job_id)


@breaks("unknown")
def an_event_comes_after_the_purge() -> Wrong:
    log = Chronicle()
    job_id = log.succeeded()
    requeued = Requeued(**log.next(job_id), requeues=1)
    log.clock.advance(901)
    log.commit(Purge(job_ids=(job_id,)))
    return Wrong(log, log.add(requeued), job_id)


@breaks("unknown")
def the_event_is_another_tenants() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    return Wrong(log, log.change(3, tenant="other"), job_id)


@breaks("names")
def an_event_names_another_queue() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    return Wrong(log, log.add(Succeeded(**{**log.attempt(job_id), "queue": "other"})), job_id)


@breaks("id")
def an_id_is_older_than_its_enqueue_may_be() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    enqueued = log.records.pop().events[0]
    assert isinstance(enqueued, Enqueued)
    log.clock.advance(601)
    return Wrong(log, log.add(enqueued), job_id)


@breaks("key")
def a_key_names_two_jobs() -> Wrong:
    log = Chronicle()
    log.succeeded(idempotency_key="k")
    job_id = log.enqueue()
    return Wrong(log, log.change(log.seq, idempotency_key="k"), job_id)


@breaks("follow_up")
def a_follow_up_is_not_in_the_record_of_its_parents_ack() -> Wrong:
    log = Chronicle()
    parent = log.succeeded()
    job_id = log.enqueue()
    return Wrong(log, log.change(log.seq, parent=parent), job_id)


@breaks("depth")
def a_job_is_accepted_into_a_full_queue() -> Wrong:
    log = Chronicle()
    log.commit(PutSetting(kind=SettingKind.QUEUE, name=QUEUE, patch={"max_depth": 2}))
    log.enqueue()
    job_id = log.enqueue()
    value = {"max_depth": 1}
    return Wrong(log, log.change(2, value=value) + 2, job_id)


@breaks("purge")
def a_job_is_purged_that_is_not_finished() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    return Wrong(log, log.add(Purged(job_ids=(job_id,), count=1)), job_id)


@breaks("purge")
def a_purge_counts_wrongly() -> Wrong:
    log = Chronicle()
    log.succeeded()
    log.clock.advance(3601)
    log.commit(*log.outlived())
    return Wrong(log, log.change(log.seq, count=2), None)


@breaks("kept")
def a_job_is_purged_while_a_repeat_could_ask_for_it() -> Wrong:
    log = Chronicle()
    job_id = log.succeeded()
    log.clock.advance(899)
    return Wrong(log, log.add(Purged(job_ids=(job_id,), count=1)), job_id)


@breaks("kept")
def a_key_is_forgotten_within_a_day() -> Wrong:
    log = Chronicle()
    job_id = log.succeeded(idempotency_key="k")
    log.clock.advance(3601)
    purged = Purged(queue=QUEUE, state=State.SUCCEEDED, keyed=True, finished_by=log.records[0].at, count=1)
    return Wrong(log, log.add(purged), job_id)


@breaks("setting")
def a_change_of_a_setting_is_lost() -> Wrong:
    log = Chronicle()
    for paused in (True, False):
        log.commit(PutSetting(kind=SettingKind.QUEUE, name=QUEUE, patch={"paused": paused}))
    log.drop(2)
    return Wrong(log, 3, None)


@breaks("setting")
def a_setting_is_deleted_twice() -> Wrong:
    log = Chronicle()
    log.commit(PutSetting(kind=SettingKind.QUEUE, name=QUEUE, patch={"paused": True}))
    log.commit(DeleteSetting(kind=SettingKind.QUEUE, name=QUEUE))
    return Wrong(log, log.add(SettingDeleted(kind=SettingKind.QUEUE, name=QUEUE, rev=3)), None)


@breaks("setting")
def a_queue_is_set_as_none_can_be() -> Wrong:
    log = Chronicle()
    log.commit(PutSetting(kind=SettingKind.QUEUE, name=QUEUE, patch={"paused": True}))
    return Wrong(log, log.change(2, value={"max_depth": -1}), None)


@breaks("setting")
def the_store_has_another_setting() -> Wrong:
    log, store = Chronicle(), Chronicle()
    for one, paused in ((log, True), (store, False)):
        one.commit(PutSetting(kind=SettingKind.QUEUE, name=QUEUE, patch={"paused": paused}))
    return Wrong(log, 2, None, store.live())


@breaks("lost")
def the_store_has_lost_a_job() -> Wrong:
    log, store = Chronicle(), Chronicle()
    log.enqueue()
    job_id = log.enqueue()
    store.enqueue()
    return Wrong(log, 3, job_id, replace(store.live(), seq=3), also=("counters",))


@breaks("extra")
def the_store_has_a_job_of_a_tenant_that_the_log_does_not_know() -> Wrong:
    log, store = Chronicle(), Chronicle()
    job_id = store.enqueue()
    log.add()
    return Wrong(log, 2, job_id, store.live(), also=("counters",))


@breaks("state")
def the_store_has_missed_a_change() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    live = log.live()
    log.commit(Update(job_id=job_id, requeues=0, priority=3))
    return Wrong(log, 3, job_id, replace(live, seq=3))


@breaks("state")
def the_store_has_another_payload() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    job = replace(log.job(job_id), payload_bytes=b"2")
    return Wrong(log, 2, job_id, log.live(jobs=(job,)))


@breaks("counters")
def a_counter_is_wrong() -> Wrong:
    log = Chronicle()
    log.enqueue()
    log.tables.tenants["default"].queues[QUEUE].counts[State.DEAD] = 1
    return Wrong(log, 2, None, log.live())
