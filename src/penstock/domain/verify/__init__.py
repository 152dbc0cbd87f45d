"""Is this log true? A checker that is given the records of a store one after the other, and says what is wrong.

It is a judge of its own: it shares the events with the state machine, but neither its decisions nor its tables, so that
a fault there is found here. ``checker`` reads, ``lives`` and ``edges`` judge each event by what ``book`` and ``seen``
remember, and ``compare`` holds the end of it against what the store says it holds.
"""

from penstock.domain.verify.book import Finding
from penstock.domain.verify.checker import RULES, Base, Verifier
from penstock.domain.verify.compare import Live

__all__ = ["RULES", "Base", "Finding", "Live", "Verifier"]
