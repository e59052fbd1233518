"""Beside a paired run the passes decide, one by one; without it the history does."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_failure, a_header, a_measurement, a_point, a_run, a_sha, a_window
from judgements import JUDGED_AT, POLICY, a_candidate, a_history, some_evidence

from alerts.compare import compare
from alerts.judge import RunJudgement, judge_evidence
from alerts.judging import judge_run
from alerts.message import compose
from alerts.pairs import Pairs, pairs_of
from alerts.policy import Policy
from alerts.terminal import render_text
from store.database import Database
from store.folding import fold_windows
from store.pairing import fold_pairs, pair_passes
from store.records import (
    BaselineKind,
    Case,
    Outcome,
    PairedRole,
    Reason,
    RecordInvalid,
    SeriesPoint,
    Stage,
    Standing,
    Tier,
    Verdict,
)
from store.runs import save_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.records import Measurement

BASELINE_ID = a_header(5, number=7).run_id
CANDIDATE_ID = a_header(21, number=7).run_id
CANDIDATE = {"paired_with": BASELINE_ID, "paired_role": PairedRole.CANDIDATE, "merge_base": a_sha(20)}
BASELINE = {"paired_with": CANDIDATE_ID, "paired_role": PairedRole.BASELINE}


def taking(medians: Sequence[float], benchmark: str = "softmax", **changes: Any) -> Measurement:
    """A measurement with these window medians, in milliseconds, one a pass."""
    windows = tuple(a_window(i, median_ms=m, seed=i) for i, m in enumerate(medians))
    return a_measurement(benchmark, windows=windows, **changes)


def a_pair_of(
    baseline: Measurement, candidate: Measurement, **changes: Any
) -> tuple[SeriesPoint, SeriesPoint]:
    """The points of one case in the two runs of a pair."""
    return (
        point_of(baseline, 5, BASELINE),
        point_of(candidate, 21, CANDIDATE | changes),
    )


def point_of(measurement: Measurement, commit: int, header: dict[str, Any]) -> SeriesPoint:
    names = ("benchmark", "parameters", "windows", "interval", "tier", "tags", "resolution_ms")
    known = {name: getattr(measurement, name) for name in names[2:]}
    case = {"benchmark": measurement.case.benchmark, "parameters": dict(measurement.case.parameters)}
    return a_point(commit, number=7, header=header, **case, **known)


def drifting(scale: float = 1.0, *, drift: float = 0.004, seed: int = 1) -> list[float]:
    """Eight passes of 0.25 ms on a machine that becomes slower by ``drift`` from pass to pass."""
    rng = random.Random(seed)
    return [0.25 * scale * math.exp(drift * i + rng.gauss(0, 0.0005)) for i in range(8)]


def judged(pair: tuple[SeriesPoint, SeriesPoint], **changes: Any) -> RunJudgement:
    baseline, candidate = pair
    evidence = some_evidence([candidate], **{"paired": (baseline,)} | changes)
    return judge_evidence(evidence, POLICY, judged_at=JUDGED_AT)


def only_verdict(judgement: RunJudgement) -> Verdict:
    (verdict,) = judgement.verdicts
    return verdict


def test_passes_are_matched_by_their_index_and_those_of_one_side_left_out() -> None:
    assert pair_passes({0: 1.0, 1: 2.0, 3: 4.0}, {1: 2.5, 2: 9.0, 3: 4.4}) == [(2.0, 2.5), (4.0, 4.4)]


def test_ratios_fold_as_windows_do() -> None:
    pairs = [(2.0, 2.0 * ratio) for ratio in (1.01, 1.02, 1.03, 1.04, 1.05, 1.06)]

    assert fold_pairs(pairs, quantum_ms=0.0) == fold_windows(
        [[candidate / baseline] for baseline, candidate in pairs], resolution=0.0
    )


def test_the_timers_quantum_widens_the_ratio_by_half_of_it_on_either_side() -> None:
    pairs = [(2.0, 4.0)] * 6

    bounds = fold_pairs(pairs, quantum_ms=0.1).bounds
    assert bounds == pytest.approx((2 - 0.05 / 2 - 0.05 / 4, 2, 2 + 0.05 / 2 + 0.05 / 4))


def test_a_pass_without_a_number_on_one_side_is_no_pair() -> None:
    whole = taking(drifting())
    spoilt = (*whole.windows[:3], replace(whole.windows[3], invalid="records dropped"), *whole.windows[4:])
    baseline, candidate = a_pair_of(whole, replace(whole, windows=spoilt))

    pairs = pairs_of(baseline, candidate).pairs
    assert len(pairs) == 7
    assert all(before == after for before, after in pairs)


def test_a_change_behind_a_drift_is_seen_by_the_pairs_alone() -> None:
    pair = a_pair_of(taking(drifting(seed=1)), taking(drifting(1.01, seed=2)))
    assert pair[0].interval.bounds is not None
    assert pair[1].interval.bounds is not None
    assert pair[1].interval.bounds[0] < pair[0].interval.bounds[2], "the intervals overlap"

    verdict = only_verdict(judged(pair))

    assert (verdict.outcome, verdict.reason) == (Outcome.REGRESSED, Reason.PAIRS_DIFFER)
    assert verdict.standing is Standing.FLAGGED
    assert verdict.effect == pytest.approx(0.01, abs=0.001)
    assert verdict.effect_low is not None
    assert verdict.effect_high is not None
    assert 0 < verdict.effect_low < 0.01 < verdict.effect_high < 0.02
    assert verdict.p_value is not None
    assert verdict.p_value < 0.001
    assert verdict.baseline_kind is BaselineKind.PAIRED
    assert verdict.baseline_run_ids == (BASELINE_ID,)
    assert "slower than the paired run of 000000000 in the same session (95 %" in verdict.message
    assert "provisional" not in verdict.message


def test_faster_passes_are_an_improvement() -> None:
    verdict = only_verdict(judged(a_pair_of(taking(drifting(seed=1)), taking(drifting(0.99, seed=2)))))

    assert verdict.outcome is Outcome.IMPROVED


def test_the_same_code_beside_itself_is_unchanged_and_says_what_would_have_been_seen() -> None:
    verdict = only_verdict(judged(a_pair_of(taking(drifting(seed=1)), taking(drifting(seed=2)))))

    assert (verdict.outcome, verdict.reason) == (Outcome.UNCHANGED, Reason.PAIRS_AGREE)
    assert verdict.standing is Standing.NONE
    assert verdict.smallest_seen is not None
    assert 0.0005 < verdict.smallest_seen < 0.004
    assert "would have been flagged" in verdict.message


@pytest.mark.parametrize("seed", range(2, 22))
def test_a_slowdown_a_little_above_the_smallest_seen_is_seen(seed: int) -> None:
    """The promise holds for a pair whose own difference is taken out."""
    before, after = drifting(seed=1), drifting(seed=seed)
    center = fold_pairs(list(zip(before, after, strict=True)), quantum_ms=0.0).center
    assert center is not None
    even = [median / center for median in after]
    smallest = Pairs(pairs=tuple(zip(before, even, strict=True)), quantum_ms=0.0).smallest_seen(
        None, p_limit=POLICY.paired_p
    )
    assert smallest is not None

    slower = [median * (1 + 1.5 * smallest) for median in even]
    pairs = Pairs(pairs=tuple(zip(before, slower, strict=True)), quantum_ms=0.0)
    assert pairs.outcome(Outcome.UNCHANGED, p_limit=POLICY.paired_p) is Outcome.REGRESSED


def test_intervals_that_are_apart_do_not_flag_what_the_pairs_do_not_show() -> None:
    """One pass that lies far out on one side can do that."""
    pairs = Pairs(pairs=((1.0, 1.01), (1.0, 0.999)) * 4, quantum_ms=0.0)

    assert pairs.outcome(Outcome.REGRESSED, p_limit=0.001) is Outcome.UNCHANGED


def test_pairs_that_are_not_certain_need_intervals_that_are_apart_in_the_same_direction() -> None:
    ratios = (1.001, 1.012, 1.002, 1.015, 1.001, 1.02, 1.003, 1.018)
    pairs = Pairs(pairs=tuple((1.0, ratio) for ratio in ratios), quantum_ms=0.0)
    assert pairs.effect.low > 0
    assert pairs.effect.p_value is not None
    assert 0.001 < pairs.effect.p_value < 0.05

    assert pairs.outcome(Outcome.UNCHANGED, p_limit=0.001) is Outcome.UNCHANGED
    assert pairs.outcome(Outcome.IMPROVED, p_limit=0.001) is Outcome.UNCHANGED
    assert pairs.outcome(Outcome.REGRESSED, p_limit=0.001) is Outcome.REGRESSED
    assert pairs.outcome(Outcome.UNCHANGED, p_limit=0.05) is Outcome.REGRESSED


def test_pairs_without_any_spread_have_no_p_value_and_go_by_the_intervals() -> None:
    """A timer that reads the same every time proves less than it seems to."""
    pairs = Pairs(pairs=((1.0, 1.05),) * 8, quantum_ms=0.001)

    assert pairs.effect.p_value is None
    assert pairs.outcome(Outcome.UNCHANGED, p_limit=0.001) is Outcome.UNCHANGED
    assert pairs.outcome(Outcome.REGRESSED, p_limit=0.001) is Outcome.REGRESSED
    assert pairs.smallest_seen(None, p_limit=0.001) is None
    assert pairs.smallest_seen(0.03, p_limit=0.001) == 0.03


def test_a_difference_within_the_timers_quantum_is_none() -> None:
    pairs = Pairs(pairs=((1.0, 1.01),) * 8, quantum_ms=0.02)

    assert pairs.outcome(Outcome.REGRESSED, p_limit=0.001) is Outcome.UNCHANGED


def test_two_pairs_give_no_effect() -> None:
    with pytest.raises(ValueError, match="2 pairs give no interval"):
        _ = Pairs(pairs=((1.0, 1.0),) * 2, quantum_ms=0.0).effect


def test_the_limit_of_the_p_value_is_a_probability() -> None:
    with pytest.raises(RecordInvalid, match="paired_p"):
        Policy(paired_p=0.0)


def test_a_pair_needs_no_history() -> None:
    """A shallow clone knows no merge-base; both commits were measured all the same."""
    pair = a_pair_of(
        taking(drifting()), taking(drifting(1.02, seed=2)), merge_base=None, history_note="shallow"
    )

    verdict = only_verdict(judged(pair, history=(), line={}))
    assert (verdict.outcome, verdict.baseline_kind) == (Outcome.REGRESSED, BaselineKind.PAIRED)


def test_the_pair_comes_before_the_pool() -> None:
    """The pool says 0.25 ms, the machine of today says 0.30 ms, and so does the pair."""
    pair = a_pair_of(taking(drifting(1.2, seed=1)), taking(drifting(1.2, seed=2)))

    verdict = only_verdict(judged(pair))
    assert (verdict.outcome, verdict.baseline_kind) == (Outcome.UNCHANGED, BaselineKind.PAIRED)


def test_what_the_pair_lacks_is_judged_by_the_pool() -> None:
    _, candidate = a_pair_of(taking(drifting()), taking(drifting(drift=0)))
    other, _ = a_pair_of(taking(drifting(), "matmul"), taking(drifting()))

    verdict = only_verdict(judged((other, candidate)))
    assert (verdict.outcome, verdict.baseline_kind) == (Outcome.UNCHANGED, BaselineKind.POOL)


def test_the_baselines_side_of_a_pair_is_judged_by_its_history() -> None:
    baseline, candidate = a_pair_of(taking(drifting(drift=0)), taking(drifting(1.05)))
    as_judged = replace(baseline, header=replace(baseline.header, merge_base=a_sha(20)))

    verdict = only_verdict(judge_evidence(some_evidence([as_judged]), POLICY, judged_at=JUDGED_AT))
    assert verdict.baseline_kind is BaselineKind.POOL
    assert candidate.header.paired_role is PairedRole.CANDIDATE


def of_another_case(baseline: SeriesPoint) -> SeriesPoint:
    return replace(baseline, series=replace(baseline.series, case=Case.of("matmul", {})))


@pytest.mark.parametrize(
    ("change", "failures", "reason", "words"),
    [
        (of_another_case, (), Reason.NEW_BENCHMARK, "does not have it: it is new"),
        (
            of_another_case,
            (a_failure("softmax", case=Case.of("softmax", {"rows": 1024}), stage=Stage.SETUP),),
            Reason.NO_BASELINE,
            "it failed on the baseline's side of the pair, in setup with ValueError",
        ),
        (
            of_another_case,
            (a_failure(case=None, stage=Stage.IMPORT, kind="ImportError"),),
            Reason.NO_BASELINE,
            "in import with ImportError",
        ),
        (
            lambda point: replace(point, header=replace(point.header, run_id=a_header(3).run_id)),
            (),
            Reason.NO_BASELINE,
            f"run {BASELINE_ID[:8]}, which it was paired with, is not in this store",
        ),
        (lambda point: replace(point, tier=Tier.C), (), Reason.BASELINE_TIER_TOO_LOW, "none of tier B"),
        (
            lambda point: replace(point, window_passes=tuple(range(100, 108))),
            (),
            Reason.TOO_FEW_WINDOWS,
            "0 pairs of passes with a number on both sides",
        ),
    ],
)
def test_without_a_partner_and_a_history_the_reason_is_the_partners(
    change: Any, failures: Any, reason: Reason, words: str
) -> None:
    baseline, candidate = a_pair_of(taking(drifting()), taking(drifting(seed=2)))

    verdict = only_verdict(
        judged((change(baseline), candidate), history=(), line={}, paired_failures=failures)
    )
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, reason)
    assert words in verdict.message


def test_what_only_the_baseline_has_is_missing() -> None:
    baseline, candidate = a_pair_of(taking(drifting()), taking(drifting(seed=2)))
    gone = of_another_case(baseline)
    sentinel = replace(
        of_another_case(baseline),
        series=replace(baseline.series, case=Case.of("sentinel_copy", {})),
        tags=("sentinel",),
    )

    judgement = judge_evidence(
        some_evidence([candidate], paired=(baseline, gone, sentinel)), POLICY, judged_at=JUDGED_AT
    )
    assert judgement.missing == (Case.of("matmul", {}),)


@pytest.mark.parametrize(("scale", "reason"), [(1.004, Reason.PAIRS_DIFFER), (1.02, Reason.MACHINE_MOVED)])
def test_a_sentinel_takes_the_verdicts_of_a_pair_back_from_one_per_cent_on(
    scale: float, reason: Reason
) -> None:
    pair = a_pair_of(taking(drifting(seed=1)), taking(drifting(1.02, seed=2)))
    watched = a_pair_of(
        taking(drifting(seed=3), "sentinel_copy", tags=("sentinel",)),
        taking(drifting(scale, seed=4), "sentinel_copy", tags=("sentinel",)),
    )

    judgement = judge_evidence(
        some_evidence([pair[1], watched[1]], paired=(pair[0], watched[0])), POLICY, judged_at=JUDGED_AT
    )
    verdict = next(v for v in judgement.verdicts if v.series.case.benchmark == "softmax")
    assert verdict.reason is reason


def test_a_message_names_the_pair_and_how_to_repeat_it() -> None:
    message = compose(judged(a_pair_of(taking(drifting(seed=1)), taking(drifting(1.02, seed=2)))))
    (row,) = message.changed

    assert "against the paired run of 000000000 in the same session on NVIDIA H200" in message.subject
    assert row.compared == "8 windows, paired"
    assert message.command == f"collect --commit {a_sha(21)} --against {a_sha(5)} --only softmax"
    assert "Provisional" not in " ".join(message.caveats)
    assert "8 windows, paired" in render_text(message)


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> Database:
    return Database(tmp_path / "runs.duckdb")


def measure_pair(database: Database, scale: float, *, number: int, partner_too: bool = True) -> str:
    """A paired session on commits 5 and 21; the id of the candidate's run."""
    ids = [a_header(commit, number=number).run_id for commit in (5, 21)]
    roles = [("baseline", ids[1]), ("candidate", ids[0])]
    medians = [drifting(seed=10 * number + 1), drifting(scale, seed=10 * number + 2)]
    for commit, (role, other), values in zip((5, 21), roles, medians, strict=True):
        if role == "baseline" and not partner_too:
            continue
        header = {"paired_with": other, "paired_role": PairedRole(role), "merge_base": a_sha(20)}
        save_run(database, a_run(commit, number=number, measurements=(taking(values),), header=header))
    return ids[1]


