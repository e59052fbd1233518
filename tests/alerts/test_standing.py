"""A flag is confirmed, or withdrawn, by the sessions beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judgements import JUDGED_AT, POLICY, a_candidate, a_history

from alerts.baseline import form_baseline
from alerts.standing import settle
from alerts.verdicts import judge_point
from store.records import BaselineKind, Outcome, Standing, Tier, Verdict

NONE, FLAGGED, CONFIRMED, WITHDRAWN = Standing


def a_session(number: int, scale: float = 1.03) -> Verdict:
    baseline = form_baseline(a_history(), POLICY)
    assert baseline is not None
    return judge_point(a_candidate(scale, number=number), baseline, POLICY, judged_at=JUDGED_AT)


def standings(*sessions: Verdict, resolution_ms: float = 3.2e-5) -> list[Standing]:
    return [v.standing for v in settle(sessions, resolution_ms=resolution_ms, policy=POLICY)]


def test_one_flag_stays_a_flag() -> None:
    assert standings(a_session(0)) == [FLAGGED]


def test_two_sessions_that_agree_confirm_one_another() -> None:
    assert standings(a_session(0), a_session(1)) == [CONFIRMED, CONFIRMED]


def test_a_session_that_shows_nothing_withdraws_the_flag_before_it() -> None:
    assert standings(a_session(0), a_session(1, 1.0)) == [WITHDRAWN, NONE]


def test_a_session_of_the_other_direction_withdraws_the_flag_and_is_one_itself() -> None:
    assert standings(a_session(0, 1.03), a_session(1, 0.97)) == [WITHDRAWN, FLAGGED]


def test_improvements_are_confirmed_alike() -> None:
    assert standings(a_session(0, 0.97), a_session(1, 0.97)) == [CONFIRMED, CONFIRMED]


def test_a_withdrawn_flag_confirms_nothing_later() -> None:
    assert standings(a_session(0), a_session(1, 1.0), a_session(2)) == [WITHDRAWN, NONE, FLAGGED]


def test_an_inconclusive_session_says_nothing_either_way() -> None:
    silent = replace(a_session(1), outcome=Outcome.INCONCLUSIVE, tier=Tier.C)

    assert standings(a_session(0), silent) == [FLAGGED, NONE]
    assert standings(a_session(0), silent, a_session(2)) == [CONFIRMED, NONE, CONFIRMED]


def test_a_single_baseline_run_never_confirms() -> None:
    single = [replace(a_session(n), baseline_kind=BaselineKind.SINGLE) for n in (0, 1)]

    assert standings(*single) == [FLAGGED, FLAGGED]
    assert standings(single[0], a_session(1)) == [FLAGGED, FLAGGED]


@pytest.mark.parametrize(("effect", "expected"), [(0.0099, FLAGGED), (0.01, CONFIRMED), (-0.01, CONFIRMED)])
def test_an_effect_below_one_per_cent_is_not_confirmed(effect: float, expected: Standing) -> None:
    sessions = [replace(a_session(n), effect=effect) for n in (0, 1)]

    assert standings(*sessions) == [expected, expected]


def test_an_effect_below_the_timers_quantum_is_not_confirmed() -> None:
    """Three per cent of 0.26 ms are 0.0077 ms."""
    assert standings(a_session(0), a_session(1), resolution_ms=0.02) == [FLAGGED, FLAGGED]


def test_settling_twice_changes_nothing() -> None:
    once = settle([a_session(0), a_session(1)], resolution_ms=3.2e-5, policy=POLICY)

    assert settle(once, resolution_ms=3.2e-5, policy=POLICY) == once
