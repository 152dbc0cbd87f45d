"""The order within a batch (rule 19)."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.batch import run
from penstock.domain.cells import BEGUN_AT, SCENES, VERBS
from penstock.domain.commands import AnyCommand, Command, DeleteSetting, PutSetting, SettingKind, Sweep
from penstock.domain.events import AnyEvent
from penstock.domain.tables import Tables

ORDER = [
    *("Heartbeat", "Ack", "Nack", "Release", "Cancel", "Expire", "Requeue", "Update", "Purge", "PutSetting"),
    *("Enqueue", "LeaseJobs"),
]
# Expiries of leases and of deadlines share a turn, and so do both changes of settings.
TOGETHER = {"Age": "Expire", "Lapse": "Expire", "DeleteSetting": "PutSetting"}
COMMANDS = [
    *(step for script in (*SCENES.values(), *VERBS.values()) for step in script if isinstance(step, Command)),
    PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"paused": True}),
    DeleteSetting(kind=SettingKind.QUEUE, name="mail"),
]


def _rank(kind: type[Command]) -> int:
    return ORDER.index(TOGETHER.get(kind.__name__, kind.__name__))


def test_every_verb_has_its_turn() -> None:
    verbs: set[type[Command]] = set(get_args(AnyCommand)) - {Sweep}
    assert {kind: kind.turn for kind in verbs} == {kind: _rank(kind) for kind in verbs}
    assert {type(command) for command in COMMANDS} == verbs


def _events(batch: list[Command]) -> list[AnyEvent]:
    tables = Tables()
    tables.begin(BEGUN_AT, 1)
    return run(tables, batch)[1]


@given(st.lists(st.sampled_from(COMMANDS), max_size=12))
def test_a_batch_happens_as_if_its_commands_had_come_in_the_order_of_their_verbs(batch: list[Command]) -> None:
    assert _events(batch) == _events(sorted(batch, key=lambda command: _rank(type(command))))


@given(st.lists(st.sampled_from(COMMANDS), max_size=12))
def test_one_after_the_other_in_that_order_gives_the_same_events(batch: list[Command]) -> None:
    tables = Tables()
    tables.begin(BEGUN_AT, 1)
    alone = [
        event for command in sorted(batch, key=lambda command: command.turn) for event in run(tables, [command])[1]
    ]
    assert _events(batch) == alone
