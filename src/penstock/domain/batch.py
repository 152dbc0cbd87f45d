"""One batch against the tables: every command decided in its turn, one outcome each."""

from collections.abc import Sequence

from penstock.domain.apply import apply
from penstock.domain.commands import TURNS, Command
from penstock.domain.decide import decide
from penstock.domain.events import AnyEvent
from penstock.domain.outcome import Outcome, outcome
from penstock.domain.tables import Tables
from penstock.errors import PenstockError


def run(tables: Tables, batch: Sequence[Command]) -> tuple[list[Outcome], list[AnyEvent]]:
    """Decide and apply the commands in the order of their verbs; a refused one never affects its neighbours."""
    outcomes: list[Outcome] = [None] * len(batch)
    events: list[AnyEvent] = []
    for place in in_turn(batch):
        command = batch[place]
        mark = len(events)
        try:
            for event in decide(tables, command):
                apply(tables, event)
                events.append(event)
        except PenstockError as refusal:
            outcomes[place] = refusal
        else:
            outcomes[place] = outcome(tables, command, events[mark:])
    return outcomes, events


def in_turn(batch: Sequence[Command]) -> list[int]:
    """The places of the commands in the order they are applied: by verb, then as they came (rule 19)."""
    if len(batch) == 1:
        return [0]
    turns: list[list[int]] = [[] for _ in range(TURNS)]
    for place, command in enumerate(batch):
        turns[command.turn].append(place)
    return [place for turn in turns for place in turn]
