"""Implementations of one workload: measured in turn, compared pass by pass, shown as ratios."""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_header, a_measurement, a_run, a_window
from real_workers import a_session, run_passes

from alerts.judging import judge_run
from alerts.markdown import render_markdown
from alerts.message import compose
from collector.errors import TimingError
from collector.halves import pooled
from collector.loaded import CaseInfo
from collector.measurement import measurements_of
from collector.ratios import ratios
from collector.report import run_json, run_text
from collector.window import SUITE_BUDGET
from store.bundle import read_bundle, write_bundle
from store.database import Database
from store.records import Case, ClockRegime, FoldStatus, Measurement, Quantity, Run, Tier, Timer
from store.runs import load_run, save_run

if TYPE_CHECKING:
    from pathlib import Path

    from collector.session import Session


def info(implementation: str, subject: str = "ours", **parameters: Any) -> CaseInfo:
    """A case of the workload softmax."""
    return CaseInfo(
        key=f"softmax {implementation} {parameters}",
        benchmark="softmax",
        parameters={"implementation": implementation, **parameters},
        label=f"softmax[implementation={implementation}]",
        source="suites/example.py:12",
        subject=f"softmax {subject} {parameters}",
        tags=("memory",),
        time_limit_s=60.0,
        flops=None,
        bytes_moved=None,
    )


def measured(implementation: str, medians_ms: list[float], **changes: Any) -> Measurement:
    """A measurement whose windows have these medians, one a pass."""
    windows = tuple(
        a_window(index, samples_ms=(median * 0.999, median, median * 1.001), position=2)
        for index, median in enumerate(medians_ms)
    )
    return a_measurement("softmax", parameters={"implementation": implementation}, windows=windows, **changes)


DRIFT = [1.0, 1.04, 0.97, 1.02, 0.99, 1.01, 1.03, 0.98]  # of the machine, between passes
OURS = measured("ours", [0.30 * d for d in DRIFT])
TORCH = measured("torch", [0.25 * d for d in DRIFT])
CASES = [info("ours"), info("torch")]


# The ratio


def test_the_ratio_rises_when_the_subject_becomes_slower_than_the_other() -> None:
    (ratio,) = ratios(CASES, [OURS, TORCH])

    assert ratio.quantity is Quantity.RATIO
    assert ratio.case == Case.of("softmax", {"implementation": "ours / torch"})
    assert ratio.interval.center == pytest.approx(1.2)


def test_what_drifts_between_passes_cancels() -> None:
    (ratio,) = ratios(CASES, [OURS, TORCH])

    assert ratio.interval.low == pytest.approx(1.2, rel=1e-3)
    assert ratio.interval.high == pytest.approx(1.2, rel=1e-3)
    assert OURS.interval.high is not None
    assert OURS.interval.low is not None
    assert OURS.interval.high / OURS.interval.low > 1.03


def test_the_interval_is_never_narrower_than_the_timer_can_see() -> None:
    (ratio,) = ratios(CASES, [OURS, TORCH])

    quantum = 3.2e-5 * (1 / 0.30 + 1 / 0.25)  # relative, of both readings
    assert ratio.interval.high is not None
    assert ratio.interval.low is not None
    assert ratio.interval.high - ratio.interval.low >= 1.2 * quantum * 0.95


def test_each_pass_that_measured_both_gives_one_sample() -> None:
    only_six = replace(TORCH, windows=TORCH.windows[:6])

    (ratio,) = ratios(CASES, [OURS, only_six])

    assert [len(window.samples_ms) for window in ratio.windows] == [1] * 6
    assert [window.pass_index for window in ratio.windows] == [0, 1, 2, 3, 4, 5]
    assert ratio.interval.status is FoldStatus.OK


def test_windows_of_different_processes_are_not_compared() -> None:
    elsewhere = tuple(replace(window, pid=window.pid + 100) for window in TORCH.windows)

    assert ratios(CASES, [OURS, replace(TORCH, windows=elsewhere)]) == []


