"""Another value in place of one that a module, a class or a table holds, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def swapped(holder: Any, name: Any, value: object) -> Iterator[None]:
    """``holder`` holds ``value`` under this name until the block ends."""
    held = holder[name] if isinstance(holder, dict) else holder.__dict__[name]
    _put(holder, name, value)
    try:
        yield
    finally:
        _put(holder, name, held)


def _put(holder: Any, name: Any, value: object) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)
