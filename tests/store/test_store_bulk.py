"""Very many verdicts written at once, and very many points read in outline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from builders import a_failure, a_run, a_second_session, a_verdict

from store.database import Database
from store.errors import StoreInvalid
from store.outlines import load_all_failures, load_outlines
from store.records import BaselineKind, Drift, FoldStatus, Interval, Outcome, Standing, Verdict
from store.runs import find_runs, save_run
from store.series import load_points
from store.verdict_columns import Repeated, Rewritten, VerdictColumns
from store.verdicts import load_verdicts, save_verdicts

if TYPE_CHECKING:
    from pathlib import Path


def some_verdicts() -> list[Verdict]:
    """Every part of a verdict once there, once not, and text that no encoding takes."""
    drift = Drift(since="v\udcff1", effect=0.1, low=0.0, high=0.2, apart=False, run_ids=("x", "y"))
    return [
        a_verdict(),
        a_verdict(a_run(11), second=a_second_session(), drift=drift),
        a_verdict(
            a_run(12), baseline=None, baseline_kind=BaselineKind.NONE, baseline_run_ids=(), effect=None,
            p_value=None, q_value=None, candidate=Interval(None, None, None, 0, FoldStatus.REFUSED),
            message="half a pair: \udcff",
        ),
    ]  # fmt: skip


def in_columns(verdicts: list[Verdict]) -> VerdictColumns:
    columns = VerdictColumns()
    columns.add(verdicts, [verdict.q_value for verdict in verdicts])
    return columns


def test_columns_store_what_rows_do(tmp_path: Path) -> None:
    rows, columns = Database(tmp_path / "rows.duckdb"), Database(tmp_path / "columns.duckdb")
    save_verdicts(rows, some_verdicts())
    in_columns(some_verdicts()).save(columns)

    assert load_verdicts(columns) == load_verdicts(rows)


def test_earlier_verdicts_are_replaced_and_counted_and_others_stay(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    first, second, third = some_verdicts()
    save_verdicts(database, [first, second])
    unchanged = replace(first, outcome=Outcome.UNCHANGED, standing=Standing.NONE)

    counted = in_columns([unchanged, third]).save(database)

    was = (Outcome.REGRESSED, Standing.CONFIRMED)
    assert set(counted) == {
        Rewritten(before=was, after=(Outcome.UNCHANGED, Standing.NONE), number=1),
        Rewritten(before=None, after=was, number=1),
    }
    assert {v.run_id: v.outcome for v in load_verdicts(database)} == {
        first.run_id: Outcome.UNCHANGED,
        second.run_id: Outcome.REGRESSED,
        third.run_id: Outcome.REGRESSED,
    }


def test_the_q_value_is_the_one_that_comes_along(tmp_path: Path) -> None:
    database, columns = Database(tmp_path / "runs.duckdb"), VerdictColumns()
    columns.add([a_verdict()], [0.25])
    columns.save(database)

    assert [v.q_value for v in load_verdicts(database)] == [0.25]


def test_lists_of_runs_that_no_verdict_rests_on_any_more_are_forgotten(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    save_verdicts(database, [a_verdict(), a_verdict(a_run(11), baseline_run_ids=("x",))])

    in_columns([a_verdict(baseline_run_ids=("y", "z"))]).save(database)

    with database.reading() as connection:
        lists = connection.execute("select run_ids from run_lists order by run_ids").fetchall()
    assert lists == [(["x"],), (["y", "z"],)]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused_and_not_stored_as_missing(wrong: float) -> None:
    with pytest.raises(StoreInvalid, match=r"effect_low of (nan|inf), which is not finite"):
        in_columns([a_verdict(), a_verdict(a_run(11), effect_low=wrong)])


def test_an_instant_without_a_zone_is_refused() -> None:
    verdict = a_verdict()
    with pytest.raises(StoreInvalid, match="judged_at has no time zone"):
        in_columns([replace(verdict, judged_at=verdict.judged_at.replace(tzinfo=None))])


def test_outlines_are_points_without_windows_kernels_and_work(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    for commit in (1, 2):
        save_run(database, a_run(commit, failures=(a_failure(),)))

    found = load_outlines(database, find_runs(database))

    whole = {point.header.run_id: point for point in load_points(database)}
    nothing: dict[str, Any] = {
        "window_medians_ms": (), "window_passes": (), "kernels": (), "n_samples": 0, "n_left_out": 0,
        "flops": None, "bytes_moved": None,
    }  # fmt: skip
    assert found == {run_id: [replace(point, **nothing)] for run_id, point in whole.items()}
    assert load_all_failures(database) == dict.fromkeys(whole, (a_failure(),))


def columns_of(verdicts: list[Verdict]) -> dict[str, Any]:
    """Unchanged verdicts as columns, with few values where many share them."""
    which = np.arange(len(verdicts))
    return {
        "run_id": Repeated([verdict.run_id for verdict in verdicts], which),
        "series": Repeated([verdicts[0].series], np.zeros_like(which)),
        "message": [verdict.message for verdict in verdicts],
        "outcome": Outcome.UNCHANGED,
        "reason": verdicts[0].reason,
        "standing": Standing.NONE,
        "tier": verdicts[0].tier,
        "windows": np.full(len(verdicts), 8),
        "candidate_windows": np.full(len(verdicts), 8),
        "candidate_status": FoldStatus.REFUSED,
        "baseline_kind": BaselineKind.POOL,
        "baseline_list": Repeated([verdicts[0].baseline_run_ids], np.zeros_like(which)),
        "effect": np.array([0.5, np.nan]),
    }


def test_columns_may_come_as_they_are_and_what_is_not_among_them_is_missing(tmp_path: Path) -> None:
    verdicts, database = [a_verdict(), a_verdict(a_run(11))], Database(tmp_path / "runs.duckdb")
    columns = VerdictColumns()
    columns.add_columns(columns_of(verdicts), judged_at=verdicts[0].judged_at)
    columns.save(database)

    found = load_verdicts(database)

    assert {v.run_id for v in found} == {v.run_id for v in verdicts}
    assert [v.effect for v in found] in ([0.5, None], [None, 0.5])
    assert {(v.baseline_run_ids, v.drift, v.second, v.p_value) for v in found} == {
        (verdicts[0].baseline_run_ids, None, None, None)
    }


def test_a_column_with_an_infinite_number_is_refused() -> None:
    verdicts = [a_verdict(), a_verdict(a_run(11))]
    with pytest.raises(StoreInvalid, match="infinite effect"):
        VerdictColumns().add_columns(
            columns_of(verdicts) | {"effect": np.array([0.5, np.inf])}, judged_at=verdicts[0].judged_at
        )