def test_a_window_that_does_not_count_gives_no_ratio() -> None:
    spoiled = (replace(TORCH.windows[0], invalid="2 other processes used the GPU"), *TORCH.windows[1:])

    (ratio,) = ratios(CASES, [OURS, replace(TORCH, windows=spoiled)])

    assert [window.pass_index for window in ratio.windows] == list(range(1, 8))


@pytest.mark.parametrize(("mine", "theirs"), [(Tier.A, Tier.B), (Tier.C, Tier.A)])
def test_a_ratio_is_trusted_as_far_as_the_lesser_of_the_two(mine: Tier, theirs: Tier) -> None:
    (ratio,) = ratios(CASES, [replace(OURS, tier=mine), replace(TORCH, tier=theirs)])

    assert ratio.tier is max(mine, theirs)
    assert f"ours ({mine})" in ratio.tier_evidence[0]


def test_every_other_implementation_is_compared_with_the_first() -> None:
    cases = [info("ours"), info("torch"), info("triton")]
    triton = measured("triton", [0.6 * d for d in DRIFT])

    found = ratios(cases, [OURS, TORCH, triton])

    assert [dict(m.case.parameters)["implementation"] for m in found] == ["ours / torch", "ours / triton"]
    assert found[1].interval.center == pytest.approx(0.5)


def test_without_its_subject_a_workload_has_no_ratio() -> None:
    assert ratios(CASES, [TORCH]) == []
    assert ratios([info("torch")], [TORCH]) == []  # the subject was left out with --only


def test_what_is_no_time_of_the_same_kind_is_not_divided() -> None:
    assert ratios(CASES, [OURS, replace(TORCH, quantity=Quantity.DEVICE_BUSY_AND_COPIES)]) == []


# Two halves, one window


def a_half(**changes: Any) -> dict[str, Any]:
    fields = {
        "pid": 1, "started_at": "2026-03-02T09:00:00+00:00", "quantity": "elapsed", "cold": False,
        "resolution_ms": 1e-6, "samples_ms": [1.0, 2.0], "latency_ms": [], "sum_ms": [], "copy_ms": [],
        "n_kernels": [1, 1], "inner_reps": 1, "launches": [["k"]], "pause_ms": [0.0, 0.0],
        "sm_clock_mhz": [1980, None], "throttle_reasons": [0, None], "warmup_calls": 10, "warmup_ms": 13.0,
        "attempts": 1, "invalid": None, "pacing": [0.0, 0.0],
        "telemetry": {"temperature_c": {"value": 40}, "throttle.power_cap": {"value": 5}},
    }  # fmt: skip
    return fields | changes


def test_two_halves_make_one_window_in_the_order_they_were_taken() -> None:
    window = pooled(a_half(), a_half(samples_ms=[3.0, 4.0], pacing=[1.0, 0.0], attempts=2))

    assert window["samples_ms"] == [1.0, 2.0, 3.0, 4.0]
    assert window["sm_clock_mhz"] == [1980, None, 1980, None]
    assert (window["warmup_calls"], window["warmup_ms"], window["attempts"]) == (20, 26.0, 2)
    assert window["pacing"] == [1.0, 0.0]


def test_counters_of_two_halves_add_up_and_states_are_the_last() -> None:
    later = {"temperature_c": {"value": 44}, "throttle.power_cap": {"value": 2}}

    telemetry = pooled(a_half(), a_half(telemetry=later))["telemetry"]

    assert telemetry == {"temperature_c": {"value": 44}, "throttle.power_cap": {"value": 7}}


def test_a_counter_that_one_half_could_not_read_stays_unread() -> None:
    unread = {"throttle.power_cap": {"error": "not counted"}}

    assert pooled(a_half(telemetry=unread), a_half())["telemetry"]["throttle.power_cap"] == {
        "error": "not counted"
    }


