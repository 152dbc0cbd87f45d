"""Fingerprints: equal for what is the same, different for what is not, and no way back to a token."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain import fingerprint

names = st.text("ab.:-", min_size=1, max_size=4)


@given(st.tuples(names, names, st.binary(max_size=4)), st.tuples(names, names, st.binary(max_size=4)))
def test_two_jobs_have_one_fingerprint_only_if_queue_kind_and_payload_are_the_same(
    one: tuple[str, str, bytes], two: tuple[str, str, bytes]
) -> None:
    assert (fingerprint.of_job(*one) == fingerprint.of_job(*two)) == (one == two)


def test_names_and_payload_do_not_run_into_each_other() -> None:
    assert fingerprint.of_job("a", "bc", b"") != fingerprint.of_job("ab", "c", b"")
    assert fingerprint.of_job("a", "b", b"c") != fingerprint.of_job("a", "bc", b"")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("timed out after 30 s", "timed out after 5.25 s"),
        ("object at 0x7f00dead", "object at 0x7F00BEEF"),
        ("no job 01b8dac5-b400-7000-8000-000000000000", "no job 01b8dac5-b400-7000-8000-00000000ffff"),
        ("commit deadbeefdeadbeef", "commit 0123456789abcdef01"),
        ("no key 'colour'", "no key 'shape'"),
        ('no key "colour"', 'no key "shape"'),
        ("cannot read /var/tmp/a.txt", "cannot read /home/b/c.txt"),
        (
            'Traceback:\n  File "a.py", line 7\n    x()\nValueError: no',
            'Traceback:\n  File "b.py", line 9\n    x()\nValueError: no',
        ),
        ("no\n", "  no"),
    ],
)
def test_errors_that_differ_in_detail_are_the_same(one: str, two: str) -> None:
    assert fingerprint.of_error(one) == fingerprint.of_error(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("disk full", "disk slow"),
        ("KeyError: x", "ValueError: x"),
        ("a\nb\nc\nValueError: no", "a\nb\nc\nTypeError: no"),
        ("", "x"),
    ],
)
def test_errors_of_another_kind_are_not(one: str, two: str) -> None:
    assert fingerprint.of_error(one) != fingerprint.of_error(two)


@given(st.text(st.characters(), max_size=200))
def test_any_error_has_a_short_fingerprint(error: str) -> None:
    assert len(fingerprint.of_error(error)) == 16


def test_of_a_lease_call_only_the_hash_is_kept() -> None:
    assert fingerprint.of_call("a-request-id-of-16") == hashlib.sha256(b"a-request-id-of-16").hexdigest()


@given(st.from_regex(r"[A-Za-z0-9._:-]{16,128}", fullmatch=True), st.integers(0, 999))
def test_a_token_stands_for_its_call_and_its_place(request_id: str, index: int) -> None:
    token = fingerprint.token(request_id, index)
    assert fingerprint.token_parts(token) == (fingerprint.of_call(request_id), index)


@given(st.text(st.characters(), max_size=20))
def test_any_text_is_a_token_or_is_not_and_nothing_breaks(given_: str) -> None:
    call, index = fingerprint.token_parts(given_)
    assert (call == "") == (index == -1)
    if call:
        assert fingerprint.token(given_.rpartition(".")[0], index) == given_
