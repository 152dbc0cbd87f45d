"""``python -m penstock``: the command line where no script is on the path."""

from penstock.cli import main

main()