def test_what_spoils_one_half_spoils_the_window() -> None:
    assert pooled(a_half(invalid="another process"), a_half())["invalid"] == "another process"
    assert pooled(a_half(), a_half(invalid="another process"))["invalid"] == "another process"


@pytest.mark.parametrize("name", ["inner_reps", "cold", "quantity", "pid"])
def test_halves_that_were_timed_differently_are_no_window(name: str) -> None:
    with pytest.raises(TimingError, match=name):
        pooled(a_half(), a_half(**{name: "other"}))


def test_two_half_budgets_are_one_window() -> None:
    half = SUITE_BUDGET.halved()

    assert 2 * half.measure_ms == SUITE_BUDGET.measure_ms
    assert 2 * half.iterations_min >= SUITE_BUDGET.iterations_min


# In real workers

IN_TURN = """
import time
from pathlib import Path
PARAMS = {"implementation": ["ours", "torch", "triton"]}
DIARY = Path(__file__).parent / "diary.txt"

def bench_work(implementation):
    def call():
        with DIARY.open("a") as diary:
            diary.write(implementation + "\\n")
        time.sleep({"ours": 0.002, "torch": 0.001, "triton": 0.001}[implementation])
    return call
"""


def folded(session: Session) -> list[Measurement]:
    """What a run makes of the windows of a session."""
    found = [
        measurement
        for case in session.loaded.cases
        if case.key in session.collected.windows
        for measurement in measurements_of(
            case, session.collected.windows[case.key], timer=Timer.WALL, regime=ClockRegime.FREE
        )
    ]
    return found + ratios(session.loaded.cases, found)


def test_implementations_are_measured_there_and_back_in_one_process(bare_python: str, tmp_path: Path) -> None:
    with a_session(bare_python, tmp_path, IN_TURN) as session:
        run_passes(session, passes=1)
        windows = [session.collected.windows[case.key][0] for case in session.loaded.cases]

    diary = (tmp_path / "diary.txt").read_text(encoding="utf-8").split()
    turns = [name for name, _ in groupby(diary)]
    set_up, measuring = turns[:3], turns[3:]
    assert set_up == ["ours", "torch", "triton"]
    assert measuring == ["ours", "torch", "triton", "torch", "ours"]
    assert len({window["pid"] for window in windows}) == 1
    assert all(len(window["samples_ms"]) >= 10 for window in windows)


def test_their_ratio_has_one_sample_for_each_pass(bare_python: str, tmp_path: Path) -> None:
    with a_session(bare_python, tmp_path, IN_TURN) as session:
        run_passes(session, passes=3)
        by_name = {m.case.label: m for m in folded(session)}

    ratio = by_name["work[implementation=ours / torch]"]
    assert len(by_name) == 5
    assert ratio.interval.windows == 3
    assert ratio.interval.center is not None
    assert 1.3 < ratio.interval.center < 2.2  # sleeping takes longer than asked for


def test_implementations_stay_together_when_the_order_is_shuffled(bare_python: str, tmp_path: Path) -> None:
    source = IN_TURN.replace('{"implementation":', '{"size": [1, 2, 3], "implementation":').replace(
        "bench_work(implementation)", "bench_work(size, implementation)"
    )
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=1)
        places = {
            (case.parameters["size"], case.parameters["implementation"]): session.collected.windows[case.key][
                0
            ]["position"]
            for case in session.loaded.cases
        }

    for size in (1, 2, 3):
        first = places[size, "ours"]
        assert [places[size, name] - first for name in ("ours", "torch", "triton")] == [0, 1, 2]


BROKEN = {  # what set-up and call do, and the failure that comes of it
    "a missing library": (("import flash_of_tomorrow", "pass"), ("setup", "ModuleNotFoundError")),
    "a call that raises": (("pass", "raise ValueError('no such shape')"), ("call", "ValueError")),
    "a crash": (("pass", "import os; os._exit(3)"), ("worker", "exit-3")),
}


