"""What does leaving the device to settle before each call change? Prints a table; asserts nothing.

    collect aa --suite tests/bench/settling_suite.py --runs 15 --rest 5 --store settling.duckdb
    python tests/bench/bench_settling.py settling.duckdb [--json FILE]
    python tests/bench/bench_settling.py tests/data/h200/settled/GPU-b264ea6b.json

For each call of the suite, without settling and with it: how many pairs of runs lie apart, the spread
from run to run, and that between the processes of a run. The last lines set the two kinds against each
other: the pairs apart in all, and the geometric mean over the calls of each spread, with to without.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from store.database import Database
from store.series import load_points

KINDS = ("without", "with")  # settling
Measured = dict[str, list[float]]  # "interval" (low, center, high) and "windows" (medians), in milliseconds
Recording = dict[str, dict[str, list[Measured]]]  # by call, by kind, in the order of the runs


@dataclass(frozen=True)
class Noise:
    """How far runs of one call lie apart, spreads as standard deviations of logarithms."""

    pairs: int
    apart: int
    run_sd: float
    process_sd: float


def recording_of(store: str) -> Recording:
    """What the runs of a store gave for the calls of the suite."""
    found: Recording = defaultdict(lambda: {kind: [] for kind in KINDS})
    for point in load_points(Database(store), benchmarks=["settling"]):
        parameters = dict(point.series.case.parameters)
        if point.interval.bounds is not None:
            measured = {"interval": list(point.interval.bounds), "windows": list(point.window_medians_ms)}
            found[str(parameters["call"])][KINDS[int(parameters["settled"] or 0)]].append(measured)
    return dict(found)


def noise(runs: list[Measured]) -> Noise:
    """Pairs whose intervals do not overlap, and the spreads."""
    pairs = [(a["interval"], b["interval"]) for a, b in combinations(runs, 2)]
    within = [statistics.variance(map(math.log, run["windows"])) for run in runs]
    return Noise(
        pairs=len(pairs),
        apart=sum(a[0] > b[2] or b[0] > a[2] for a, b in pairs),
        run_sd=statistics.stdev(math.log(run["interval"][1]) for run in runs),
        process_sd=math.sqrt(statistics.fmean(within)),
    )


def table(recording: Recording) -> str:
    """Both kinds of every call side by side, and what they come to."""
    lines = [f"{'':20} {'time with':>12} {'apart':>14} {'run to run':>17} {'processes':>17}"]
    lines.append(
        f"{'call':20} {'(us)':>12}" + f" {'without':>8} {'with':>5}" + f" {'without':>9} {'with':>7}" * 2
    )
    by_call = {call: [noise(kinds[kind]) for kind in KINDS] for call, kinds in recording.items()}
    for call, (without, settled) in by_call.items():
        center = statistics.median(run["interval"][1] for run in recording[call]["with"])
        lines.append(
            f"{call:20} {center * 1e3:12.1f} {without.apart:8} {settled.apart:5}"
            f" {without.run_sd:9.3%} {settled.run_sd:7.3%}"
            f" {without.process_sd:9.3%} {settled.process_sd:7.3%}"
        )
    for place, kind in enumerate(KINDS):
        apart, pairs = (sum(getattr(n[place], name) for n in by_call.values()) for name in ("apart", "pairs"))
        lines.append(f"{kind} settling {apart} of {pairs} pairs of runs lie apart ({apart / pairs:.2%})")
    for name, words in (("run_sd", "from run to run"), ("process_sd", "between processes")):
        ratio = statistics.geometric_mean(
            getattr(settled, name) / getattr(without, name) for without, settled in by_call.values()
        )
        lines.append(f"spread {words}: with settling {ratio:.2f} of that without (geometric mean)")
    return "\n".join(lines)


def main() -> None:
    """Read a store or what was kept of one, keep it if asked, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", help="a store, or a file that --json wrote")
    parser.add_argument("--json", type=Path, help="keep here what the table is made of")
    arguments = parser.parse_args()
    if arguments.source.endswith(".json"):
        recording: Recording = json.loads(Path(arguments.source).read_text(encoding="utf-8"))
    else:
        recording = recording_of(arguments.source)
    if arguments.json:
        arguments.json.write_text(json.dumps(recording, indent=1), encoding="utf-8")
    print(table(recording))


if __name__ == "__main__":
    main()
