"""Exit codes: the number tells a script what to do, as the kind of error tells a program."""

from typing import Final

from penstock.errors import Corrupt, Fenced, Moved, NotFound, PenstockError, Unavailable

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
MISSING: Final = 3
UNAVAILABLE: Final = 4
CORRUPT: Final = 5
REPLACED: Final = 6
INTERRUPTED: Final = 130

_CODES: Final[dict[type[PenstockError], int]] = {
    NotFound: MISSING,
    Unavailable: UNAVAILABLE,
    Corrupt: CORRUPT,
    Moved: REPLACED,
    Fenced: REPLACED,
}


def exit_code(error: PenstockError) -> int:
    """The code for an error; whatever is not told apart is a refusal."""
    return _CODES.get(type(error), REFUSED)
