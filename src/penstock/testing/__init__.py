"""For the tests of those who use Penstock, and for its own."""

from penstock.testing.clock import FakeClock

__all__ = ["FakeClock"]
