"""``python -m store``: the same as the console command."""

from store.cli import main

main(prog_name="python -m store")
