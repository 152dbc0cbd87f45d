"""One batch against the tables: every command decided in its turn, one outcome each."""

from collections.abc import Sequence

from penstock.domain.apply import CHANGES
from penstock.domain.commands import Command
from penstock.domain.decide import DECISIONS
from penstock.domain.events import AnyEvent
from penstock.domain.outcome import ANSWERS, Outcome
from penstock.domain.tables import Tables
from penstock.errors import PenstockError


def run(tables: Tables, batch: Sequence[Command]) -> tuple[list[Outcome], list[AnyEvent]]:
    """Decide and apply the commands in the order of their verbs; a refused one never affects its neighbours."""
    outcomes: list[Outcome] = [None] * len(batch)
    events: list[AnyEvent] = []
    # Stable: within a verb the commands keep the order they came in (rule 19).
    for place in sorted(range(len(batch)), key=[command.turn for command in batch].__getitem__):
        command = batch[place]
        verb = type(command)
        made: list[AnyEvent] = []
        try:
            for event in DECISIONS[verb](tables, command):
                CHANGES[type(event)](tables, event)
                made.append(event)
        except PenstockError as refusal:
            outcomes[place] = refusal
        else:
            outcomes[place] = ANSWERS[verb](tables, command, made)
            events += made
    return outcomes, events
