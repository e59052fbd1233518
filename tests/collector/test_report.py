"""A run as a terminal and as a program gets it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from builders import a_failure, a_kernel, a_measurement, a_run, a_verdict, a_window

from collector.report import run_json, run_text
from store.records import Case, FoldStatus, Interval, Outcome, Reason, Run, Standing


def the_table(run: Run) -> list[str]:
    """The lines of the table, its head first."""
    lines = run_text(run, None).split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("benchmark"))
    return lines[start : start + 1 + len(run.measurements)]


def a_run_with(interval: Interval) -> Run:
    return a_run(measurements=(a_measurement(interval=interval),))


def test_columns_stand_under_their_heads_whatever_the_names() -> None:
    names = ("gelu", "a_benchmark_with_a_rather_long_name", "µ_kernel")
    head, *rows = the_table(a_run(measurements=tuple(a_measurement(name) for name in names)))

    tier = head.index("tier")
    assert [row[tier : tier + 4].strip() for row in rows] == ["A", "A", "A"]
    end_of_median = head.index("median") + len("median")
    assert all(row[:end_of_median].endswith("us") and row[end_of_median] == " " for row in rows)


def test_characters_that_take_two_columns_are_counted_as_two() -> None:
    _, wide, plain = the_table(a_run(measurements=(a_measurement("行列"), a_measurement("abcd"))))

    assert len(plain) - len(wide) == 2  # two characters fewer on the same width


def test_the_title_says_what_was_measured_where_and_how() -> None:
    title = run_text(a_run(), None).split("\n")[0]

    assert title == (
        "github.com/example/kernels at 000000000 on NVIDIA H200, timer cupti, held clocks, in 40 s"
    )


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"dirty": True}, "at 000000000 with uncommitted changes on"),
        ({"interrupted": True}, "interrupted after 40 s"),
        ({"commit_sha": None}, "at no commit on"),
    ],
)
def test_the_title_says_what_is_unusual(header: dict[str, object], words: str) -> None:
    assert words in run_text(a_run(header=header), None).split("\n")[0]


def test_a_provisional_interval_is_marked() -> None:
    run = a_run(measurements=(a_measurement(passes=3),))

    assert "provisional" in the_table(run)[1]
    assert "provisional" not in the_table(a_run())[1]


def test_a_refused_interval_shows_its_median_and_no_bounds() -> None:
    (row,) = the_table(a_run(measurements=(a_measurement(passes=2),)))[1:]

    assert "no interval" in row
    assert "us" in row


def test_a_measurement_without_a_number_says_none() -> None:
    run = a_run(measurements=(a_measurement(windows=(a_window(invalid="disturbed"),)),))

    assert the_table(run)[1].split()[1:4] == ["none", "no", "interval"]


def test_bounds_too_far_apart_get_a_unit_each_and_are_called_useless() -> None:
    row = the_table(a_run_with(Interval(0.25, 1e-6, 5916.401, 3, FoldStatus.PROVISIONAL)))[1]

    assert "1.000 ns to 5.916 s provisional, too wide to use" in row


def test_bounds_within_a_factor_of_four_are_shown_in_the_unit_of_the_median() -> None:
    row = the_table(a_run_with(Interval(0.25, 0.125, 0.5, 3, FoldStatus.PROVISIONAL)))[1]

    assert "125.0 to 500.0 us provisional  " in row


def test_names_and_messages_cannot_drive_the_terminal() -> None:
    hostile = "\x1b[2Jgone\r\nforged  row\u202e"
    run = a_run(
        header={"repository": hostile, "gpu_name": hostile},
        measurements=(a_measurement(hostile, parameters={"x": hostile}),),
        failures=(a_failure(hostile, message=hostile, kind=hostile, source=hostile),),
    )

    text = run_text(run, None)

    assert not set(text) & {"\x1b", "\r", "\u202e"}
    assert len(text.split("\n")) == 7  # title, empty, head, row, empty, "Not measured", failure


def test_a_case_that_failed_alike_in_several_passes_is_said_once() -> None:
    alike = tuple(a_failure(message="records were lost", pass_index=index) for index in range(3))
    other = a_failure(message="something else", pass_index=4)

    lines = run_text(a_run(failures=(*alike, other)), None).split("\n")

    assert lines[-3:] == [
        "Not measured (4):",
        "  broken (suites/example.py:30): ValueError: records were lost [3 passes]",
        "  broken (suites/example.py:30): ValueError: something else",
    ]


def test_a_suite_file_that_failed_is_called_a_suite() -> None:
    run = a_run(failures=(a_failure(case=None),))

    assert run_text(run, None).split("\n")[-1].startswith("  suite (suites/example.py:30): ")


def the_verdict_column(run: Run, **changes: object) -> str:
    verdict = a_verdict(run, **changes)
    return run_text(run, [verdict]).split("\n")[3].split("  ")[-1]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "REGRESSED +4.00 %, confirmed"),
        ({"standing": Standing.FLAGGED}, "REGRESSED +4.00 %, flagged"),
        (
            {"outcome": Outcome.UNCHANGED, "standing": Standing.NONE, "effect": -0.0012},
            "UNCHANGED -0.12 %",
        ),
        (
            {"outcome": Outcome.INCONCLUSIVE, "reason": Reason.NO_BASELINE, "effect": None},
            "INCONCLUSIVE (no-baseline)",
        ),
    ],
)
def test_the_verdict_column_says_outcome_effect_and_standing(changes: dict[str, object], shown: str) -> None:
    assert the_verdict_column(a_run(), **changes) == shown


def test_a_run_that_was_not_judged_says_so() -> None:
    assert the_table(a_run())[1].endswith("not judged")


def test_the_kernels_of_one_call_are_counted_with_their_repetitions() -> None:
    kernels = (a_kernel(count=2), a_kernel(name="add", count=1))
    row = the_table(a_run(measurements=(a_measurement(kernels=kernels),)))[1]

    assert row.split()[-3] == "3"  # before "not judged"


def test_json_holds_every_number_the_table_shows_and_no_raw_samples() -> None:
    run = a_run(failures=(a_failure(),))

    document = run_json(run, [a_verdict(run)])

    assert json.loads(json.dumps(document, allow_nan=False)) == document
    (measurement,), (failure,) = document["measurements"], document["failures"]
    interval = run.measurements[0].interval
    assert [measurement[name] for name in ("median_ms", "low_ms", "high_ms")] == [
        interval.center, interval.low, interval.high,
    ]  # fmt: skip
    assert (measurement["tier"], measurement["windows"], measurement["samples"]) == ("A", 8, 240)
    assert measurement["verdict"]["outcome"] == "REGRESSED"
    assert failure["benchmark"] == "broken"
    assert failure["log"] == "Traceback (most recent call last): ..."
    assert "samples_ms" not in json.dumps(document)
    assert document["judged"] is True


def test_json_of_a_run_that_was_not_judged_says_so_and_has_no_verdicts() -> None:
    document = run_json(a_run(), None)

    assert document["judged"] is False
    assert document["measurements"][0]["verdict"] is None


def test_a_label_of_another_case_does_not_get_this_cases_verdict() -> None:
    run = a_run()
    other = replace(run.measurements[0], case=Case.of("another", {}))

    text = run_text(replace(run, measurements=(other,)), [a_verdict(run)])

    assert "REGRESSED" not in text
