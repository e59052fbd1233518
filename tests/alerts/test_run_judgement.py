"""The verdicts on a whole run: sentinels, q-values, what is missing, the order."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from builders import a_failure, a_header, a_point, a_sha
from judgements import JUDGED_AT, POLICY, a_candidate, a_history, a_judgement, some_evidence

from alerts.judge import judge_evidence
from alerts.policy import Policy
from store.records import Case, Outcome, Reason, RecordInvalid, SeriesPoint, Standing, Tier


def a_sentinel(median_ms: float = 0.25, *, between: float = 0.001) -> SeriesPoint:
    """The candidate's reference call, which ought to take what it always took."""
    return a_candidate(benchmark="sentinel_copy", tags=("sentinel",), median_ms=median_ms, between=between)


def test_the_judgement_is_the_same_in_whatever_order_the_points_come() -> None:
    evidence = some_evidence([a_candidate(benchmark="softmax"), a_candidate(1.05, benchmark="matmul")])
    rng = random.Random(9)
    shuffled = replace(
        evidence,
        candidates=tuple(reversed(evidence.candidates)),
        history=tuple(rng.sample(evidence.history, len(evidence.history))),
    )

    assert judge_evidence(shuffled, POLICY, judged_at=JUDGED_AT) == judge_evidence(
        evidence, POLICY, judged_at=JUDGED_AT
    )


def test_a_sentinel_that_moved_takes_every_verdict_back_and_keeps_the_numbers() -> None:
    judgement = a_judgement(a_candidate(1.05), a_sentinel(0.26))

    assert [v.outcome for v in judgement.verdicts] == [Outcome.INCONCLUSIVE] * 2
    assert [v.reason for v in judgement.verdicts] == [Reason.MACHINE_MOVED] * 2
    assert [v.standing for v in judgement.verdicts] == [Standing.NONE] * 2
    softmax = next(v for v in judgement.verdicts if v.series.case.benchmark == "softmax")
    assert softmax.effect == pytest.approx(0.05, abs=0.005)
    assert "sentinel_copy[rows=1024] +4." in softmax.message
    assert not judgement.is_conclusive


def test_a_sentinel_that_stayed_leaves_the_verdicts() -> None:
    judgement = a_judgement(a_candidate(1.05), a_sentinel())

    assert {v.series.case.benchmark: v.outcome for v in judgement.verdicts} == {
        "softmax": Outcome.REGRESSED,
        "sentinel_copy": Outcome.UNCHANGED,
    }


@pytest.mark.parametrize(("moved", "outcome"), [(0.2515, Outcome.REGRESSED), (0.26, Outcome.INCONCLUSIVE)])
def test_against_a_single_run_a_sentinel_has_to_move_by_a_per_cent(moved: float, outcome: Outcome) -> None:
    """Two sessions may differ by a little; how much is not known from one of them."""
    judgement = a_judgement(
        a_candidate(1.05),
        a_sentinel(moved, between=1e-5),
        history=(a_point(20), a_point(20, benchmark="sentinel_copy", tags=("sentinel",), between=1e-5)),
    )

    softmax = next(v for v in judgement.verdicts if v.series.case.benchmark == "softmax")
    assert softmax.outcome is outcome


def test_a_verdict_with_its_own_doubt_keeps_it_when_the_machine_moved() -> None:
    judgement = a_judgement(a_candidate(tier=Tier.C, tier_evidence=("clock",)), a_sentinel(0.26))

    softmax = next(v for v in judgement.verdicts if v.series.case.benchmark == "softmax")
    assert softmax.reason is Reason.TIER_TOO_LOW


def test_what_a_moved_machine_took_back_is_no_test_and_has_no_q_value() -> None:
    judgement = a_judgement(a_candidate(1.05), a_candidate(1.05, benchmark="sentinel", tags=("sentinel",)))

    assert [v.reason for v in judgement.verdicts] == [Reason.MACHINE_MOVED] * 2
    assert [v.q_value for v in judgement.verdicts] == [None, None]
    assert all(v.p_value is not None for v in judgement.verdicts)


