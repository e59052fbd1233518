"""One order for everybody who lists results: the worst news first."""

from __future__ import annotations

from builders import a_verdict

from alerts.order import worst_first
from store.records import Outcome, Standing, Verdict


def changed(standing: Standing, outcome: Outcome = Outcome.REGRESSED, effect: float = 0.03) -> Verdict:
    return a_verdict(outcome=outcome, standing=standing, effect=effect)


def test_regressions_come_before_improvements_and_these_before_what_was_withdrawn() -> None:
    listed = [
        changed(Standing.CONFIRMED),
        changed(Standing.FLAGGED),
        changed(Standing.CONFIRMED, Outcome.IMPROVED),
        changed(Standing.FLAGGED, Outcome.IMPROVED),
        changed(Standing.WITHDRAWN),
        a_verdict(outcome=Outcome.INCONCLUSIVE, standing=Standing.NONE),
        None,
        a_verdict(outcome=Outcome.UNCHANGED, standing=Standing.NONE),
    ]

    assert sorted(listed, key=worst_first) == listed


def test_what_is_least_likely_to_be_noise_comes_before_what_is_larger() -> None:
    small_and_sure = a_verdict(effect=0.02, q_value=0.0001)
    large_and_doubtful = a_verdict(effect=0.2, q_value=0.4)
    unknown = a_verdict(effect=0.5, q_value=None)

    ordered = sorted([unknown, large_and_doubtful, small_and_sure], key=worst_first)

    assert ordered == [small_and_sure, large_and_doubtful, unknown]


def test_of_equally_surprising_changes_the_larger_comes_first() -> None:
    small, large = a_verdict(effect=0.02, q_value=0.01), a_verdict(effect=-0.05, q_value=0.01)

    assert sorted([small, large], key=worst_first) == [large, small]


def test_where_no_change_is_noise_for_any_reader_the_larger_comes_first() -> None:
    small, large = a_verdict(effect=0.02, q_value=1e-12), a_verdict(effect=0.1, q_value=1e-9)

    assert sorted([small, large], key=worst_first) == [large, small]


def test_what_was_excused_comes_after_what_was_not() -> None:
    large, small = a_verdict(effect=0.2), a_verdict(effect=0.02)

    assert worst_first(small) < worst_first(large, excused=True)
