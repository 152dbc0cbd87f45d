"""What a bucket must do: the port below the object log. ``penstock.testing.bucket_contract`` tests it.

A bucket maps keys to bytes. An object appears whole, once, and never changes; it can only be deleted.
A key is one or more segments joined by ``/``; a segment is letters, digits and ``. _ = -`` and begins with a
letter or digit. No key may be the folder of another: with ``a/b`` there is no ``a/b/c``.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct

from penstock.errors import Invalid

LONGEST_KEY: Final = 255
_SEGMENT: Final = "[A-Za-z0-9][A-Za-z0-9._=-]*"
_KEY: Final = re.compile(f"{_SEGMENT}(?:/{_SEGMENT})*")


class Taken(Exception):
    """Another put, perhaps an earlier one of ours, has created the object. It stays inside the store: nobody else sees it."""


class Listed(Struct, frozen=True, gc=False):
    """One object as a listing shows it; ``stamped_at`` is the bucket's own time, not this machine's."""

    key: str
    size: int
    stamped_at: datetime


class Bucket(Protocol):
    """Where objects live. Any number of processes may use one place at once.

    Every method may raise, besides what it says itself: Invalid for a bad key, before anything is asked; Denied when
    this process may not do that, and nothing changed; Unavailable when the outcome is unknown; Corrupt when
    something lies there that no bucket has put. A cancelled call may still take effect.
    """

    async def put(self, key: str, data: bytes | bytearray) -> None:
        """Create the object, or raise Taken when the key has one, which stays as it is.

        When this returns, the object outlives a crash. A crash before leaves nothing or the whole object, never a
        part. Unavailable: it may or may not have been created; put it again, and if that is Taken, get it to see whose
        it is: only then does it outlive a crash for certain.
        Busy: no space; this call has changed nothing, which says nothing about an earlier one that was Unavailable.
        """
        ...

    async def get(self, key: str) -> bytes:
        """Answer the whole object; what was answered outlives a crash. Raises NotFound when there is none."""
        ...

    async def list(self, prefix: str) -> Sequence[Listed]:
        """Show the objects below a folder, in any order: all created before the call, none deleted before it.

        The prefix ends with ``/``; an empty one means the whole bucket. What is shown need not outlive a crash until
        somebody has got it.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove the object, if there is one. When this returns it stays away, whatever crashes, until it is put again."""
        ...

    async def close(self) -> None:
        """Let go of what the bucket holds, once all calls made before are answered.

        A later call is Unavailable; closing again is harmless.
        """
        ...


def check_key(key: str) -> None:
    """Refuse a name that is not a key."""
    if len(key) > LONGEST_KEY or not _KEY.fullmatch(key):
        raise Invalid("this is not a key", key=ascii(key[: LONGEST_KEY + 1]))


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that is neither empty nor a folder."""
    if prefix:
        check_key(prefix.removesuffix("/"))
        if not prefix.endswith("/"):
            raise Invalid("a prefix ends with a slash", prefix=prefix)
