"""A store and the model, given the same wishes by Hypothesis, and compared after every step."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.domain import fingerprint
from penstock.domain.commands import Command, DeleteSetting, LeaseJobs, SettingKind
from penstock.domain.outcome import Accepted, Leases, Outcome
from penstock.domain.queries import Everything, QueueStats, Snapshot, Stats
from penstock.stores.port import Store
from penstock.testing import FakeClock
from tests.contract.conftest import Maker
from tests.model.reference import Model, counted, in_line, numbers, plain, sound
from tests.model.wishes import QUEUES, TENANTS, Wish, World, any_wish, to_enqueue, to_lease, to_work

SHORT_S = (0.001, 5.0, 10.0, 31.0)
LONG_S = (601.0, 901.0, 3601.0, 86_401.0)


class Comparing(RuleBasedStateMachine):
    """One life of a store beside the model."""

    maker: Maker

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = FakeClock()
        self.place = tempfile.TemporaryDirectory()
        self.store = self.opened()
        self.model = Model(self.clock)
        self.world = World(self.clock, self.model.tables)
        self.last: list[Command] = []

    def opened(self) -> Store:
        store = self.maker.make(self.clock, Path(self.place.name))
        self.runner.run(store.open())
        return store

    @initialize(wishes=st.lists(to_enqueue, min_size=1, max_size=3))
    def begin(self, wishes: list[Wish]) -> None:
        self.commit([wish.command(self.world) for wish in wishes])

    @rule(wish=any_wish)
    def one(self, wish: Wish) -> None:
        self.commit([wish.command(self.world)])

    @rule(wishes=st.lists(any_wish, min_size=2, max_size=5))
    def several_in_one_commit(self, wishes: list[Wish]) -> None:
        self.commit([wish.command(self.world) for wish in wishes])

    @rule(wishes=st.tuples(to_enqueue, to_lease, to_work, to_work))
    def one_after_the_other(self, wishes: tuple[Wish, ...]) -> None:
        for wish in wishes:
            self.commit([wish.command(self.world)])

    @rule(seconds=st.sampled_from(SHORT_S * 3 + LONG_S))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(wishes=st.lists(to_work, max_size=2))
    def expire(self, wishes: list[Wish]) -> None:
        found = self.runner.run(self.store.overdue())
        expected = [*self.model.overdue(), *(self.model.halfway() if self.maker.durable else ())]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        self.commit([*found, *(wish.command(self.world) for wish in wishes)])

    @rule()
    def retain(self) -> None:
        found = self.runner.run(self.store.outlived())
        assert sorted(map(repr, found)) == sorted(map(repr, self.model.outlived()))
        self.commit(found)

    @rule()
    def repeat_the_last_commit(self) -> None:
        self.commit(self.last)

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.store.close())
        if self.maker.durable:
            self.store = self.opened()
            self.model.reopen()
        else:
            self.runner.run(self.store.open())

    @invariant()
    def the_store_is_as_the_model_is(self) -> None:
        for tenant in TENANTS:
            snapshot, stats = self.runner.run(self.looked(tenant))
            model = self.model.snapshot(tenant)
            assert all(sound(job) for job in snapshot.jobs)
            assert plain(snapshot.jobs) == plain(model.jobs)
            assert plain(snapshot.settings) == plain(model.settings)
            assert plain(stats) == plain(self.model.stats(tenant))
            assert numbers(stats) == counted(snapshot.jobs, self.clock)

    def teardown(self) -> None:
        """Whatever they went through, their lines are whole: all that is ready comes out, in order."""
        try:
            self.commit([DeleteSetting(tenant=t, kind=SettingKind.QUEUE, name=q) for t in TENANTS for q in QUEUES])
            for tenant in TENANTS:
                call = self.clock.secret()
                self.commit([LeaseJobs(tenant=tenant, queues=QUEUES, request_id=call, limit=1_000)])
        finally:
            self.runner.close()
            self.place.cleanup()

    def commit(self, batch: Sequence[Command]) -> list[Outcome]:
        """Have it done by both, and take note of what callers learn."""
        self.last = list(batch)
        expected = self.expected_leases(batch)
        outcomes = self.runner.run(self.store.commit(batch))
        assert plain(outcomes) == plain(self.model.commit(batch))
        for command, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Leases):
                ids = [lease.job.id for lease in outcome.leases]
                assert expected in (None, ids)
                self.world.leases += [(command.tenant, lease.job.id, lease.token) for lease in outcome.leases]
            elif isinstance(outcome, Accepted):
                self.world.jobs += [(command.tenant, job.id) for job in outcome.jobs]
            if isinstance(command, LeaseJobs):
                self.world.calls.append((command.tenant, command.request_id))
        return outcomes

    def expected_leases(self, batch: Sequence[Command]) -> list[str] | None:
        """Whom a lone new lease call must get, found without any index; None for anything else."""
        match batch:
            case [LeaseJobs() as command]:
                tenant = self.model.tables.tenants.get(command.tenant)
                if tenant is None or fingerprint.of_call(command.request_id) not in tenant.calls:
                    return in_line(self.model.snapshot(command.tenant), command, self.clock)
        return None

    async def looked(self, tenant: str) -> tuple[Snapshot, tuple[QueueStats, ...]]:
        snapshot = await self.store.ask(Everything(tenant=tenant))
        stats = await self.store.ask(Stats(tenant=tenant))
        assert isinstance(snapshot, Snapshot)
        assert isinstance(stats, tuple)
        return snapshot, stats  # type: ignore[return-value] # stats, as asked


class TakingBack(Comparing):
    """The same, but the model does every batch, takes it back and does it again; and others it takes back for good."""

    def commit(self, batch: Sequence[Command]) -> list[Outcome]:
        self.model.take_back(batch)
        return super().commit(batch)

    @precondition(lambda self: self.world.jobs)
    @rule(wishes=st.lists(any_wish, min_size=1, max_size=4))
    def take_back(self, wishes: list[Wish]) -> None:
        self.model.take_back([wish.command(self.world) for wish in wishes])
