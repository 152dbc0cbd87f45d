"""From a URL to a client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from penstock.broker import Broker, BrokerOptions
from penstock.client.client import Client
from penstock.client.sync import SyncConnection
from penstock.clock import Clock, SystemClock
from penstock.domain.job import DEFAULT_TENANT
from penstock.errors import Invalid
from penstock.stores.port import Store
from penstock.stores.urls import store_at

_DEFAULTS: Final = BrokerOptions()


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
        raise Invalid("give the URL of a store, such as file:///path/of/a/directory, or a store object, and not both")
    return store_at(url or "", clock) if store is None else store
