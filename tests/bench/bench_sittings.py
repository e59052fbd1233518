"""What a pool of runs measured right after one another does to false alarms: simulated, seeded.

A sitting moves all of its runs together, and each run differs from the next by a little more. A
run of another sitting, of the same code, is held against pools that hold more or fewer runs of
one sitting. Prints how many of these runs each pool flags: ``python tests/bench/bench_sittings.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2])]

from store.comparing import pools_of, reach  # noqa: E402 - after the path is set

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED, DRAWS = 20_260_302, 40_000
SPREADS = ((0.005, 0.002), (0.005, 0.0035), (0.003, 0.003))  # between sittings, and inside one
POOLS = ((1, 19), (2, 18), (6, 14), (10, 10), (14, 6), (20, 0), (6, 0))  # of one sitting, and others


def share_flagged(rng: np.random.Generator, pool: tuple[int, int], between: float, inside: float) -> float:
    """How many runs of the same code, each of a sitting of its own, lie apart from such a pool."""
    together, alone = pool
    each = np.hypot(between, inside)
    logs = np.concatenate(
        [
            rng.normal(0, between, (DRAWS, 1)) + rng.normal(0, inside, (DRAWS, together)),
            rng.normal(0, each, (DRAWS, alone)),
        ],
        axis=1,
    )
    none: NDArray[np.float64] = np.zeros(DRAWS)
    pools = pools_of(logs, resolution_ms=none)
    center = np.exp(rng.normal(0, each, DRAWS))
    low, high = reach(center, run_sd=pools.run_sd, run_df=pools.run_df, resolution_ms=none)
    return float(np.mean((low > pools.high) | (high < pools.low)))


def main() -> None:
    """Print a row for each spread and a column for each pool."""
    rng = np.random.default_rng(SEED)
    print("share of runs of the same code flagged, by pool: runs of one sitting + runs of a sitting each")
    print("between   inside " + "".join(f"{f'{one} + {many}':>10}" for one, many in POOLS))
    for between, inside in SPREADS:
        shares = (share_flagged(rng, pool, between, inside) for pool in POOLS)
        row = "".join(f"{f'{100 * share:.1f} %':>10}" for share in shares)
        print(f"{100 * between:5.2f} % {100 * inside:6.2f} %{row}")


if __name__ == "__main__":
    main()
