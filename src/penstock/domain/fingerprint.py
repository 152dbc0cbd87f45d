"""Short stable names for what is too long to compare: a job's body, an error's kind, a lease call."""

import hashlib
import re
from typing import Final

from penstock.domain.limits import MAX_LEASES

_DETAIL: Final = re.compile(
    r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|\b[0-9a-fA-F]{16,}\b|\d+(?:\.\d+)*|'[^']{0,200}'|\"[^\"]{0,200}\"|(?:/[\w.@-]+){2,}"
)
# The one way to write the index of a token; a call takes no more jobs than these.
_INDEXES: Final = {str(index): index for index in range(MAX_LEASES)}
_TELLING_LINES: Final = 3


def of_job(queue: str, kind: str, payload: bytes) -> str:
    """What makes two enqueues with one key the same: queue, kind and payload bytes, nothing else."""
    return hashlib.sha256(b"\0".join((queue.encode(), kind.encode(), payload))).hexdigest()


def of_error(error: str) -> str:
    """The same for errors that differ only in numbers, addresses, ids, paths and quoted values.

    Of a traceback the last lines tell, where the error is named.
    """
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    telling = lines[:1] if len(lines) <= 1 else lines[-_TELLING_LINES:]
    plain = _DETAIL.sub("*", "\n".join(telling))
    return hashlib.sha256(plain.encode(errors="replace")).hexdigest()[:16]


def of_call(request_id: str) -> str:
    """What the store keeps of a lease request id, so that who reads history can make no token."""
    return hashlib.sha256(request_id.encode()).hexdigest()


def token(request_id: str, index: int) -> str:
    """The token of one job of a lease call: whoever knows the request id can make it again."""
    return f"{request_id}.{index}"


def token_parts(given: str) -> tuple[str, int]:
    """The hashed call and the index a token stands for; ("", -1) if it is no token at all."""
    request_id, _, written = given.rpartition(".")
    index = _INDEXES.get(written)
    if index is None or not request_id or not request_id.isascii():
        return "", -1
    return of_call(request_id), index
