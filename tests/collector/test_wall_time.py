"""Where the wall time of runs went, on windows whose parts are known."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run, a_window

from collector.aa_analysis import analyse
from collector.aa_report import study_json, study_text
from collector.wall_time import wall_time
from store.records import PairedRole, Quantity, Reading, Run, Window

if TYPE_CHECKING:
    from store.studies import WallTime

PHASES = {"phase.loop_ms": 100.0, "phase.read_ms": 7.0, "phase.setup_ms": 30.0}


def a_timed_window(place: int = 0, **changes: Any) -> Window:
    """Ten calls of 2 ms with pauses of 3 ms in a loop of 100 ms, after a warm-up of 40 ms with five calls."""
    fields: dict[str, Any] = {
        "samples_ms": (2.0,) * 10, "pause_ms": (3.0,) * 10, "warmup_calls": 5, "warmup_ms": 40.0,
        "telemetry": {name: Reading(value=value) for name, value in PHASES.items()},
    }  # fmt: skip
    return a_window(place, **(fields | changes))


def runs_of(*windows: Window, **header: Any) -> list[Run]:
    measurement = replace(a_measurement(), windows=windows)
    return [a_run(10, number=i, measurements=(measurement,), header=header) for i in range(2)]


def in_ms(spent: WallTime | None, runs: int) -> dict[str, Any]:
    """Milliseconds of one of so many equal runs."""
    assert spent is not None
    return {part.name: pytest.approx(getattr(spent, part.name) * 1e3 / runs) for part in fields(spent)}


def test_calls_and_pauses_are_taken_out_of_loops_and_warm_ups() -> None:
    runs = runs_of(a_timed_window())

    assert in_ms(wall_time(runs), 2) == {
        "calls_s": 20 + 10, "pauses_s": 30 + 15, "warm_up_s": 40 - 25, "loop_s": 100 - 50, "reading_s": 7,
        "setup_s": 30,
    }  # fmt: skip


def test_windows_are_added_up() -> None:
    one, two = wall_time(runs_of(a_timed_window())), wall_time(runs_of(a_timed_window(), a_timed_window(1)))

    assert in_ms(two, 2) == in_ms(one, 1)


def test_a_call_that_was_repeated_inside_a_sample_counts_as_often_as_it_ran() -> None:
    spent = wall_time(runs_of(a_timed_window(inner_reps=2)))

    assert in_ms(spent, 2)["calls_s"] == 2 * (20 + 10)


def test_a_warm_up_has_no_more_calls_and_pauses_than_time() -> None:
    spent = wall_time(runs_of(a_timed_window(warmup_calls=1000)))

    assert in_ms(spent, 2)["warm_up_s"] == 0
    assert in_ms(spent, 2)["pauses_s"] == 30 + 40


def test_phases_that_nobody_timed_lie_outside_windows() -> None:
    spent = wall_time(runs_of(a_timed_window(telemetry={})))

    assert {part: in_ms(spent, 2)[part] for part in ("loop_s", "reading_s", "setup_s")} == {
        "loop_s": 0, "reading_s": 0, "setup_s": 0,
    }  # fmt: skip


def test_a_ratio_has_no_windows_of_its_own() -> None:
    runs = runs_of(a_timed_window())
    ratio = replace(runs[0].measurements[0], quantity=Quantity.RATIO)
    both = [replace(run, measurements=(*run.measurements, ratio)) for run in runs]

    assert wall_time(both) == wall_time(runs)


def test_runs_that_took_turns_share_their_wall_time_and_are_not_looked_at() -> None:
    partner = {"paired_with": "0a1b2c3d-0000-4000-8000-000000000000", "paired_role": PairedRole.CANDIDATE}

    assert wall_time(runs_of(a_timed_window(), **partner)) is None


def test_a_study_says_which_share_of_its_time_was_neither_call_nor_pause() -> None:
    """Eight windows of 75 ms at calls and pauses, in a run of forty seconds."""
    runs = runs_of(*(a_timed_window(place) for place in range(8)))
    study = analyse(
        runs,
        study_id="0a1b2c3d-0000-4000-8000-000000000000",
        analysed_at=runs[0].header.started_at,
        tool_version="0.1.0",
    )

    assert study.idle_share == pytest.approx(1 - 8 * 0.075 / 40)
    text = study_text(study)
    assert "at the calls for 0.60 % of that time, and at the pauses they need for 0.90 %" in text
    assert "at neither for 98.5 %: set-up 0.60 %, warm-up 0.30 %, loops beside the calls 1.00 %" in text
    assert "reading records 0.14 %, outside windows 96.5 %." in text
    data = study_json(study)
    assert data["idle_share"] == study.idle_share
    assert data["wall_time"]["setup_s"] == pytest.approx(0.48)
