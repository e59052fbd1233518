"""How long judging a whole store again takes: ``python tests/bench/bench_rejudge.py``. Printed, not asserted.

Makes stores of 100 benchmarks x 3 GPUs, one run of each on every commit, with 60, 125 and 250 commits, and
with ``--full`` 250, 500 and 1,000. Judges all of each store again, and prints seconds of wall clock and of
processor, microseconds a verdict, the ratio to the goal (10 s for 1,000 commits, on one processor) and
how the time grew when the commits doubled. ``--profile`` shows where the time goes.

Measured on one of two processor cores that had nothing else to do: 217, 222 and 233 us a verdict with
250, 500 and 1,000 commits (16, 33 and 70 s in all), 2.05 and 2.09 times as much for twice the commits.
It is linear, and seven times over the goal. Under the profiler two fifths go into choosing the pool and
the anchor of each point, two into comparing and wording, one into reading and writing.
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

from large_store import fill_large_store  # noqa: E402 - after the path is set

from alerts.rejudge import rejudge  # noqa: E402

COMMITS, COMMITS_FULL = (60, 125, 250), (250, 500, 1_000)
GOAL_S, GOAL_COMMITS = 10.0, 1_000
_PROFILED_LINES = 40


def measure(commits: int, *, profile: bool) -> tuple[float, float]:
    """Print the line of one size; gives seconds of wall clock and of processor."""
    with tempfile.TemporaryDirectory() as folder:
        database = fill_large_store(Path(folder) / "large.duckdb", commits=commits)
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
    parser.add_argument("--full", action="store_true", help="up to the 1,000 commits of the goal (minutes)")
    parser.add_argument("--profile", action="store_true", help="show which functions take the time")
    options = parser.parse_args()
    sizes = options.commits or list(COMMITS_FULL if options.full else COMMITS)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before")
    print("commits   verdicts    wall s processor s us a verdict wall/goal processor/goal")
    found = [measure(commits, profile=options.profile) for commits in sizes]
    for smaller, larger, (_, before), (_, after) in zip(sizes, sizes[1:], found, found[1:], strict=False):
        print(f"{larger:,} against {smaller:,} commits: {after / before:.2f}x the processor time")


if __name__ == "__main__":
    main()
