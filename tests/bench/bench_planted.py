"""In how many pairs of runs is about one percent more work seen? Prints a table; asserts nothing.

    collect aa --suite tests/bench/planted_suite.py --runs 10 --store planted.duckdb
    python tests/bench/bench_planted.py planted.duckdb

For each call of the planted suite, every run's measurement of the plain call is compared with every
*other* run's measurement of the same call with more work, by the rule that flags: intervals that do not
overlap.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from store.database import Database
from store.series import load_points

if TYPE_CHECKING:
    from store.records import SeriesPoint


def main() -> None:
    """Load, pair, count, print."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    groups: dict[tuple[str, int], list[SeriesPoint]] = defaultdict(list)
    for point in load_points(Database(sys.argv[1])):
        case = point.series.case
        if case.benchmark.startswith("planted_"):
            groups[case.benchmark, int(dict(case.parameters)["more"] or 0)].append(point)
    print(f"{'call':20} {'pairs':>6} {'seen':>6} {'wrong way':>10} {'median effect':>14}")
    for name in sorted({name for name, _ in groups}):
        pairs = [
            (plain.interval.bounds, more.interval.bounds)
            for plain, more in product(groups[name, 0], groups[name, 1])
            if plain.header.run_id != more.header.run_id
        ]
        judged = [(plain, more) for plain, more in pairs if plain is not None and more is not None]
        seen = sum(more[0] > plain[2] for plain, more in judged)
        wrong = sum(more[2] < plain[0] for plain, more in judged)
        effect = statistics.median(more[1] / plain[1] - 1 for plain, more in judged)
        print(f"{name:20} {len(judged):6} {seen:6} {wrong:10} {effect:+14.2%}")


if __name__ == "__main__":
    main()
