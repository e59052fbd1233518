"""What people read: four digits, one unit, a sign."""

from __future__ import annotations

import pytest

from dashboard.formatting import (
    count_of,
    format_amount,
    format_effect,
    format_effect_interval,
    format_interval,
    gpu_label,
)
from store import shown
from store.records import FoldStatus, Interval, Quantity


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0.2513, "251.3 us"),
        (0.99999, "1.000 ms"),
        (0.000032, "32.00 ns"),
        (1.5, "1.500 ms"),
        (123.456, "123.5 ms"),
        (1000.0, "1.000 s"),
        (1_234_567.0, "1235 s"),
        (None, "n/a"),
    ],
)
def test_a_duration_has_four_significant_digits(milliseconds: float | None, text: str) -> None:
    assert format_amount(milliseconds, Quantity.ELAPSED) == text


def test_an_interval_is_written_in_the_unit_of_its_centre() -> None:
    interval = Interval(1.0, 0.9995, 1.0012, 8, FoldStatus.OK)

    assert format_interval(interval, Quantity.ELAPSED) == "0.9995 … 1.001 ms"


def test_a_refused_interval_has_no_bounds_to_show() -> None:
    assert format_interval(Interval(1.0, None, None, 2, FoldStatus.REFUSED), Quantity.ELAPSED) == "n/a"


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (0.0521, "+5.21 %"),
        (-0.004, "\u22120.40 %"),
        (0.123, "+12.3 %"),
        (0.00001, "0.00 %"),
        (-0.00001, "0.00 %"),
        (None, "n/a"),
    ],
)
def test_an_effect_carries_its_sign_unless_it_rounds_to_nothing(effect: float | None, text: str) -> None:
    assert format_effect(effect) == text


def test_bounds_of_an_effect_share_one_percent_sign() -> None:
    assert format_effect_interval(0.048, 0.056) == "+4.80 … +5.60 %"


def test_gpus_of_one_kind_differ_by_the_end_of_their_uuid() -> None:
    assert gpu_label("NVIDIA H200", "GPU-5b1e4f6a-1c2d3e4f5a6b") == "NVIDIA H200 · 5a6b"
    assert gpu_label("runner-1", "cpu:runner-1") == "runner-1"


def test_names_and_counts_read_as_words() -> None:
    assert shown.short("0123456789abcdef") == "012345678"
    assert shown.short(None) == "no commit"
    assert [count_of(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
