"""Calls with and without settling, in turn in the same processes, on two H200 cards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "data" / "h200" / "settled"


def told(card: str) -> list[str]:
    """What the program of the benchmark says at last about a card."""
    program = ROOT / "tests" / "bench" / "bench_settling.py"
    done = subprocess.run(
        [sys.executable, str(program), str(FOLDER / f"{card}.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-4:]


@pytest.mark.parametrize(
    ("card", "without", "settled", "run_ratio", "process_ratio"),
    [
        ("GPU-b264ea6b", "31 of 1155", "0 of 1155", 0.46, 0.77),
        ("GPU-4bbfeeea", "2 of 495", "1 of 495", 0.95, 0.81),
    ],
)
def test_with_settling_fewer_pairs_lie_apart_and_processes_agree_better(
    card: str, without: str, settled: str, run_ratio: float, process_ratio: float
) -> None:
    pairs_without, pairs_with, runs, processes = told(card)

    assert pairs_without.startswith(f"without settling {without} pairs")
    assert pairs_with.startswith(f"with settling {settled} pairs")
    assert f"with settling {run_ratio} of" in runs
    assert f"with settling {process_ratio} of" in processes
