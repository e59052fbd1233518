"""docs/instrument.md: every promise has its row, every row a test that exists, and its figures are ours."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
from builders import a_measurement

from collector import instrument
from collector.cupti_session import BUFFER_BYTES
from collector.device import FLUSH_BYTES_MIN
from collector.instrument import Budget, Sample, TimingResult, bench_kernel, measure
from collector.instrument.bootstrap import RESAMPLES, SEED
from collector.instrument.grading import CLOCK_CV_MAX_PCT
from collector.pacing import CLOCK_BAND_MHZ
from collector.window import ATTEMPTS, WARMUP_MAX_MS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "instrument.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
ROWS = {int(row): shown for row, shown in re.findall(r"^\| (\d+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)}
PROMISES = 36


def every_test() -> set[str]:
    """Names of the test functions of all rooms."""
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_promise_has_a_row_and_every_row_names_tests_that_exist() -> None:
    known = every_test()

    assert list(ROWS) == list(range(1, PROMISES + 1))
    for row, shown in ROWS.items():
        named = re.findall(r"`(test_\w+)`", shown)
        assert named, f"row {row} names no test"
        assert [name for name in named if name not in known] == [], f"row {row}"


@pytest.mark.parametrize("record", [TimingResult, Sample], ids=lambda record: record.__name__)
def test_every_field_is_explained(record: type) -> None:
    explained = set(re.findall(r"`(\w+)`", PAGE))

    assert [field.name for field in fields(record) if field.name not in explained] == []


def test_every_public_name_is_on_the_page_and_there() -> None:
    for name in instrument.__all__:
        assert getattr(instrument, name) is not None
    assert [name for name in instrument.__all__ if not re.search(rf"\b{name}\b", PAGE)] == []


def test_the_signature_of_measure_is_shown_as_it_is() -> None:
    shown = re.search(r"`measure\((.*)\)`", PAGE)
    parameters = inspect.signature(measure).parameters.values()

    assert shown is not None
    named = [f"{p.name}={p.default}" for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert shown[1] == ", ".join(["fn", "*", *named])


def test_the_figures_are_those_of_the_code() -> None:
    budget, half = Budget(), Budget().halved()
    buffers = [BUFFER_BYTES * 4**attempt // 1024 for attempt in range(ATTEMPTS)]
    assert buffers == [256, 1024, 4096]
    for said in (
        f"random.Random({hex(SEED).upper().replace('X', 'x')})`, {RESAMPLES} resamples",
        f"more than {CLOCK_CV_MAX_PCT:g} %",
        f"within {CLOCK_BAND_MHZ} MHz",
        f"({WARMUP_MAX_MS / 1e3:g} s at most)",
        f"larger of {FLUSH_BYTES_MIN >> 20} MiB",
        f"{budget.warmup_ms:g} ms and at least ten calls",
        f"fit into {budget.measure_ms:g} ms, between {budget.iterations_min} and {budget.iterations_max}",
        f"{half.warmup_ms:g} ms and {half.measure_ms:g} ms a pass",
        f"{half.iterations_min} to {half.iterations_max} iterations",
        "three attempts with buffers of 256 KiB, 1 MiB and 4 MiB",
    ):
        assert said in WORDS


def test_throughput_divides_by_the_time_the_device_was_busy() -> None:
    measurement = a_measurement(median_ms=0.25, flops=5e9, bytes_moved=1e9)
    busy_ms = measurement.interval.center

    assert busy_ms is not None
    assert busy_ms == pytest.approx(0.25, rel=0.01)
    assert measurement.quantity == "device_busy"
    assert measurement.tflops == pytest.approx(5e9 / (busy_ms / 1e3) / 1e12)
    assert measurement.bandwidth_tbs == pytest.approx(1e9 / (busy_ms / 1e3) / 1e12)


def test_what_is_not_asked_for_by_name_has_the_defaults_of_the_page() -> None:
    defaults = {n: p.default for n, p in inspect.signature(bench_kernel).parameters.items()}

    assert defaults["args"] == ()
    assert defaults["kwargs"] is None
    assert not defaults["allow_events"]
    assert not defaults["launches_from_any_thread"]