@pytest.mark.parametrize(("breaks", "stage_and_kind"), BROKEN.values(), ids=BROKEN)
def test_an_implementation_that_breaks_is_a_failure_of_its_own_and_no_gap(
    bare_python: str, tmp_path: Path, breaks: tuple[str, str], stage_and_kind: tuple[str, str]
) -> None:
    set_up, call = breaks
    source = f"""
    PARAMS = {{"implementation": ["ours", "torch", "broken"]}}
    def bench_work(implementation):
        if implementation == "broken":
            {set_up}
        def call():
            if implementation == "broken":
                {call}
            return sum(range(1000))
        return call
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=2)
        labels = [measurement.case.label for measurement in folded(session)]

    (failure,) = session.collected.failures
    assert (failure["stage"], failure["kind"]) == stage_and_kind
    assert session.loaded.known[failure["case"]].label == "work[implementation=broken]"
    assert labels == [
        "work[implementation=ours]",
        "work[implementation=torch]",
        "work[implementation=ours / torch]",
    ]
    assert {len(windows) for windows in session.collected.windows.values()} == {2}


def test_each_implementation_is_checked_against_the_reference_before_anything_is_timed(
    tmp_path: Path,
) -> None:
    source = """
    import torch
    from collector.suite import Call
    PARAMS = {"implementation": ["ours", "torch", "wrong"]}
    def bench_double(implementation):
        x = torch.arange(8.0)
        calls = {"ours": lambda: x + x, "torch": lambda: 2 * x, "wrong": lambda: x}
        return Call(calls[implementation], reference=lambda: x * 2)
    """
    with a_session(sys.executable, tmp_path, source) as session:
        run_passes(session, passes=1)

    (failure,) = session.collected.failures
    assert (failure["stage"], failure["kind"]) == ("check", "wrong-output")
    assert session.loaded.known[failure["case"]].label == "double[implementation=wrong]"


# Shown as a ratio


@pytest.fixture(name="run")
def _run() -> Run:
    found = [OURS, TORCH]
    return a_run(10, measurements=(*found, *ratios(CASES, found)))


def test_the_table_and_the_json_show_a_ratio_without_a_unit_of_time(run: Run) -> None:
    row = next(line for line in run_text(run, None).splitlines() if "ours / torch" in line)
    listed = run_json(run, None)["measurements"]

    assert "1.200x" in row
    assert " ms" not in row
    assert " us" not in row
    assert [measurement["unit"] for measurement in listed] == ["ms", "ms", "x"]


def test_a_ratio_comes_back_from_bundle_and_store_as_it_was(run: Run, tmp_path: Path) -> None:
    write_bundle(run, tmp_path / "run.kwrun")
    database = Database(tmp_path / "runs.duckdb")
    save_run(database, run)

    assert read_bundle(tmp_path / "run.kwrun").measurements == run.measurements
    assert load_run(database, run.header.run_id).measurements == run.measurements


def test_falling_behind_the_library_is_a_regression_in_the_comment(run: Run, tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    slower = [measured("ours", [0.33 * d for d in DRIFT]), TORCH]
    later = replace(
        run,
        header=a_header(11, merge_base=run.header.commit_sha),
        measurements=(*slower, *ratios(CASES, slower)),
        history=a_run(11).history,
    )
    save_run(database, run)
    save_run(database, later)

    judgement = judge_run(database, later.header.run_id, judged_at=later.header.ended_at)
    comment = render_markdown(compose(judgement))

    row = next(line for line in comment.splitlines() if "ours / torch" in line)
    assert "1.200x" in row
    assert "1.320x" in row
    assert "+10.0\u00a0%" in row


def test_the_median_over_passes_is_the_ratio_that_is_shown() -> None:
    medians = [0.30, 0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37]
    mine = measured("ours", medians)

    (ratio,) = ratios(CASES, [mine, measured("torch", [0.25] * 8)])

    assert ratio.interval.center == pytest.approx(statistics.median(medians) / 0.25, rel=1e-3)
