"""Runs that were measured to confirm another, judged where they are stored."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_header, a_measurement, a_run, a_sha
from judgements import JUDGED_AT

from alerts.compare import compare
from alerts.jsonform import judgement_json
from alerts.judging import judge_run
from alerts.markdown import render_markdown
from alerts.message import compose
from alerts.naming import newest_run
from alerts.terminal import render_text
from store.database import Database
from store.records import Outcome, PairedRole, Reason, Standing, Verdict
from store.runs import save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Measurement

SLOW = 0.26


def measurements(seed: int, **medians: float) -> tuple[Measurement, ...]:
    return tuple(a_measurement(name, median_ms=median, seed=seed) for name, median in medians.items())


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run on each of eight commits, with a sentinel; copied, never changed."""
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, 9):
        save_run(Database(path), a_run(commit, measurements=with_sentinel(100 * commit, softmax=0.25)))
    return path


@pytest.fixture
def database(history: Path, tmp_path: Path) -> Database:
    return Database(shutil.copy(history, tmp_path / "copy.duckdb"))


def with_sentinel(seed: int, *, sentinel: float = 0.5, **medians: float) -> tuple[Measurement, ...]:
    watched = a_measurement("sentinel_copy", median_ms=sentinel, seed=seed, tags=("sentinel",))
    return (*measurements(seed, **medians), watched)


def measure(database: Database, number: int, *, sentinel: float = 0.5, **changes: Any) -> str:
    """A session on commit 9, whose baseline are the eight before it."""
    medians = changes.pop("medians", {"softmax": SLOW})
    run = a_run(
        9,
        number=number,
        measurements=with_sentinel(900 + number, sentinel=sentinel, **medians),
        header={"merge_base": a_sha(8)} | changes,
    )
    save_run(database, run)
    return run.header.run_id


def softmax(database: Database, run_id: str) -> Verdict:
    verdicts = load_verdicts(database, run_ids=[run_id])
    return next(v for v in verdicts if v.series.case.benchmark == "softmax")


def test_both_sessions_are_confirmed_and_name_one_another(database: Database) -> None:
    first = measure(database, 0)
    judge_run(database, first)
    again = measure(database, 1, confirms_run_id=first)
    judge_run(database, again)

    one, two = softmax(database, first), softmax(database, again)
    assert [v.standing for v in (one, two)] == [Standing.CONFIRMED] * 2
    assert one.second is not None
    assert two.second is not None
    assert (one.second.run_id, one.second.effect) == (again, two.effect)
    assert (two.second.run_id, two.second.effect) == (first, one.effect)


def test_both_stand_against_the_same_baseline_although_a_run_arrived_between_them(
    database: Database,
) -> None:
    first = measure(database, 0)
    judge_run(database, first)
    late = a_run(8, number=5, measurements=with_sentinel(850, softmax=0.2502))
    save_run(database, late)

    again = measure(database, 1, confirms_run_id=first)
    judge_run(database, again)

    one, two = softmax(database, first), softmax(database, again)
    assert one.baseline_run_ids == two.baseline_run_ids
    assert late.header.run_id in two.baseline_run_ids
    assert {first, again}.isdisjoint(two.baseline_run_ids)


def test_a_base_branch_that_moved_meanwhile_does_not_move_the_baseline(database: Database) -> None:
    first = measure(database, 0, merge_base=a_sha(7))
    again = measure(database, 1, merge_base=a_sha(8), confirms_run_id=first)
    judge_run(database, again)

    assert softmax(database, again).baseline_run_ids == softmax(database, first).baseline_run_ids
    assert a_header(8).run_id not in softmax(database, again).baseline_run_ids


@pytest.mark.parametrize("order", [("first", "again"), ("again",)])
def test_the_order_of_judging_does_not_matter(database: Database, order: tuple[str, ...]) -> None:
    ids = {"first": measure(database, 0)}
    ids["again"] = measure(database, 1, medians={"softmax": 0.25}, confirms_run_id=ids["first"])

    for name in order:
        judge_run(database, ids[name], judged_at=JUDGED_AT)

    assert softmax(database, ids["first"]).standing is Standing.WITHDRAWN
    assert softmax(database, ids["again"]).outcome is Outcome.UNCHANGED