def test_q_values_are_over_the_suite_without_sentinels() -> None:
    judgement = a_judgement(a_candidate(1.001), a_candidate(1.05, benchmark="matmul"), a_sentinel())

    q = {v.series.case.benchmark: (v.p_value, v.q_value) for v in judgement.verdicts}
    assert q["sentinel_copy"][1] is None
    assert q["matmul"][0] is not None
    assert q["matmul"][1] == pytest.approx(2 * q["matmul"][0])
    assert q["softmax"][1] == pytest.approx(q["softmax"][0])


def test_what_the_last_runs_measured_and_this_run_did_not_is_missing() -> None:
    history = (
        a_point(20),
        a_point(20, benchmark="gone"),
        a_point(20, benchmark="broken", parameters={}),
        a_point(20, benchmark="watch", tags=("sentinel",)),
        a_point(19, benchmark="gone_earlier"),
        *(a_point(commit) for commit in range(18, 1, -1)),
        a_point(19, number=1),  # which makes twenty runs
        a_point(1, benchmark="given_up_long_ago"),
    )

    judgement = a_judgement(a_candidate(), history=history, failures=(a_failure(),))

    gone, earlier = (Case.of(name, {"rows": 1024}) for name in ("gone", "gone_earlier"))
    assert judgement.missing == (gone, earlier)
    assert judgement.last_measured == {gone: a_sha(20)[:9], earlier: a_sha(19)[:9]}
    assert [failure.case for failure in judgement.failures] == [Case.of("broken", {})]


@pytest.mark.parametrize("header", [{"suites": ("other.py",)}, {"gpu_uuid": "GPU-other"}])
def test_another_suite_or_another_gpu_says_nothing_about_what_is_missing(header: dict[str, object]) -> None:
    history = (a_point(20, header=header), a_point(20, benchmark="elsewhere", header=header))

    assert a_judgement(a_candidate(), history=history).missing == ()


def test_the_baseline_that_most_points_share_is_named() -> None:
    judgement = a_judgement(
        a_candidate(), a_candidate(benchmark="matmul"), a_candidate(benchmark="young"),
        history=(*a_history(), *a_history(benchmark="matmul"), a_point(20, benchmark="young")),
    )  # fmt: skip

    assert judgement.baseline == "20 runs up to 000000000"


def test_the_baseline_of_sentinels_is_not_that_of_the_run() -> None:
    sentinels = [a_candidate(benchmark=name, tags=("sentinel",)) for name in ("first", "second")]
    alone = [a_point(20, benchmark=name, tags=("sentinel",)) for name in ("first", "second")]

    judgement = a_judgement(a_candidate(), *sentinels, history=(*a_history(), *alone))

    assert judgement.baseline == "20 runs up to 000000000"


def test_a_run_that_only_failed_has_no_verdict_and_is_not_conclusive() -> None:
    header = a_header(21, merge_base=a_sha(20))
    evidence = replace(
        some_evidence([a_candidate()]), header=header, candidates=(), history=(), failures=(a_failure(),)
    )

    judgement = judge_evidence(evidence, POLICY, judged_at=JUDGED_AT)

    assert judgement.verdicts == ()
    assert judgement.failures == (a_failure(),)
    assert judgement.baseline == "no baseline"
    assert not judgement.is_conclusive


def test_only_a_confirmed_regression_counts_as_one() -> None:
    assert not a_judgement(a_candidate(1.05)).has_confirmed_regression
    assert a_judgement(a_candidate(1.05), confirmed=True).has_confirmed_regression
    assert not a_judgement(a_candidate(0.95), confirmed=True).has_confirmed_regression


def test_a_pool_of_fewer_than_six_runs_is_no_policy() -> None:
    with pytest.raises(RecordInvalid, match="from 6 to 1000 runs"):
        Policy(pool_minimum=5)


def test_a_threshold_that_is_no_share_is_no_policy() -> None:
    with pytest.raises(RecordInvalid, match="confirm_effect is nan"):
        Policy(confirm_effect=float("nan"))


def test_a_shallow_clone_is_inconclusive_though_a_baseline_could_be_found() -> None:
    judgement = a_judgement(a_candidate(1.05, header={"history_note": "this clone is shallow"}))

    assert [v.reason for v in judgement.verdicts] == [Reason.HISTORY_MISSING]
