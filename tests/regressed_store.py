"""A store in which a commit made a benchmark slower, and later ones may have brought it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import a_measurement, a_run

from alerts.judging import judge_run
from store.database import Database
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Run

BAD = 7  # the commit that made it slower


def make_regressed_store(path: Path) -> Database:
    """Six commits, then two sessions of a seventh that is 4 per cent slower; both are judged."""
    database = Database(path)
    for commit in range(1, BAD):
        save_run(database, a_run(commit))
    for number in range(2):
        add(database, BAD, 0.26, number=number)
    return database


def add(
    database: Database, commit: int, median_ms: float, *, number: int = 0, benchmark: str = "softmax"
) -> Run:
    """One more run on a commit of the straight history, judged."""
    measurement = a_measurement(benchmark=benchmark, median_ms=median_ms, seed=100 * commit + number)
    run = a_run(commit, number=number, measurements=(measurement,))
    save_run(database, run)
    judge_run(database, run.header.run_id)
    return run
