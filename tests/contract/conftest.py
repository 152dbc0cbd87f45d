"""The stores that must pass the contract suite, and be equal to the model. A new store is one line here."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import MemoryStore
from penstock.clock import Clock
from penstock.stores.port import Store
from penstock.testing import FakeClock


class Maker(NamedTuple):
    """How a test opens a store in a directory of its own; one that is durable can be opened there again."""

    make: Callable[[Clock, Path], Store]
    durable: bool


STORES = {
    "memory": Maker(lambda clock, _: MemoryStore(clock), durable=False),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Store:
    """Each store in turn."""
    maker = STORES[request.param]
    return maker.make(clock, tmp_path)
