"""Eight rounds of do_bench and of nvbench, on one H200."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_other_timers_call_most_rounds_of_the_same_code_different() -> None:
    program, kept = ROOT / "tests/bench/bench_peers.py", ROOT / "tests/data/h200/peers.json"

    done = subprocess.run(
        [sys.executable, str(program), "--from", str(kept)], capture_output=True, text=True, check=True
    )

    do_bench, nvbench = done.stdout.splitlines()
    assert do_bench.startswith("do_bench   false alarms 78/112 = 69.6%; +1.6 % seen 64/64, wrong direction 0")
    assert nvbench.startswith("nvbench    false alarms 99/112 = 88.4%; +1.6 % seen 53/64, wrong direction 4")
