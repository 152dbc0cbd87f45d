"""The limits, each in one place with the error that says what to do."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from string import ascii_letters, digits
from typing import Final

from penstock.errors import Invalid

MAX_HEADERS_BYTES: Final = 16 * 1024
MAX_PAYLOAD_BYTES: Final = 32 * 1024
MAX_RESULT_BYTES: Final = 1024 * 1024
MAX_ERROR_CHARS: Final = 8 * 1024
MAX_OUTPUT_CHARS: Final = 8 * 1024
MAX_SETTING_BYTES: Final = 16 * 1024
MAX_ENQUEUE: Final = 1_000
MAX_BEATS: Final = 10_000
MAX_QUEUES: Final = 100
MAX_KINDS: Final = 1_000
MAX_LEASES: Final = 1_000
MAX_PAGE: Final = 1_000
MAX_PURGE: Final = 1_000
MAX_JSON_DEPTH: Final = 64
MAX_KEY_CHARS: Final = 512
MAX_ATTEMPTS: Final = 100
MAX_PRIORITY: Final = 2**15 - 1
MAX_DELAY_S: Final = 366 * 86_400.0
MAX_LEASE_S: Final = 86_400.0
MAX_WAIT_S: Final = 60.0
FREE_RELEASES: Final = 100
PURGE_SLICE: Final = 10_000

# A repeated call is safe for this long: a finished job stays at least so long (rule 5).
REPEAT_S: Final = 15 * 60.0
# Of more finished jobs than this, those without a key that finished first go before their retention is over.
MOST_KEPT: Final = 1_000_000
# An idempotency key is kept for this long from its enqueue, and as long as its job.
KEY_KEPT_S: Final = 24 * 3600.0
# An unknown id must be this young, so that a late repeat never makes a second job.
ID_BEHIND_S: Final = 10 * 60.0
ID_AHEAD_S: Final = 60.0

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
# A UUID with every digit a zero, and what makes it so: two steps over all of it are quicker than a pattern.
_UUID: Final = b"00000000-0000-0000-0000-000000000000"
_ZEROS: Final = bytes.maketrans(b"123456789abcdef", b"000000000000000")
_REQUEST_ID_BYTES: Final = f"{ascii_letters}{digits}._:-".encode()
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


# Names that were found good: every command brings the same few, and a look in here is all that those cost. It is state of
# the module, which we avoid; without it a job in memory costs a tenth more. It only saves a look at the pattern, and is bounded.
GOOD_NAMES: Final[set[str]] = set()
_GOOD_NAMES_KEPT: Final = 4096


def name(what: str, value: str) -> None:
    """Refuse a name that is not 1 to 128 of the allowed characters."""
    if value in GOOD_NAMES:
        return
    if _NAME.fullmatch(value) is None:
        rule = "must be 1 to 128 of A-Z a-z 0-9 . _ : - and begin with a letter or digit"
        raise Invalid(f"{what} {rule}", **{what: repr(value)[:80]})
    if len(GOOD_NAMES) >= _GOOD_NAMES_KEPT:
        GOOD_NAMES.clear()
    GOOD_NAMES.add(value)


def text(what: str, value: object, *, most: int, least: int = 0) -> None:
    """Refuse what is no text, too long, or cannot be stored as UTF-8."""
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise Invalid(f"{what} must be text of {least} to {most} characters")
    if not value.isprintable():
        _storable(what, value)


def _storable(what: str, value: str) -> None:
    if "\0" in value:
        raise Invalid(f"{what} must not contain a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} is not valid Unicode ({error.reason})") from error


def between(what: str, value: object, least: float, most: float) -> None:
    """Refuse what is no number, or one out of range."""
    if not (type(value) is float or type(value) is int) or not least <= value <= most:
        raise Invalid(f"{what} must be a number from {least:g} to {most:g}", **{what: value})


def whole(what: str, value: object, least: int, most: int) -> None:
    """Refuse what is no whole number, or one out of range."""
    if type(value) is not int or not least <= value <= most:
        raise Invalid(f"{what} must be a whole number from {least} to {most}", **{what: value})


def time(what: str, value: object) -> None:
    """Refuse a time without an offset from UTC."""
    if not isinstance(value, datetime):
        raise Invalid(f"{what} must be a datetime with a time zone", **{what: repr(value)[:80]})
    if value.utcoffset() is None:
        raise Invalid(f"{what} has no time zone; give it one, as in datetime.now(UTC)", **{what: value.isoformat()})


def soon(what: str, value: datetime, now: datetime) -> datetime:
    """The time in UTC; refuse one that is too far off."""
    if value - now > timedelta(seconds=MAX_DELAY_S):
        raise Invalid(f"{what} is more than {MAX_DELAY_S / 86_400:g} days away", **{what: value.isoformat()})
    return value.astimezone(UTC)


def job_id(value: str | None) -> None:
    """Refuse an id that is no UUIDv7 in its usual form."""
    if not (
        value is not None
        and value.isascii()
        and value.encode().translate(_ZEROS) == _UUID
        and value[14] == "7"
        and value[19] in "89ab"
    ):
        raise Invalid("a job id must be a UUIDv7 in lower case; leave it out to have one made", id=repr(value)[:80])


def request_id(value: str) -> None:
    """Refuse a lease request id that is too short to be a secret."""
    if not (16 <= len(value) <= 128 and value.isascii()) or value.encode().translate(None, _REQUEST_ID_BYTES):
        raise Invalid("a lease request id must be 16 to 128 of A-Z a-z 0-9 . _ : -, chosen at random")


def fresh_ids(now_s: float) -> tuple[str, str]:
    """Two texts, as ids are in the order of their times: an id between them is fresh, of any other ``fresh_id`` tells."""
    return _beginning(now_s - ID_BEHIND_S + 1), _beginning(now_s + ID_AHEAD_S - 1)


def _beginning(made_s: float) -> str:
    written = f"{int(max(made_s, 0.0) * 1000):012x}"
    return f"{written[:8]}-{written[8:]}"


def fresh_id(value: str, now_s: float) -> None:
    """Refuse an unknown id whose time is far off: a late repeat must not make a second job."""
    made_s = int(value[:8] + value[9:13], 16) / 1000.0
    if not -ID_AHEAD_S <= now_s - made_s <= ID_BEHIND_S:
        raise Invalid(
            "bad_id: the id's time is too far from the store's; make a new id, or set this machine's clock",
            id=value,
            id_time=datetime.fromtimestamp(made_s, UTC).isoformat(),
            store_time=datetime.fromtimestamp(now_s, UTC).isoformat(),
        )


def headers(value: object) -> None:
    """Refuse headers that are too large or not text."""
    if not isinstance(value, Mapping):
        raise Invalid("headers must be a mapping of names to texts")
    size = 0
    for key, held in value.items():
        text("header name", key, least=1, most=256)
        text("header value", held, most=MAX_HEADERS_BYTES)
        size += len(key.encode()) + len(held.encode())
    if size > MAX_HEADERS_BYTES:
        raise Invalid("headers are too large; put the data into the payload", bytes=size, most=MAX_HEADERS_BYTES)


def json(what: str, value: bytes) -> None:
    """Refuse JSON that is nested too deeply. Few brackets need no closer look."""
    if value.count(b"[") + value.count(b"{") > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:
        raise Invalid(f"the JSON of the {what} is nested too deeply", most=MAX_JSON_DEPTH)


def _depth(value: bytes) -> int:
    deepest = depth = 0
    for found in _NESTING.finditer(value):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        deepest = max(deepest, depth)
    return deepest


def progress(value: object) -> None:
    """Refuse a progress that is no share of the whole."""
    if not (type(value) is float or type(value) is int) or not 0 <= value <= 1:
        raise Invalid("progress must be a number from 0 to 1", progress=value)


def cut(what: str, value: object, most: int) -> str:
    """The text, or its beginning with a mark of how much is missing. What UTF-8 cannot hold is replaced."""
    if not isinstance(value, str):
        raise Invalid(f"{what} must be text", type=type(value).__name__)
    if not value.isascii():
        value = value.encode(errors="replace").decode()
    value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value if len(value) <= most else f"{value[:most]}... [{len(value) - most} characters cut]"