def test_a_machine_that_moved_in_the_second_session_confirms_nothing(database: Database) -> None:
    first = measure(database, 0)
    again = measure(database, 1, sentinel=0.52, confirms_run_id=first)

    judgement = judge_run(database, first)

    verdict = softmax(database, first)
    assert softmax(database, again).reason is Reason.MACHINE_MOVED
    assert verdict.standing is Standing.FLAGGED
    assert verdict.second is not None
    assert verdict.second.reason is Reason.MACHINE_MOVED
    assert not judgement.has_confirmed_regression
    assert "no verdict (machine-moved) in run" in render_text(compose(judgement))


def test_what_was_not_measured_again_is_not_missing_in_the_second_session(database: Database) -> None:
    save_run(database, a_run(8, number=3, measurements=measurements(860, softmax=0.25, matmul=1.5)))
    first = measure(database, 0, medians={"softmax": SLOW, "matmul": 1.5})

    judgement = judge_run(database, measure(database, 1, confirms_run_id=first))

    assert judgement.missing == ()


def test_the_newest_run_is_the_one_that_was_confirmed(database: Database) -> None:
    first = measure(database, 0)
    measure(database, 1, confirms_run_id=first)

    assert newest_run(database) == first


def test_the_newest_run_of_a_pair_is_its_candidate(database: Database) -> None:
    ids = [a_header(commit, number=6).run_id for commit in (8, 10)]
    same_start = a_header(10, number=6).started_at
    for commit, role, other in ((8, PairedRole.BASELINE, ids[1]), (10, PairedRole.CANDIDATE, ids[0])):
        header = {"paired_with": other, "paired_role": role, "started_at": same_start}
        save_run(database, a_run(commit, number=6, header=header))

    assert newest_run(database) == ids[1]


def test_a_store_with_nothing_else_gives_the_run_that_confirms(tmp_path: Path) -> None:
    database = Database(tmp_path / "alone.duckdb")
    again = measure(database, 1, confirms_run_id=a_header().run_id)

    assert newest_run(database) == again


def test_comparing_judges_the_whole_run_and_counts_the_second_session(
    database: Database, tmp_path: Path
) -> None:
    for number in range(6):
        save_run(
            database, a_run(8, number=10 + number, measurements=measurements(810 + number, softmax=0.25))
        )
    first = measure(database, 0, medians={"softmax": SLOW, "matmul": 1.5})
    measure(database, 1, confirms_run_id=first)

    judgement = compare(database, a_sha(8), a_sha(9), checkout=tmp_path)

    assert judgement.header.run_id == first
    found = {v.series.case.benchmark: v.standing for v in judgement.verdicts}
    assert found["softmax"] is Standing.CONFIRMED
    assert "matmul" in found


def test_json_text_and_comment_show_both_sessions(database: Database) -> None:
    first = measure(database, 0)
    again = measure(database, 1, confirms_run_id=first)

    judgement = judge_run(database, first)

    (told,) = [v for v in json.loads(judgement_json(judgement))["verdicts"] if v["name"] == "softmax"]
    assert told["second"]["run_id"] == again
    assert told["second"]["outcome"] == "REGRESSED"
    assert told["second"]["effect"] == pytest.approx(0.04, abs=0.005)
    for text in (render_text(compose(judgement)), render_markdown(compose(judgement))):
        assert f"in run {first[:8]}" in text
        assert f"in run {again[:8]}: confirmed" in text


def test_a_run_that_met_no_second_session_has_none_in_its_json(database: Database) -> None:
    judgement = judge_run(database, measure(database, 0))

    assert [v["second"] for v in json.loads(judgement_json(judgement))["verdicts"]] == [None, None]
    assert "Second session" not in render_text(compose(judgement))


def test_uncommitted_changes_are_never_confirmed(database: Database) -> None:
    first = measure(database, 0, dirty=True)
    again = measure(database, 1, dirty=True, confirms_run_id=first)

    judge_run(database, first)
    judge_run(database, again)

    assert [softmax(database, run_id).standing for run_id in (first, again)] == [Standing.FLAGGED] * 2
