"""What all tests share: async tests, a clock that stands still, and a client on a store."""

import asyncio
import inspect
from collections.abc import Iterator

import pytest
from hypothesis import settings

import penstock
from penstock import BrokerOptions, Client, MemoryStore
from penstock.stores.port import Store
from penstock.testing import FakeClock

# The same examples in every run, so that a red run stays red; --hypothesis-profile=explore looks further.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("steady")

# No test waits in earnest, so one that takes this long is waiting for what never comes.
HUNG_S = 20.0

# Nothing happens by itself: no sweep, no retention, and a long poll sleeps until it is woken.
QUIET = BrokerOptions(sweep_s=1e9, retention_s=1e9, poll_s=60.0)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: looks further than `make check` has time for")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on the event loop on which its fixtures were made."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)

    async def run() -> None:
        arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
        async with asyncio.timeout(HUNG_S):
            await test(**arguments)

    runner.run(run())
    return True


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test; made when it is first used."""
    runner = asyncio.Runner()
    yield runner
    runner.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    return MemoryStore(clock)


@pytest.fixture
def queue(runner: asyncio.Runner, store: Store, clock: FakeClock) -> Iterator[Client]:
    """A client of the default tenant, on a broker that does nothing by itself."""
    connection = penstock.connect(store=store, clock=clock, options=QUIET)
    yield runner.run(connection.__aenter__())
    runner.run(connection.__aexit__(None, None, None))


@pytest.fixture
def other(queue: Client) -> Client:
    """Another tenant of the same broker."""
    return queue.acting(tenant="other")
