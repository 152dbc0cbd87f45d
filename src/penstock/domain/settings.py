"""Stored state that is no job: what operators set, kept by the store beside the jobs."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from penstock.domain import backoff
from penstock.domain.backoff import Backoff, Policy
from penstock.domain.commands import SettingKind
from penstock.domain.limits import MAX_ATTEMPTS, REPEAT_S, between
from penstock.errors import Invalid

_HOUR_S: Final = 3600.0
_DAY_S: Final = 24 * _HOUR_S


class Results(StrEnum):
    """What becomes of the results of a queue's jobs."""

    KEEP = "keep"
    DISCARD = "discard"


class QueueSettings(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How one queue behaves; every queue has these defaults until somebody changes them."""

    paused: bool = False
    max_depth: int = 10_000_000
    max_attempts: int = 5
    backoff: Backoff = backoff.DEFAULT
    results: Results = Results.KEEP
    retain_succeeded_s: float = _HOUR_S
    retain_cancelled_s: float = _HOUR_S
    retain_dead_s: float = 14 * _DAY_S
    archive_payloads: bool = False

    def check(self) -> None:
        """Refuse numbers out of range."""
        between("max_depth", self.max_depth, 1, 1_000_000_000)
        between("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS)
        for name in ("retain_succeeded_s", "retain_cancelled_s", "retain_dead_s"):
            between(name, getattr(self, name), REPEAT_S, 3650 * _DAY_S)
        check_backoff(self.backoff)


DEFAULTS: Final = QueueSettings()


class Setting(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One setting: its value as a JSON object, and how often it was changed."""

    tenant: str
    kind: SettingKind
    name: str
    value: dict[str, Any]
    rev: int
    updated_at: datetime


def merged(value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The value after a JSON merge patch (RFC 7396)."""
    after = {key: kept for key, kept in value.items() if key not in patch}
    for key, wanted in patch.items():
        if isinstance(wanted, dict):
            held = value.get(key)
            after[key] = merged(held if isinstance(held, dict) else {}, wanted)
        elif wanted is not None:
            after[key] = wanted
    return after


def queue_settings(value: dict[str, Any]) -> QueueSettings:
    """Read and check a queue's settings."""
    try:
        settings = msgspec.convert(value, QueueSettings)
    except msgspec.ValidationError as error:
        known = ", ".join(QueueSettings.__struct_fields__)
        raise Invalid(f"these queue settings cannot be used ({error}); known fields: {known}") from error
    settings.check()
    return settings


def check_backoff(policy: object) -> None:
    """Refuse a backoff that would wait for ever or go back in time."""
    if not isinstance(policy, Backoff) or not isinstance(policy.policy, Policy):
        raise Invalid(f"a backoff must be a Backoff with one of the policies {', '.join(Policy)}")
    between("backoff.base_s", policy.base_s, 0, _DAY_S)
    between("backoff.cap_s", policy.cap_s, 0, 7 * _DAY_S)


def retained_s(settings: QueueSettings, state: str) -> float:
    """How long a finished job of this state stays in the store."""
    return float(getattr(settings, f"retain_{state}_s"))
