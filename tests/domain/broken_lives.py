"""Logs in which the life of one job is not as it should be: its leases, attempts and ends."""

from msgspec.structs import force_setattr

from penstock.domain import fingerprint
from penstock.domain.commands import (
    Age,
    Beat,
    Expire,
    Heartbeat,
    Nack,
    PutSetting,
    Release,
    SettingKind,
)
from penstock.domain.events import (
    Aged,
    Cancelled,
    Died,
    Extended,
    Failed,
    Released,
    Requeued,
    Succeeded,
    Updated,
)
from penstock.domain.job import Reason, Verb
from penstock.domain.limits import FREE_RELEASES
from tests.domain.broken_logs import Wrong, breaks
from tests.domain.chronicle import QUEUE, Chronicle


@breaks("lease")
def a_leased_job_is_leased() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("lease")
def a_leased_job_dies_in_the_queue() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased(deadline_s=10.0)
    log.clock.advance(10)
    return Wrong(log, log.add(Died(**log.attempt(job_id), reason=Reason.DEADLINE, verb=None)), job_id)


@breaks("lease_no")
def a_lease_number_repeats() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Release(job_id=job_id, token=token))
    log.lease()
    return Wrong(log, log.change(5, lease_no=1), job_id)


@breaks("attempt")
def an_expiry_is_not_counted() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    log.commit(Expire(job_id=job_id, lease_no=1, beats=0))
    log.clock.advance(60)
    log.lease()
    return Wrong(log, log.change(5, attempt=1), job_id)


@breaks("attempt")
def a_free_release_is_charged() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Release(job_id=job_id, token=token))
    log.lease()
    return Wrong(log, log.change(5, attempt=2), job_id)


@breaks("max_attempts")
def a_job_is_leased_once_too_often() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased(max_attempts=2)
    log.commit(Nack(job_id=job_id, token=token, delay_s=0.0))
    log.lease()
    log.change(2, max_attempts=1)
    return Wrong(log, 5, job_id, also=("retry",))


@breaks("max_attempts")
def max_attempts_is_set_to_what_was_made_already() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Nack(job_id=job_id, token=token))
    run_at = log.job(job_id).run_at
    return Wrong(log, log.add(Updated(**log.next(job_id), run_at=run_at, max_attempts=1)), job_id)


@breaks("order")
def a_job_is_leased_before_one_that_was_ahead_of_it() -> Wrong:
    log = Chronicle()
    log.enqueue()
    job_id = log.enqueue()
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("order")
def a_job_is_leased_before_one_of_a_higher_priority() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue(priority=1)
    log.enqueue()
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("order")
def a_job_is_leased_before_one_whose_time_came_earlier() -> Wrong:
    log = Chronicle()
    log.enqueue(delay_s=5.0)
    log.clock.advance(6)
    job_id = log.enqueue()
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("order")
def a_call_for_several_kinds_takes_them_out_of_order() -> Wrong:
    log = Chronicle()
    ahead, job_id = log.enqueue(kind="a"), log.enqueue(kind="b")
    call = fingerprint.of_call(log.clock.secret())
    first, second = log.a_lease(job_id, call=call), log.a_lease(ahead, call=call, index=1)
    return Wrong(log, log.add(first, second), job_id)


@breaks("early")
def a_job_is_leased_before_its_time() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue(delay_s=3600.0)
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("deadline")
def a_job_is_leased_after_its_deadline() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue(deadline_s=10.0)
    log.clock.advance(10)
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("deadline")
def a_job_is_queued_again_after_its_deadline() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased(deadline_s=10.0)
    log.clock.advance(10)
    return Wrong(log, log.add(Released(**log.attempt(job_id))), job_id)


@breaks("deadline")
def a_job_dies_of_a_deadline_that_has_not_come() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue(deadline_s=10.0)
    return Wrong(log, log.add(Died(**log.attempt(job_id), reason=Reason.DEADLINE, verb=None)), job_id)


@breaks("paused")
def a_job_of_a_paused_queue_is_leased() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    log.commit(PutSetting(kind=SettingKind.QUEUE, name=QUEUE, patch={"paused": True}))
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("call")
def a_repeated_lease_call_takes_another_job() -> Wrong:
    log = Chronicle()
    log.leased()
    call = log.records[-1].events[0].call  # type: ignore[union-attr] # it was leased there
    job_id = log.enqueue()
    return Wrong(log, log.add(log.a_lease(job_id, call=call)), job_id)


@breaks("call")
def two_jobs_of_a_call_have_one_token() -> Wrong:
    log = Chronicle()
    first, job_id = log.enqueue(), log.enqueue()
    call = fingerprint.of_call(log.clock.secret())
    return Wrong(log, log.add(log.a_lease(first, call=call), log.a_lease(job_id, call=call)), job_id)


