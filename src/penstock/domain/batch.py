"""One batch against the tables: every command decided in its turn, one outcome each."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from penstock.domain.apply import CHANGES
from penstock.domain.commands import Command
from penstock.domain.decide import DECISIONS, Events
from penstock.domain.events import AnyEvent
from penstock.domain.outcome import ANSWERS, Outcome
from penstock.domain.tables import Tables
from penstock.errors import PenstockError


def run(tables: Tables, batch: Sequence[Command]) -> tuple[list[Outcome], list[AnyEvent]]:
    """Decide and apply the commands in the order of their verbs; a refused one never affects its neighbours."""
    events: list[AnyEvent] = []
    if len(set(map(type, batch))) == 1:
        return _run_verb(tables, batch, events), events
    outcomes: list[Outcome] = [None] * len(batch)
    # Stable: within a verb the commands keep the order they came in (rule 19).
    in_turn = sorted(range(len(batch)), key=[command.turn for command in batch].__getitem__)
    for _, places in groupby(in_turn, lambda place: type(batch[place])):
        alike = list(places)
        for place, outcome in zip(alike, _run_verb(tables, [batch[place] for place in alike], events), strict=True):
            outcomes[place] = outcome
    return outcomes, events


def _run_verb(tables: Tables, commands: Sequence[Command], events: list[AnyEvent]) -> list[Outcome]:
    """Decide and apply commands of one verb; what they lead to is added to the events."""
    verb = type(commands[0])
    decide, answer = DECISIONS[verb], ANSWERS[verb]
    outcomes: list[Outcome] = []
    for command in commands:
        try:
            made = decide(tables, command)
        except PenstockError as refusal:
            outcomes.append(refusal)
            continue
        if type(made) is not tuple:
            made = tuple(_applied(tables, made))
        else:
            for event in made:
                CHANGES[type(event)](tables, event)
        events += made
        outcomes.append(answer(tables, command, made))
    return outcomes


def _applied(tables: Tables, made: Events) -> Iterator[AnyEvent]:
    """Each event, once it has been applied: the decision that makes them looks at the tables in between."""
    for event in made:
        CHANGES[type(event)](tables, event)
        yield event
