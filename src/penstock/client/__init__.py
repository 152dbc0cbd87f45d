"""The Python client: the same names on every store, with and without ``await``."""

from penstock.client.client import Client
from penstock.client.connect import connect, connect_sync
from penstock.client.keep import Keeper
from penstock.client.sync import SyncClient
from penstock.client.typed import TypedLease, TypedQueue

__all__ = ["Client", "Keeper", "SyncClient", "TypedLease", "TypedQueue", "connect", "connect_sync"]
