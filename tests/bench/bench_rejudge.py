"""How long judging a whole store again takes: ``python tests/bench/bench_rejudge.py``. Printed, not asserted.

Makes stores of 100 benchmarks x 3 GPUs, one run of each on every commit, with 60, 125 and 250 commits, and
with ``--full`` 500, 1,000 and 2,000. Judges all of each store again, and prints seconds of wall clock and of
processor, microseconds a verdict, the ratio to the goal (10 s for 1,000 commits) and how the time grew when
the commits doubled. ``--divided`` gives each store releases, steps and accepted changes first, and searching
for the steps takes longer than judging. ``--profile`` shows where the time goes.

Measured on two processor cores that had nothing else to do: 4.5, 7.4 and 13.7 s with 500, 1,000 and 2,000
commits (25 us a verdict, and 0.5 s before the first), 1.67 and 1.98 times as much for twice the commits; with
releases, steps and accepted changes 8.8 s for 1,000. Two thirds of it are one processor's work in Python,
the rest DuckDB's. One after another took 68 s: docs/decisions/0013-judging-in-columns.md says what changed.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in ("", "bench"))]

from large_store import divide_history, fill_large_store  # noqa: E402 - after the path is set

from alerts.rejudge import rejudge  # noqa: E402

COMMITS, COMMITS_FULL = (60, 125, 250), (500, 1_000, 2_000)
GOAL_S, GOAL_COMMITS = 10.0, 1_000
_PROFILED_LINES = 40


def measure(commits: int, *, divided: bool, profile: bool) -> tuple[float, float]:
    """Print the line of one size; gives seconds of wall clock and of processor."""
    with tempfile.TemporaryDirectory() as folder:
        database = fill_large_store(Path(folder) / "large.duckdb", commits=commits)
        if divided:
            divide_history(database, commits=commits)
        profiler = cProfile.Profile() if profile else None
        wall, processor = time.perf_counter(), time.process_time()
        with profiler or nullcontext():
            result = rejudge(database)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    goal = GOAL_S * commits / GOAL_COMMITS
    each_us = 1e6 * processor / result.verdicts
    print(
        f"{commits:7,} {result.verdicts:10,} {wall:9.1f} {processor:11.1f} {each_us:12.0f}"
        f" {wall / goal:9.1f}x {processor / goal:9.1f}x",
        flush=True,
    )
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(_PROFILED_LINES)
    return wall, processor


def main() -> None:
    """Measure all sizes, or those asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commits", type=int, action="append", help="a size to measure; may be repeated")
    parser.add_argument("--full", action="store_true", help="up to twice the commits of the goal (minutes)")
    parser.add_argument("--divided", action="store_true", help="with releases, steps and accepted changes")
    parser.add_argument("--profile", action="store_true", help="show which functions take the time")
    options = parser.parse_args()
    sizes = options.commits or list(COMMITS_FULL if options.full else COMMITS)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before")
    print("commits   verdicts    wall s processor s us a verdict wall/goal processor/goal")
    found = [measure(commits, divided=options.divided, profile=options.profile) for commits in sizes]
    for smaller, larger, (_, before), (_, after) in zip(sizes, sizes[1:], found, found[1:], strict=False):
        print(f"{larger:,} against {smaller:,} commits: {after / before:.2f}x the processor time")


if __name__ == "__main__":
    main()
