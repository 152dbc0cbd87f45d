"""From a URL to the store it names."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from penstock.clock import Clock
from penstock.errors import Invalid
from penstock.stores.log.bucket import Bucket
from penstock.stores.log.directory import DirectoryBucket
from penstock.stores.log.store import DIRECTORY, LogStore
from penstock.stores.memory import MemoryStore
from penstock.stores.port import Store

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def store_at(url: str, clock: Clock) -> Store:
    """The store, not opened yet. Raises Invalid, which never repeats the URL: it may hold a password."""
    scheme = _scheme(url)
    opens = _STORES.get(scheme or "")
    if opens is None:
        known = ", ".join(f"{name}://" for name in _STORES)
        raise Invalid(f"no store for this kind of URL in this release; it knows {known}", scheme=scheme or "none")
    return opens(url, clock)


def bucket_at(url: str, clock: Clock) -> Bucket:
    """The bucket in which a store that has a log keeps it."""
    if _scheme(url) != "file":
        raise Invalid("only a store in a directory has a log to read: give file:///path/of/it")
    return DirectoryBucket(_path(url), clock)


def _scheme(url: str) -> str | None:
    # Told only if it looks like one: a password may stand where the scheme should.
    found = _SCHEME.match(str(url))
    return found[1].lower() if found else None


def _memory(url: str, clock: Clock) -> Store:
    if url.lower() != "memory://":
        raise Invalid("memory:// takes nothing after it: the jobs live in this connection alone")
    return MemoryStore(clock)


def _file(url: str, clock: Clock) -> Store:
    return LogStore(DirectoryBucket(_path(url), clock), clock, DIRECTORY)


def _path(url: str) -> Path:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Invalid("this is not a URL; a directory is file:///path/of/it") from error
    path = unquote(parts.path)
    if parts.netloc not in {"", "localhost"} or not path.startswith("/") or "\0" in path:
        raise Invalid("a directory is given by its whole path, with three slashes: file:///path/of/it")
    if parts.query or parts.fragment:
        raise Invalid("file:// takes no options; write a ? or # of the path as %3F or %23")
    return Path(path)


_STORES: Final[dict[str, Callable[[str, Clock], Store]]] = {"memory": _memory, "file": _file}
