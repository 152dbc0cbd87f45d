"""A bucket in memory, for tests and simulations."""

from collections.abc import Sequence
from datetime import datetime

from penstock.clock import Clock
from penstock.errors import NotFound, Unavailable
from penstock.stores.log.bucket import Listed, Taken, check_key, check_prefix


class MemoryBucket:
    """Objects in this process, stamped by the given clock and listed in the order of their creation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[str, tuple[bytes, datetime]] = {}
        self._closed = False

    def again(self) -> "MemoryBucket":
        """Open the same objects once more, as another process would, or this one after a restart."""
        other = MemoryBucket(self._clock)
        other._objects = self._objects
        return other

    async def put(self, key: str, data: bytes | bytearray) -> None:
        """Create the object or raise Taken."""
        check_key(key)
        self._check_open()
        if key in self._objects:
            raise Taken(key)
        self._objects[key] = (bytes(data), self._clock.now())

    async def get(self, key: str) -> bytes:
        """Answer the object."""
        check_key(key)
        self._check_open()
        try:
            return self._objects[key][0]
        except KeyError:
            raise NotFound("there is no such object", key=key) from None

    async def list(self, prefix: str) -> Sequence[Listed]:
        """Show what is there."""
        check_prefix(prefix)
        self._check_open()
        found = self._objects.items()
        return [Listed(key, len(data), stamped_at) for key, (data, stamped_at) in found if key.startswith(prefix)]

    async def delete(self, key: str) -> None:
        """Forget the object."""
        check_key(key)
        self._check_open()
        self._objects.pop(key, None)

    async def close(self) -> None:
        """Answer nothing more."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the bucket is closed")
