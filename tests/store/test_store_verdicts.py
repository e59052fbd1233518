"""Verdicts come back with their evidence, and judging again replaces them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_measurement, a_run, a_second_session, a_verdict

from store.errors import StoreInvalid
from store.records import BaselineKind, Drift, FoldStatus, Interval, Outcome, Reason, Standing
from store.verdicts import load_verdicts, save_verdicts

if TYPE_CHECKING:
    from store.database import Database

INCONCLUSIVE: dict[str, Any] = {
    "outcome": Outcome.INCONCLUSIVE,
    "reason": Reason.NO_BASELINE,
    "standing": Standing.NONE,
    "candidate": Interval(None, None, None, 0, FoldStatus.REFUSED),
    "baseline": None,
    "baseline_kind": BaselineKind.NONE,
    "baseline_run_ids": (),
    "effect": None,
    "effect_low": None,
    "effect_high": None,
    "p_value": None,
    "q_value": None,
    "smallest_seen": None,
}


SILENT = a_second_session(
    outcome=Outcome.INCONCLUSIVE, reason=Reason.MACHINE_MOVED, effect=None, effect_low=None, effect_high=None
)


@pytest.mark.parametrize("changes", [{}, INCONCLUSIVE, {"second": a_second_session()}, {"second": SILENT}])
def test_a_verdict_comes_back_exactly(database: Database, changes: dict[str, Any]) -> None:
    verdict = a_verdict(**changes)

    save_verdicts(database, [verdict])

    assert load_verdicts(database) == [verdict]


def test_judging_again_replaces_the_verdict_of_that_run_and_series_alone(database: Database) -> None:
    run = a_run(measurements=(a_measurement("softmax"), a_measurement("matmul")))
    softmax = a_verdict(run)
    matmul = a_verdict(run, series=run.series_key(run.measurements[1]))
    other = a_verdict(a_run(11))
    save_verdicts(database, [softmax, matmul, other])
    again = replace(softmax, standing=Standing.WITHDRAWN, judged_at=EPOCH + timedelta(days=2))

    save_verdicts(database, [again])
    save_verdicts(database, [again])

    kept = load_verdicts(database)
    assert kept[-1] == again
    assert len(kept) == 3
    assert softmax not in kept


def test_of_two_verdicts_at_once_the_later_one_stays(database: Database) -> None:
    first = a_verdict()
    second = replace(first, standing=Standing.FLAGGED)

    save_verdicts(database, [first, second])

    assert load_verdicts(database) == [second]


def test_verdicts_are_chosen_by_run_and_standing(database: Database) -> None:
    old = a_verdict(a_run(10), judged_at=EPOCH)
    new = a_verdict(a_run(11), standing=Standing.FLAGGED, judged_at=EPOCH + timedelta(days=1))
    save_verdicts(database, [new, old])

    assert load_verdicts(database) == [old, new]
    assert load_verdicts(database, run_ids=[new.run_id]) == [new]
    assert load_verdicts(database, standing=[Standing.CONFIRMED]) == [old]
    assert load_verdicts(database, standing=[Standing.CONFIRMED, Standing.FLAGGED]) == [old, new]
    assert load_verdicts(database, run_ids=[old.run_id], standing=[Standing.FLAGGED]) == []
    assert load_verdicts(database, run_ids=[]) == []


def test_an_effect_of_the_second_session_that_is_not_finite_is_refused(database: Database) -> None:
    with pytest.raises(StoreInvalid, match="second: effect_low is inf"):
        save_verdicts(database, [a_verdict(second=a_second_session(effect_low=float("inf")))])


def test_saving_no_verdict_makes_no_store(database: Database) -> None:
    save_verdicts(database, [])

    assert not database.exists()


@pytest.mark.parametrize("field", ["effect", "p_value", "smallest_seen"])
def test_a_number_that_is_not_finite_is_refused(database: Database, field: str) -> None:
    changes: dict[str, Any] = {field: float("nan")}

    with pytest.raises(StoreInvalid, match=f"{field} is nan"):
        save_verdicts(database, [a_verdict(**changes)])


def test_a_verdict_without_a_time_zone_is_refused(database: Database) -> None:
    with pytest.raises(StoreInvalid, match=r"judged_at .* no time zone"):
        save_verdicts(database, [a_verdict(judged_at=EPOCH.replace(tzinfo=None))])


def test_verdicts_that_rest_on_the_same_runs_share_one_list(database: Database) -> None:
    drift = Drift(since="v1", effect=0.1, low=0.0, high=0.2, apart=False, run_ids=("x", "y"))
    save_verdicts(database, [a_verdict(), a_verdict(a_run(11), drift=drift)])
    save_verdicts(database, [a_verdict(a_run(12))])

    with database.reading() as connection:
        lists = connection.execute("select run_ids from run_lists order by len(run_ids[1])").fetchall()
    assert lists == [(["x", "y"],), (list(a_verdict().baseline_run_ids),)]


def test_a_verdict_whose_runs_are_not_stored_is_told_apart_from_one_without_any(database: Database) -> None:
    save_verdicts(database, [a_verdict()])
    with database.writing() as connection:
        connection.execute("delete from run_lists")

    with pytest.raises(StoreInvalid, match=r"rests on a list of runs, [0-9a-f]{16}, that is not stored"):
        load_verdicts(database)
