"""Real paired runs of H200 cards: the same code, planted work, a story of two commits, implementations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from alerts.judging import judge_run
from store.bundle import read_bundle
from store.database import Database
from store.records import BaselineKind, Outcome, PairedRole, Quantity, Standing
from store.runs import save_run

if TYPE_CHECKING:
    from alerts.judge import RunJudgement
    from store.records import Verdict

FOLDER = Path(__file__).parent / "data" / "h200"


def judged(pattern: str, place: Path) -> list[RunJudgement]:
    """Save the runs of these files, then judge the candidates among them, oldest first."""
    database = Database(place / "runs.duckdb")
    runs = [read_bundle(path) for path in sorted(FOLDER.glob(pattern))]
    for run in runs:
        save_run(database, run)
    heads = [run.header.run_id for run in runs if run.header.paired_role is PairedRole.CANDIDATE]
    return [judge_run(database, run_id) for run_id in heads]


@pytest.fixture(name="more_work", scope="module")
def _more_work(tmp_path_factory: pytest.TempPathFactory) -> list[RunJudgement]:
    return judged("pairs/more-*", tmp_path_factory.mktemp("more"))


@pytest.fixture(name="story", scope="module")
def _story(tmp_path_factory: pytest.TempPathFactory) -> list[RunJudgement]:
    return judged("story/*", tmp_path_factory.mktemp("story"))


def outcomes(judgement: RunJudgement) -> dict[str, Verdict]:
    return {verdict.series.case.benchmark: verdict for verdict in judgement.verdicts}


@pytest.mark.parametrize(("pattern", "verdicts"), [("pairs/built-in-*", 29), ("pairs/same-*", 21)])
def test_paired_runs_of_the_same_code_flag_nothing(pattern: str, verdicts: int, tmp_path: Path) -> None:
    found = [verdict for judgement in judged(pattern, tmp_path) for verdict in judgement.verdicts]

    assert len(found) == verdicts
    assert {verdict.baseline_kind for verdict in found} == {BaselineKind.PAIRED}
    assert {verdict.outcome for verdict in found} == {Outcome.UNCHANGED}


def test_one_percent_more_work_is_seen_in_11_of_12_pairs_and_never_the_wrong_way(
    more_work: list[RunJudgement],
) -> None:
    pairs = [outcomes(judgement) for judgement in more_work]
    seen = {
        call: sum(pair[f"planted_{call}"].outcome is Outcome.REGRESSED for pair in pairs)
        for call in ("attention", "matmul", "softmax", "mlp")
    }
    effects = [v.effect or 0.0 for pair in pairs for call, v in pair.items() if call.startswith("planted_")]

    assert seen == {"attention": 3, "matmul": 3, "softmax": 3, "mlp": 2}
    assert min(effects) == pytest.approx(0.0079, abs=0.0001)
    assert max(effects) == pytest.approx(0.0115, abs=0.0001)


def test_the_machines_own_calls_hold_still_beside_planted_work(more_work: list[RunJudgement]) -> None:
    sentinels = [
        item.verdict.outcome for judgement in more_work for item in judgement.judged if item.is_sentinel
    ]

    assert sentinels == [Outcome.UNCHANGED] * 9


def test_a_slower_and_a_faster_call_are_flagged_and_the_second_session_confirms_both(
    story: list[RunJudgement],
) -> None:
    first, second = map(outcomes, story)

    assert {call: v.outcome for call, v in first.items() if v.outcome is not Outcome.UNCHANGED} == {
        "matmul": Outcome.REGRESSED,
        "softmax": Outcome.IMPROVED,
        "layer_norm": Outcome.INCONCLUSIVE,
    }
    assert first["matmul"].effect == pytest.approx(0.046, abs=0.0005)
    assert first["softmax"].effect == pytest.approx(-0.636, abs=0.0005)
    assert {first[call].standing for call in ("matmul", "softmax")} == {Standing.FLAGGED}
    assert {second[call].standing for call in ("matmul", "softmax")} == {Standing.CONFIRMED}


def test_what_failed_and_what_is_new_in_the_story_is_said(story: list[RunJudgement]) -> None:
    for judgement in story:
        assert [f.case.benchmark for f in judgement.failures if f.case is not None] == ["top_k"]
        assert outcomes(judgement)["layer_norm"].reason == "new-benchmark"
        assert judgement.has_confirmed_regression is (judgement.verdicts[2].standing is Standing.CONFIRMED)


def test_implementations_give_a_ratio_and_a_missing_one_is_a_failure() -> None:
    run = read_bundle(FOLDER / "implementations.kwrun")
    (ratio,) = [m for m in run.measurements if m.quantity is Quantity.RATIO]

    assert ratio.case.label == "softmax3[implementation=ours / torch, rows=4096]"
    assert ratio.interval.bounds == pytest.approx((2.1348, 2.1412, 2.1515), abs=0.0001)
    (failure,) = run.failures
    assert failure.case is not None
    assert failure.case.label == "softmax3[implementation=absent, rows=4096]"
    assert failure.kind == "ModuleNotFoundError"
