"""From a URL to a client."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from penstock.broker import Broker, BrokerOptions
from penstock.client.client import Client
from penstock.client.sync import SyncConnection
from penstock.clock import Clock, SystemClock
from penstock.domain.job import DEFAULT_TENANT
from penstock.errors import Invalid
from penstock.stores.memory import MemoryStore
from penstock.stores.port import Store

_DEFAULTS: Final = BrokerOptions()
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@asynccontextmanager
async def connect(
    url: str | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    actor: str | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    options: BrokerOptions = _DEFAULTS,
) -> AsyncIterator[Client]:
    """Open the store behind the URL, or the store given, and serve it to a client until the block ends.

    On leaving, commands under way are committed and answered; leases stay with their holders.
    """
    clock = SystemClock() if clock is None else clock
    async with Broker(_store(url, store, clock), clock, options) as broker:
        yield Client(broker, clock, tenant=tenant, actor=actor)


def connect_sync(
    url: str | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    actor: str | None = None,
    store: Store | None = None,
    options: BrokerOptions = _DEFAULTS,
) -> SyncConnection:
    """``connect`` for code without an event loop."""
    return SyncConnection(lambda: connect(url, tenant=tenant, actor=actor, store=store, options=options))


def _store(url: str | None, store: Store | None, clock: Clock) -> Store:
    if (url is None) == (store is None):
        raise Invalid("give the URL of a store, such as memory://, or a store object, and not both")
    return _from_url(url or "", clock) if store is None else store


def _from_url(url: str, clock: Clock) -> Store:
    # No error repeats the URL: it may hold a password. A scheme is told only if it looks like one.
    found = _SCHEME.match(str(url))
    scheme = found[1].lower() if found else None
    opens = _STORES.get(scheme or "")
    if opens is None:
        known = ", ".join(f"{name}://" for name in _STORES)
        raise Invalid(f"no store for this kind of URL in this release; it knows {known}", scheme=scheme or "none")
    return opens(url, clock)


def _memory(url: str, clock: Clock) -> Store:
    if url.lower() != "memory://":
        raise Invalid("memory:// takes nothing after it: the jobs live in this connection alone")
    return MemoryStore(clock)


_STORES: Final[dict[str, Callable[[str, Clock], Store]]] = {"memory": _memory}
