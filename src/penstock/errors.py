"""Every error a caller can meet, sorted by what the caller should do.

PenstockError
├── Invalid        fix the call; sending it again will not help
├── NotFound       there is no such job, queue or store; treat it as gone
├── Conflict       the same key or id with another payload, or the job has moved on; look, then decide
├── LeaseLost      stop working: the job may already be running elsewhere
├── Denied         this token may not do that
├── Busy           a limit was reached; wait .retry_after_s
├── Unavailable    send the same command again; no job is lost or doubled
├── Moved          another broker serves now, at .address
├── Fenced         a newer broker has taken over; exit
└── Corrupt        stored bytes are not what we wrote; stop and look
"""

from typing import ClassVar


class PenstockError(Exception):
    """The root of the tree; ``code`` is the stable name used on every wire."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, **facts: object) -> None:
        self.message = message
        self.facts = facts
        super().__init__(message)

    def __str__(self) -> str:
        told = " ".join(f"{key}={value}" for key, value in self.facts.items() if value is not None)
        return f"{self.message}: {told}" if told else self.message


class Invalid(PenstockError):
    """The call can never succeed as it is: fix it."""

    code = "invalid"


class NotFound(PenstockError):
    """There is no such job, queue or store."""

    code = "not_found"


class Conflict(PenstockError):
    """The same key or id names another payload, or the job has moved on since the caller looked."""

    code = "conflict"


class LeaseLost(PenstockError):
    """The token does not hold the job (any more): stop working on it."""

    code = "lease_lost"


class Denied(PenstockError):
    """The caller's token does not allow this."""

    code = "denied"


class Busy(PenstockError):
    """A limit was reached; nothing changed. Wait ``retry_after_s`` and send it again."""

    code = "busy"

    def __init__(self, message: str, *, retry_after_s: float, **facts: object) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, **facts, retry_after_s=retry_after_s)


class Unavailable(PenstockError):
    """The outcome is unknown: send the same command again, nothing is lost or doubled."""

    code = "unavailable"


class Moved(PenstockError):
    """Another broker serves this store now."""

    code = "moved"

    def __init__(self, message: str, *, address: str) -> None:
        self.address = address
        super().__init__(message, address=address)


class Fenced(PenstockError):
    """A newer broker has taken over this store: this process must stop serving."""

    code = "fenced"


class Corrupt(PenstockError):
    """Stored bytes are not what was written, or were written by a newer release."""

    code = "corrupt"
