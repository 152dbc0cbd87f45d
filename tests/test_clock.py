"""The machine's own clock: ids that rise, secrets nobody else has, also after a fork."""

import os
from itertools import pairwise

from penstock.clock import _SECRETS_AT_ONCE, SystemClock, _stamp
from penstock.domain import limits


def test_ids_are_fresh_uuids_and_rise_within_a_millisecond_and_beyond() -> None:
    clock = SystemClock()
    ids = [clock.job_id() for _ in range(10_000)]
    assert all(earlier < later for earlier, later in pairwise(ids))
    for job_id in ids:
        limits.job_id(job_id)
        limits.fresh_id(job_id, clock.now().timestamp())


def test_two_clocks_of_one_millisecond_make_other_ids() -> None:
    clocks = [SystemClock() for _ in range(2)]
    ids = [clock.job_id() for _ in range(1_000) for clock in clocks]
    assert len(set(ids)) == len(ids)


def test_a_secret_is_given_once_and_few_are_kept_in_stock() -> None:
    clock = SystemClock()
    secrets = [clock.secret() for _ in range(3 * _SECRETS_AT_ONCE)]
    assert len(set(secrets)) == len(secrets)
    assert {len(bytes.fromhex(secret)) for secret in secrets} == {16}
    assert len(clock._secrets) < _SECRETS_AT_ONCE


def test_a_forked_child_gives_out_no_id_and_no_secret_of_its_parent() -> None:
    clock = SystemClock()
    clock.secret()
    # As after a wall clock that went back: the parent is in a millisecond it will be in for long.
    clock._stamp = _stamp(2**47)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, f"{clock.secret()} {clock.job_id()}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    secret, job_id = os.read(read, 1_000).decode().split()
    os.close(read)
    os.close(write)
    assert secret not in [clock.secret() for _ in range(_SECRETS_AT_ONCE)]
    assert job_id not in [clock.job_id() for _ in range(_SECRETS_AT_ONCE)]
