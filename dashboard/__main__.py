"""``python -m dashboard`` is the console command ``dashboard``."""

from dashboard.cli import main

main(prog_name="dashboard")