@breaks("ending")
def a_job_that_nobody_holds_succeeds() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Release(job_id=job_id, token=token))
    return Wrong(log, log.add(Succeeded(**log.attempt(job_id))), job_id)


@breaks("ending")
def a_queued_job_is_cancelled_as_if_it_were_held() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    return Wrong(log, log.add(Cancelled(**log.attempt(job_id), held=True)), job_id)


@breaks("stale")
def a_stale_lease_completes_the_job() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Nack(job_id=job_id, token=token, delay_s=0.0))
    log.lease()
    return Wrong(log, log.add(Succeeded(**{**log.attempt(job_id), "attempt": 1, "lease_no": 1})), job_id)


@breaks("stale")
def a_stale_lease_is_extended() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Nack(job_id=job_id, token=token, delay_s=0.0))
    log.lease()
    late = {**log.attempt(job_id), "rev": log.job(job_id).rev, "attempt": 1, "lease_no": 1}
    return Wrong(log, log.add(Extended(**late, beats=1)), job_id)


@breaks("completion")
def a_second_completion_is_accepted() -> Wrong:
    log = Chronicle()
    job_id = log.succeeded()
    return Wrong(log, log.add(Succeeded(**log.attempt(job_id))), job_id)


@breaks("finished")
def a_dead_job_succeeds() -> Wrong:
    log = Chronicle()
    job_id = log.dead()
    return Wrong(log, log.add(Succeeded(**log.attempt(job_id))), job_id)


@breaks("finished")
def a_finished_job_is_leased() -> Wrong:
    log = Chronicle()
    job_id = log.succeeded()
    return Wrong(log, log.add(log.a_lease(job_id)), job_id)


@breaks("finished")
def a_finished_job_is_cancelled() -> Wrong:
    log = Chronicle()
    job_id = log.succeeded()
    return Wrong(log, log.add(Cancelled(**log.attempt(job_id))), job_id)


@breaks("retry")
def a_job_is_queued_again_after_its_last_attempt() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased(max_attempts=1)
    return Wrong(log, log.add(Failed(**log.attempt(job_id), run_at=log.clock.now())), job_id)


@breaks("expiry")
def a_lease_expires_that_nobody_holds() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Release(job_id=job_id, token=token))
    expired = {**log.attempt(job_id), "verb": Verb.EXPIRE, "reason": Reason.LEASE_EXPIRED}
    return Wrong(log, log.add(Failed(**expired, run_at=log.clock.now())), job_id)


@breaks("expiry")
def a_job_dies_of_an_expiry_with_attempts_left() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    died = Died(**log.attempt(job_id), verb=Verb.EXPIRE, reason=Reason.LEASE_EXPIRED)
    return Wrong(log, log.add(died), job_id)


@breaks("release")
def more_releases_are_free_than_may_be() -> Wrong:
    log = Chronicle()
    log.enqueue()
    for _ in range(FREE_RELEASES + 1):
        job_id, token = log.lease()
        log.commit(Release(job_id=job_id, token=token))
    return Wrong(log, log.change(log.seq, charged=False), log.world.leases[-1][1])


@breaks("release")
def a_job_dies_of_a_free_release() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    died = Died(**log.attempt(job_id), verb=Verb.RELEASE, reason=Reason.ATTEMPTS_EXHAUSTED)
    return Wrong(log, log.add(died), job_id)


@breaks("reason")
def a_job_is_dead_without_a_reason() -> Wrong:
    log = Chronicle()
    job_id = log.dead()
    force_setattr(log.records[-1].events[0], "reason", None)
    return Wrong(log, log.seq, job_id)


@breaks("requeue")
def a_queued_job_is_requeued() -> Wrong:
    log = Chronicle()
    job_id = log.enqueue()
    return Wrong(log, log.add(Requeued(**log.next(job_id), requeues=1)), job_id)


@breaks("requeue")
def a_life_is_left_out() -> Wrong:
    log = Chronicle()
    job_id = log.dead()
    return Wrong(log, log.add(Requeued(**log.next(job_id), requeues=2)), job_id)


@breaks("update")
def a_leased_job_is_updated() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    return Wrong(log, log.add(Updated(**log.next(job_id), priority=1)), job_id)


@breaks("beats")
def a_heartbeat_is_left_out() -> Wrong:
    log = Chronicle()
    job_id, token = log.leased()
    log.commit(Heartbeat(beats=(Beat(job_id, token),)))
    return Wrong(log, log.change(4, beats=2), job_id)


@breaks("aged")
def a_lease_grows_longer_while_it_is_watched() -> Wrong:
    log = Chronicle()
    job_id, _ = log.leased()
    log.commit(Age(job_id=job_id, lease_no=1, beats=0, left_s=9.0))
    return Wrong(log, log.add(Aged(id=job_id, lease_no=1, left_s=10.0)), job_id)
