"""How long a failed job waits before its next attempt."""

import hashlib
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Policy(StrEnum):
    """How the wait grows with the attempts made."""

    JITTER = "jitter"
    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


class Backoff(Struct, frozen=True, gc=False, omit_defaults=True):
    """A policy with its numbers: the wait after the first failure, and the longest one."""

    policy: Policy = Policy.JITTER
    base_s: float = 5.0
    cap_s: float = 3600.0


DEFAULT: Final = Backoff()


def wait_s(backoff: Backoff, *, job_id: str, attempt: int) -> float:
    """The wait after the given failed attempt, counted from 1.

    Chance comes from a hash of job and attempt, so deciding the same failure again gives the same time.
    """
    grown = {
        Policy.FIXED: backoff.base_s,
        Policy.LINEAR: backoff.base_s * attempt,
        Policy.EXPONENTIAL: backoff.base_s * 2.0 ** (attempt - 1),
        Policy.JITTER: backoff.base_s * 2.0 ** (attempt - 1),
    }[backoff.policy]
    capped = min(backoff.cap_s, grown)
    return capped * _fraction(f"{job_id}/{attempt}") if backoff.policy is Policy.JITTER else capped


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7]) / 2.0**56
