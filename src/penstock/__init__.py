"""Penstock: a durable job queue in which every job ends, and whose history is a data set."""

from penstock.broker import BrokerOptions
from penstock.client import Client, Keeper, SyncClient, TypedLease, TypedQueue, connect, connect_sync
from penstock.domain.backoff import Backoff, Policy
from penstock.domain.events import Entry
from penstock.domain.job import Ended, Holding, Job, Lease, NewJob, Output, Reason, State, Usage
from penstock.domain.queries import Attempt, QueueStats, Snapshot
from penstock.domain.settings import QueueSettings
from penstock.errors import (
    Busy,
    Conflict,
    Corrupt,
    Denied,
    Fenced,
    Invalid,
    LeaseLost,
    Moved,
    NotFound,
    PenstockError,
    Unavailable,
)
from penstock.stores.memory import MemoryStore

__all__ = [
    "Attempt",
    "Backoff",
    "BrokerOptions",
    "Busy",
    "Client",
    "Conflict",
    "Corrupt",
    "Denied",
    "Ended",
    "Entry",
    "Fenced",
    "Holding",
    "Invalid",
    "Job",
    "Keeper",
    "Lease",
    "LeaseLost",
    "MemoryStore",
    "Moved",
    "NewJob",
    "NotFound",
    "Output",
    "PenstockError",
    "Policy",
    "QueueSettings",
    "QueueStats",
    "Reason",
    "Snapshot",
    "State",
    "SyncClient",
    "TypedLease",
    "TypedQueue",
    "Unavailable",
    "Usage",
    "connect",
    "connect_sync",
]
