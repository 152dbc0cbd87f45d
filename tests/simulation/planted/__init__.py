"""Planted bugs: the simulation must find each of them, by the promise it breaks, and nothing without it."""

from tests.simulation.planted import deciding, deleting, time, writing
from tests.simulation.planted.bug import BUGS, Bug

__all__ = ["BUGS", "Bug", "deciding", "deleting", "time", "writing"]
