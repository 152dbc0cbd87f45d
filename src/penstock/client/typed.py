"""A queue whose payloads are all of one type, checked when they go in and when they come out."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

import msgspec

from penstock.domain.job import JSON, Job, JobOptions, Lease, NewJob, Reason
from penstock.errors import Invalid, PenstockError

if TYPE_CHECKING:
    from penstock.client.client import Client

T = TypeVar("T")

_MOST_LOOKS: Final = 1_000
# What a pydantic model reads back: names as its reader knows them, nothing computed. The reader judges, no warning.
_AS_READ: Final = {"by_alias": True, "round_trip": True, "warnings": False}


class TypedLease(Lease, Generic[T], frozen=True, gc=False, kw_only=True):
    """A lease with the decoded payload."""

    payload: T


class TypedQueue(Generic[T]):
    """Jobs of one queue with payloads of type T. A payload that is no T makes its job dead, with ``bad_payload``."""

    def __init__(self, client: "Client", queue: str, of: type[T]) -> None:
        self._client = client
        self._queue = queue
        self._codec = _Codec(of)

    async def enqueue(self, payload: T, **options: Unpack[JobOptions]) -> Job:
        """Have a job accepted."""
        return await self._client.enqueue(self._queue, self._codec.encode(payload), **_as_json(options))

    async def enqueue_many(self, payloads: Iterable[T], **options: Unpack[JobOptions]) -> list[Job]:
        """Have these jobs accepted, all or none, with the same options."""
        made = [NewJob(self._queue, self._codec.encode(payload), **_as_json(options)) for payload in payloads]
        return await self._client.enqueue_many(made)

    async def lease(
        self, *, limit: int = 1, lease_s: float = 30.0, wait_s: float = 0.0, worker: str = ""
    ) -> list[TypedLease[T]]:
        """Take the first ready jobs whose payload is a T, and make the others before them dead.

        Comes back empty when ``wait_s`` is over in all, or after a thousand looks that found bad ones only.
        """
        for _ in range(_MOST_LOOKS):
            leases = await self._client.lease(self._queue, limit=limit, lease_s=lease_s, wait_s=wait_s, worker=worker)
            decoded = [self._decoded(lease) for lease in leases]
            # Together, so that however many are bad, they are dead in one commit.
            await asyncio.gather(
                *(
                    self._refuse(lease, bad)
                    for lease, bad in zip(leases, decoded, strict=True)
                    if isinstance(bad, Exception)
                )
            )
            good = [lease for lease in decoded if isinstance(lease, TypedLease)]
            if good or not leases:
                return good
            wait_s = max(0.0, wait_s - leases[0].waited_s)
        return []

    def _decoded(self, lease: Lease) -> TypedLease[T] | Exception:
        try:
            payload = self._codec.decode(lease.job.payload_bytes)
        except Exception as error:  # noqa: BLE001 the type's own code may raise anything
            return error
        return TypedLease(
            job=lease.job,
            token=lease.token,
            expires_in_s=lease.expires_in_s,
            waited_s=lease.waited_s,
            ends_at=lease.ends_at,
            payload=payload,
        )

    async def _refuse(self, lease: Lease, error: Exception) -> None:
        # If this does not get through the job comes again when its lease is over; the good ones do not wait for that.
        with suppress(PenstockError):
            await self._client.nack(lease, f"bad payload: {error}", retry=False, reason=Reason.BAD_PAYLOAD)


def _as_json(options: JobOptions) -> JobOptions:
    return {**options, "content_type": JSON}


class _Codec(Generic[T]):
    """JSON of one type: by pydantic for its models, by msgspec for everything else."""

    def __init__(self, of: type[T]) -> None:
        self._of = of
        model: Any = of
        if hasattr(of, "model_validate_json"):
            self.decode: Callable[[bytes], T] = model.model_validate_json
            self._dump: Callable[[T], bytes] = lambda value: value.model_dump_json(**_AS_READ).encode()  # type: ignore[attr-defined] # a pydantic model
        else:
            self.decode = msgspec.json.Decoder(of).decode
            self._dump = msgspec.json.Encoder().encode

    def encode(self, value: T) -> bytes:
        """The JSON; refuses a value that its reader would refuse."""
        try:
            data = self._dump(value)
            self.decode(data)
        except (AttributeError, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise Invalid(f"the payload is no {getattr(self._of, '__name__', self._of)} ({error})") from error
        return data
