"""What waiting before and after the cache is cleared does to a call: six processes on one H200."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "data" / "h200" / "settling.json"
AT_ONCE = "before, sleep, 0 us"
MOVED = ("matmul_fp8", "matmul_int8", "matmul_prefill", "planted_matmul", "planted_softmax")

Medians = dict[str, dict[str, list[float]]]  # by case, by wait, one of each process


@pytest.fixture(name="medians", scope="module")
def _medians() -> Medians:
    recorded: dict[str, Medians] = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded["medians"]


def slower(waited: list[float], at_once: list[float]) -> float:
    """By how much, in the middle of the processes."""
    return statistics.median(waited) / statistics.median(at_once) - 1


def test_calls_that_draw_much_power_are_slower_after_a_wait_of_50_us(medians: Medians) -> None:
    found = [
        slower(by_wait["after, spin, 50 us"], by_wait[AT_ONCE])
        for case, by_wait in medians.items()
        if case.startswith(MOVED)
    ]

    assert len(found) == 5
    assert min(found) > 0.003
    assert max(found) < 0.009


def test_waiting_longer_than_200_us_changes_nothing_more(medians: Medians) -> None:
    for case, by_wait in medians.items():
        if case.startswith(MOVED):
            assert abs(slower(by_wait["after, spin, 600 us"], by_wait["after, spin, 200 us"])) < 0.003


def test_with_a_wait_of_200_us_processes_agree_better(medians: Medians) -> None:
    for case in ("matmul_fp8", "matmul_int8"):
        (by_wait,) = [each for label, each in medians.items() if label.startswith(case)]
        spread = {wait: statistics.stdev(found) / found[0] for wait, found in by_wait.items()}

        assert spread[AT_ONCE] > 0.006
        assert spread["after, spin, 200 us"] < 0.6 * spread[AT_ONCE]
