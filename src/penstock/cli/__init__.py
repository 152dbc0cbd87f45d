"""The command line: ``penstock`` and all its commands."""

from penstock.cli.run import main, run

__all__ = ["main", "run"]
