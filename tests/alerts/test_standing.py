"""A flag is confirmed, or withdrawn, by the sessions beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from judgements import JUDGED_AT, POLICY, a_candidate, a_history

from alerts.baseline import form_baseline
from alerts.standing import settle
from alerts.verdicts import judge_point
from store.records import BaselineKind, Outcome, Reason, SecondSession, Standing, Tier, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE, FLAGGED, CONFIRMED, WITHDRAWN = Standing


def a_session(number: int, scale: float = 1.03) -> Verdict:
    baseline = form_baseline(a_history(), POLICY)
    assert baseline is not None
    return judge_point(a_candidate(scale, number=number), baseline, POLICY, judged_at=JUDGED_AT)


def standings(*sessions: Verdict, resolution_ms: float = 3.2e-5) -> list[Standing]:
    return [v.standing for v in settle(sessions, resolution_ms=resolution_ms, policy=POLICY)]


def settled(*sessions: Verdict, confirms: Mapping[str, str] | None = None) -> list[Verdict]:
    return settle(sessions, resolution_ms=3.2e-5, policy=POLICY, confirms=confirms or {})


def confirming(links: Mapping[int, int]) -> dict[str, str]:
    """Run ids of sessions by number: which was measured to confirm which."""
    return {a_session(later).run_id: a_session(first).run_id for later, first in links.items()}


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


def test_both_effects_have_to_be_worth_it() -> None:
    large, small = replace(a_session(0), effect=0.012), replace(a_session(1), effect=0.008)

    assert standings(large, small) == [FLAGGED, FLAGGED]


def test_a_settled_flag_names_the_other_session_and_its_effect() -> None:
    first, again = settled(a_session(0), a_session(1, 1.04))

    assert first.second == SecondSession(
        run_id=again.run_id,
        outcome=Outcome.REGRESSED,
        reason=Reason.INTERVALS_APART,
        effect=again.effect,
        effect_low=again.effect_low,
        effect_high=again.effect_high,
    )
    assert again.second is not None
    assert (again.second.run_id, again.second.effect) == (first.run_id, first.effect)


def test_a_flag_alone_and_a_session_without_one_name_no_other() -> None:
    assert [v.second for v in settled(a_session(0))] == [None]
    assert [v.second for v in settled(a_session(0), a_session(1, 1.0))][1] is None


def test_a_neighbour_that_could_not_have_seen_it_withdraws_nothing() -> None:
    coarse = replace(a_session(1, 1.0), smallest_seen=0.05)

    assert standings(a_session(0), coarse) == [FLAGGED, NONE]
    assert standings(a_session(0), replace(coarse, smallest_seen=None)) == [FLAGGED, NONE]


def test_the_session_that_was_measured_to_confirm_decides_over_the_neighbours() -> None:
    """Sessions 1 and 2 are of other runners; only session 3 was measured for session 0."""
    sessions = [a_session(0), a_session(1, 1.0), a_session(2, 1.0), a_session(3)]
    links = confirming({3: 0})

    found = settled(*sessions, confirms=links)

    assert [v.standing for v in found] == [CONFIRMED, NONE, NONE, CONFIRMED]
    assert found[0].second is not None
    assert found[0].second.run_id == sessions[3].run_id


def test_a_session_measured_to_confirm_that_shows_nothing_withdraws_over_a_neighbour_that_agrees() -> None:
    found = settled(a_session(0), a_session(1), a_session(2, 1.0), confirms=confirming({2: 0}))

    assert found[0].standing is WITHDRAWN


def test_measuring_again_until_it_fits_confirms_nothing() -> None:
    sessions = [a_session(0), a_session(1, 1.0), a_session(2)]

    found = settled(*sessions, confirms=confirming({1: 0, 2: 0}))

    assert [v.standing for v in found] == [WITHDRAWN, NONE, FLAGGED]


def test_a_second_attempt_decides_where_the_first_could_not_tell() -> None:
    moved = replace(a_session(1), outcome=Outcome.INCONCLUSIVE, reason=Reason.MACHINE_MOVED, effect=0.2)

    found = settled(a_session(0), moved, a_session(2), confirms=confirming({1: 0, 2: 0}))

    assert [v.standing for v in found] == [CONFIRMED, NONE, CONFIRMED]


def test_a_machine_that_moved_in_the_second_session_leaves_the_flag_and_says_so() -> None:
    moved = replace(a_session(1), outcome=Outcome.INCONCLUSIVE, reason=Reason.MACHINE_MOVED)

    first, _ = settled(a_session(0), moved, confirms=confirming({1: 0}))

    assert first.standing is FLAGGED
    assert first.second is not None
    assert (first.second.run_id, first.second.reason) == (moved.run_id, Reason.MACHINE_MOVED)


def test_a_session_measured_to_confirm_that_was_cut_short_withdraws_nothing_and_is_named() -> None:
    coarse = replace(a_session(1, 1.0), smallest_seen=0.2)

    first, _ = settled(a_session(0), coarse, confirms=confirming({1: 0}))

    assert first.standing is FLAGGED
    assert first.second is not None
    assert first.second.outcome is Outcome.UNCHANGED


def test_a_session_measured_to_confirm_that_shows_the_other_direction_withdraws() -> None:
    found = settled(a_session(0), a_session(1, 0.97), confirms=confirming({1: 0}))

    assert [v.standing for v in found] == [WITHDRAWN, FLAGGED]


def test_against_a_single_baseline_run_a_second_session_withdraws_and_never_confirms() -> None:
    single = [replace(a_session(n), baseline_kind=BaselineKind.SINGLE) for n in (0, 1)]
    nothing = replace(a_session(1, 1.0), baseline_kind=BaselineKind.SINGLE)
    links = confirming({1: 0})

    confirmed = settled(*single, confirms=links)
    assert [v.standing for v in confirmed] == [FLAGGED, FLAGGED]
    assert all(v.second is not None for v in confirmed)
    assert settled(single[0], nothing, confirms=links)[0].standing is WITHDRAWN


def test_a_link_to_a_run_without_a_verdict_here_changes_nothing() -> None:
    links = {a_session(1).run_id: "somewhere else"}

    assert [v.standing for v in settled(a_session(0), a_session(1), confirms=links)] == [CONFIRMED] * 2