def test_a_stored_pair_is_judged_and_a_second_session_confirms_it(database: Database) -> None:
    first = only_verdict(judge_run(database, measure_pair(database, 1.02, number=1), judged_at=JUDGED_AT))
    assert (first.outcome, first.standing) == (Outcome.REGRESSED, Standing.FLAGGED)

    second = judge_run(database, measure_pair(database, 1.02, number=2), judged_at=JUDGED_AT)
    assert only_verdict(second).standing is Standing.CONFIRMED
    assert second.has_confirmed_regression


def test_a_second_session_that_shows_less_than_one_per_cent_confirms_nothing(database: Database) -> None:
    measure = [measure_pair(database, 1.006, number=number) for number in (1, 2)]
    verdicts = [only_verdict(judge_run(database, run_id, judged_at=JUDGED_AT)) for run_id in measure]

    assert [verdict.outcome for verdict in verdicts] == [Outcome.REGRESSED] * 2
    assert [verdict.standing for verdict in verdicts] == [Standing.FLAGGED] * 2


def test_half_a_pair_says_where_the_other_half_is_missing(database: Database) -> None:
    run_id = measure_pair(database, 1.02, number=1, partner_too=False)

    verdict = only_verdict(judge_run(database, run_id, judged_at=JUDGED_AT))
    assert verdict.reason is Reason.NO_BASELINE
    assert "import the bundle of that run too" in verdict.message


def test_comparing_two_commits_goes_by_their_pair_where_there_is_one(
    database: Database, tmp_path: Path
) -> None:
    measure_pair(database, 1.01, number=1)

    verdict = only_verdict(compare(database, a_sha(5), a_sha(21), checkout=tmp_path))
    assert (verdict.outcome, verdict.baseline_kind) == (Outcome.REGRESSED, BaselineKind.PAIRED)


def test_a_plain_run_beside_a_history_is_judged_as_before() -> None:
    verdict = only_verdict(
        judge_evidence(some_evidence([a_candidate()], history=a_history()), POLICY, judged_at=JUDGED_AT)
    )
    assert verdict.baseline_kind is BaselineKind.POOL
