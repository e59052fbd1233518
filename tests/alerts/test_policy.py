"""Thresholds by benchmark, and what they do to a verdict."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest
from builders import a_point
from judgements import JUDGED_AT, POLICY, a_candidate, a_history, a_judgement, a_line, some_evidence

from alerts.baseline import form_baseline
from alerts.direction import smallest_drop, turned
from alerts.judge import judge_evidence, judge_point
from alerts.message import compose
from alerts.pairs import Pairs
from alerts.policy import Better, Override, Policies, Policy
from store.errors import ConfigurationInvalid
from store.records import Case, FoldStatus, Interval, Outcome, Quantity, Reason, Tier

if TYPE_CHECKING:
    from store.records import SeriesPoint, Verdict

SOFTMAX = Case.of("softmax", {"rows": 8})
ATTENTION = Case.of("attention/decode", {"batch": 1})


def test_a_single_policy_is_a_set_of_rules_for_every_case() -> None:
    assert POLICY.of(SOFTMAX) is POLICY
    assert POLICY.general is POLICY


def test_a_case_that_no_glob_means_has_the_general_policy() -> None:
    policies = Policies(
        general=Policy(pool_size=10), overrides=(Override(benchmarks=("attention/*",), paired_p=0.01),)
    )

    assert policies.of(SOFTMAX) == Policy(pool_size=10)
    assert policies.of(ATTENTION) == Policy(pool_size=10, paired_p=0.01)


def test_the_later_override_wins_value_by_value() -> None:
    policies = Policies(
        overrides=(
            Override(benchmarks=("*",), confirm_effect=0.02, pool_size=12),
            Override(benchmarks=("soft*",), confirm_effect=0.03),
        )
    )

    assert policies.of(SOFTMAX) == Policy(confirm_effect=0.03, pool_size=12)
    assert policies.deciding(SOFTMAX) == {"confirm_effect": 2, "pool_size": 1}


@pytest.mark.parametrize(
    ("glob", "meant"),
    [("softmax", True), ("soft*", True), ("softmax[[]rows=8]", True), ("Softmax", False), ("soft", False)],
)
def test_a_glob_is_over_the_name_or_the_label(glob: str, *, meant: bool) -> None:
    assert Override(benchmarks=("other", glob)).matches(SOFTMAX) is meant


def test_an_override_that_contradicts_the_general_policy_is_refused() -> None:
    with pytest.raises(ConfigurationInvalid, match="override 2: pool_minimum 9 is more"):
        Policies(
            general=Policy(pool_size=8),
            overrides=(
                Override(benchmarks=("a",), paired_p=0.1),
                Override(benchmarks=("b",), pool_minimum=9),
            ),
        )


def test_overrides_that_contradict_each_other_are_refused_where_they_meet() -> None:
    policies = Policies(
        overrides=(
            Override(benchmarks=("soft*",), pool_size=8),
            Override(benchmarks=("*max",), pool_minimum=9),
        )
    )

    assert policies.of(ATTENTION) == Policy()
    with pytest.raises(ConfigurationInvalid, match=r"that match softmax.rows=8. contradict each other"):
        policies.of(SOFTMAX)


def test_an_override_may_give_what_a_policy_has_and_nothing_else() -> None:
    policy, override = (
        get_type_hints(Policy, include_extras=True),
        get_type_hints(Override, include_extras=True),
    )
    for entry in fields(Override):
        if entry.name != "benchmarks":
            assert get_args(override[entry.name]) == (policy[entry.name], type(None)), entry.name


def test_the_note_names_what_is_not_the_default() -> None:
    assert Policy().note is None
    assert Policy(confirm_effect=0.02, minimum_tier=Tier.C).note == (
        "confirm_effect 0.02 instead of 0.01, minimum_tier C instead of B"
    )


def judged(candidate: SeriesPoint, policy: Policy, **history: Any) -> Verdict:
    baseline = form_baseline(a_history(**history), policy)
    assert baseline is not None
    return judge_point(candidate, baseline, policy, judged_at=JUDGED_AT)


def test_each_case_of_a_run_is_judged_by_its_own_policy() -> None:
    rules = Policies(overrides=(Override(benchmarks=("top_k",), flag_effect=0.05),))
    evidence = some_evidence([a_candidate(1.03, benchmark="softmax"), a_candidate(1.03, benchmark="top_k")])

    softmax, top_k = judge_evidence(evidence, rules, judged_at=JUDGED_AT).verdicts

    assert (softmax.outcome, top_k.outcome) == (Outcome.REGRESSED, Outcome.UNCHANGED)
    assert "judged by" not in softmax.message
    assert top_k.message.endswith("; judged by flag_effect 0.05 instead of 0")


def test_a_reader_is_told_how_much_was_judged_by_other_thresholds() -> None:
    rules = Policies(overrides=(Override(benchmarks=("top_k",), flag_effect=0.05),))
    points = [a_candidate(1.03, benchmark="softmax"), a_candidate(1.03, benchmark="top_k")]

    some = compose(judge_evidence(some_evidence(points), rules, judged_at=JUDGED_AT))
    every = compose(judge_evidence(some_evidence(points), Policy(pool_size=12), judged_at=JUDGED_AT))

    assert (
        "1 case judged by thresholds other than the defaults: flag_effect 0.05 instead of 0." in some.caveats
    )
    assert "Judged by thresholds other than the defaults: pool_size 12 instead of 20." in every.caveats
    assert not any("thresholds" in caveat for caveat in compose(a_judgement(*points)).caveats)


def test_a_change_below_what_is_flagged_is_unchanged_and_says_why() -> None:
    verdict = judged(a_candidate(1.03), Policy(flag_effect=0.04))

    assert (verdict.outcome, verdict.reason) == (Outcome.UNCHANGED, Reason.BELOW_FLAG_EFFECT)
    assert "and changes below 4.00 % are not flagged" in verdict.message
    assert verdict.effect == pytest.approx(0.03, abs=0.01)


def test_a_change_above_what_is_flagged_is_flagged() -> None:
    assert judged(a_candidate(1.06), Policy(flag_effect=0.04)).outcome is Outcome.REGRESSED


def test_nothing_smaller_than_what_is_flagged_is_promised_to_be_seen() -> None:
    verdict = judged(a_candidate(1.0), Policy(flag_effect=0.2))

    assert verdict.smallest_seen == pytest.approx(0.2)


def test_a_sentinel_is_watched_whatever_the_benchmarks_are_let_through() -> None:
    rules = Policies(
        general=Policy(flag_effect=0.2),
        overrides=(Override(benchmarks=("*",), minimum_tier=Tier.A, flag_effect=0.5),),
    )
    moved = a_candidate(1.05, benchmark="sentinel_copy", tags=("sentinel",), tier=Tier.B)
    evidence = some_evidence([a_candidate(1.0), moved])

    verdicts = judge_evidence(evidence, rules, judged_at=JUDGED_AT).verdicts

    assert {verdict.reason for verdict in verdicts} == {Reason.MACHINE_MOVED}


LARGER = Policy(ratio_better=Better.LARGER)


def as_ratio(point: SeriesPoint) -> SeriesPoint:
    return replace(point, series=replace(point.series, quantity=Quantity.RATIO))


def judged_ratio(scale: float, policy: Policy) -> Verdict:
    baseline = form_baseline([as_ratio(point) for point in a_history()], policy)
    assert baseline is not None
    return judge_point(as_ratio(a_candidate(scale)), baseline, policy, judged_at=JUDGED_AT)


@pytest.mark.parametrize(
    ("scale", "policy", "outcome", "word"),
    [
        (1.05, POLICY, Outcome.REGRESSED, "larger than"),
        (0.95, POLICY, Outcome.IMPROVED, "smaller than"),
        (1.05, LARGER, Outcome.IMPROVED, "larger than"),
        (0.95, LARGER, Outcome.REGRESSED, "smaller than"),
        (1.0, LARGER, Outcome.UNCHANGED, "; a drop of "),
        (1.0, POLICY, Outcome.UNCHANGED, "; a rise of "),
    ],
)
def test_the_policy_says_which_way_a_ratio_is_better(
    scale: float, policy: Policy, outcome: Outcome, word: str
) -> None:
    verdict = judged_ratio(scale, policy)

    assert verdict.outcome is outcome
    assert word in verdict.message


def test_the_effect_of_a_ratio_is_its_change_whichever_way_is_better() -> None:
    effect = judged_ratio(0.95, LARGER).effect

    assert effect == judged_ratio(0.95, POLICY).effect
    assert effect == pytest.approx(-0.05, abs=0.01)


@pytest.mark.parametrize("scale", [0.95, 1.05])
def test_a_time_is_never_better_larger(scale: float) -> None:
    assert judged(a_candidate(scale), LARGER).outcome is judged(a_candidate(scale), POLICY).outcome


def test_the_smallest_drop_that_would_be_seen_puts_the_intervals_just_apart() -> None:
    baseline = Interval(center=2.0, low=1.9, high=2.1, windows=8, status=FoldStatus.OK)
    same = Interval(center=2.0, low=1.98, high=2.04, windows=8, status=FoldStatus.OK)

    drop = smallest_drop(same, baseline)

    assert drop is not None
    assert 2.04 * (1 - drop) == pytest.approx(1.9)


def test_no_drop_can_be_seen_below_a_baseline_that_reaches_zero() -> None:
    baseline = Interval(center=2.0, low=0.0, high=9.0, windows=3, status=FoldStatus.PROVISIONAL)

    assert smallest_drop(a_point(1).interval, baseline) is None


def test_the_smallest_drop_of_a_pair_is_the_one_from_which_it_is_flagged() -> None:
    def dropped(drop: float) -> Pairs:
        logs = (-0.004, -0.003, -0.002, -0.001, 0.001, 0.002, 0.003, 0.004)
        return Pairs(pairs=tuple((1.0, (1 - drop) * math.exp(log)) for log in logs), quantum_ms=0.0)

    def outcome(drop: float) -> Outcome:
        return turned(dropped(drop).outcome(Outcome.UNCHANGED, p_limit=POLICY.paired_p))

    smallest = dropped(0.0).smallest_drop(None, p_limit=POLICY.paired_p)

    assert smallest is not None
    assert outcome(1.01 * smallest) is Outcome.REGRESSED
    assert outcome(0.99 * smallest) is Outcome.UNCHANGED


def test_a_lower_tier_is_judged_where_the_policy_takes_it() -> None:
    strict = judge_evidence(
        some_evidence([a_candidate(1.0, tier=Tier.C)], history=a_history(tier=Tier.C), line=a_line()),
        Policy(),
        judged_at=JUDGED_AT,
    )
    loose = judge_evidence(
        some_evidence([a_candidate(1.0, tier=Tier.C)], history=a_history(tier=Tier.C), line=a_line()),
        Policies(overrides=(Override(benchmarks=("*",), minimum_tier=Tier.C),)),
        judged_at=JUDGED_AT,
    )

    assert [v.reason for v in strict.verdicts] == [Reason.TIER_TOO_LOW]
    assert [v.outcome for v in loose.verdicts] == [Outcome.UNCHANGED]
    assert "judged by minimum_tier C instead of B" in loose.verdicts[0].message
