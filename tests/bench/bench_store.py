"""How long a store takes: ``python tests/bench/bench_store.py``. Printed, not asserted.

Saves and loads runs of 30 measurements x 8 windows x 200 samples, then reads the points of
a store that holds many runs, as the dashboard does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import duckdb  # noqa: E402 - after the path is set
from builders import a_measurement, a_run, a_window  # noqa: E402

from store.bundle import read_bundle, write_bundle  # noqa: E402
from store.commits import commit_positions  # noqa: E402
from store.database import Database  # noqa: E402
from store.runs import find_runs, load_run, save_run  # noqa: E402
from store.series import load_points  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.records import Run

RUNS = 40


def a_large_run(commit: int) -> Run:
    """Thirty measurements of eight windows of two hundred samples."""
    measurements = tuple(
        a_measurement(
            f"benchmark_{place}", windows=tuple(a_window(i, n=200, seed=i + 10 * place) for i in range(8))
        )
        for place in range(30)
    )
    return a_run(commit, measurements=measurements)


@contextmanager
def timed(what: str, *, times: int = 1) -> Iterator[None]:
    """Print how long the block took, per repetition."""
    started = time.perf_counter()
    yield
    print(f"{what:<48} {(time.perf_counter() - started) / times * 1e3:9.1f} ms")


def measure(folder: Path) -> None:
    """Print one line per operation."""
    print(f"duckdb {duckdb.__version__}")
    database = Database(folder / "bench.duckdb")
    runs = [a_large_run(commit) for commit in range(100, 100 + RUNS)]
    with timed("save the first run (48,000 samples)"):
        save_run(database, runs[0])
    with timed("save a run (48,000 samples)", times=RUNS - 1):
        for run in runs[1:]:
            save_run(database, run)
    with timed("load a run, samples included"):
        load_run(database, runs[5].header.run_id)
    with timed("list the runs"):
        find_runs(database)
    with timed(f"load {RUNS} points of one benchmark"):
        load_points(database, benchmarks=["benchmark_3"])
    with timed(f"load all {RUNS * 30} points"):
        load_points(database)
    with timed("positions of the commits"):
        commit_positions(database, runs[0].header.repository)
    with timed("write a bundle"):
        write_bundle(runs[0], folder / "bundle")
    with timed("read a bundle"):
        read_bundle(folder / "bundle")
    megabytes = database.path.stat().st_size / 2**20
    print(f"{RUNS} runs take {megabytes:.1f} MiB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name))
