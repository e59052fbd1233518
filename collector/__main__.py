"""``python -m collector`` is ``collect``."""

from collector.cli import main

main()
