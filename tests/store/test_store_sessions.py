"""Both sessions of a flag are told in one line, with what follows from them."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_header, a_second_session, a_verdict

from store.records import BaselineKind, Outcome, Reason, Standing
from store.sessions import both_sessions

FIRST, SECOND = a_header().run_id[:8], a_header(number=1).run_id[:8]
FLAGGED: dict[str, Any] = {"standing": Standing.FLAGGED}
NO_EFFECT: dict[str, Any] = {"effect": None, "effect_low": None, "effect_high": None}


def test_a_verdict_that_met_no_other_session_says_nothing() -> None:
    assert both_sessions(a_verdict()) is None


def test_both_effects_stand_beside_their_runs() -> None:
    assert both_sessions(a_verdict(second=a_second_session())) == (
        f"+4.00 % in run {FIRST}, +3.80 % (+3.10 % to +4.61 %) in run {SECOND}: confirmed"
    )


def test_what_did_not_hold_is_withdrawn() -> None:
    verdict = a_verdict(
        standing=Standing.WITHDRAWN,
        second=a_second_session(
            outcome=Outcome.UNCHANGED, effect=0.0002, effect_low=-0.001, effect_high=0.0014
        ),
    )

    assert both_sessions(verdict) == (
        f"+4.00 % in run {FIRST}, +0.02 % (-0.10 % to +0.14 %) in run {SECOND}: withdrawn"
    )


@pytest.mark.parametrize(
    ("changes", "second", "words"),
    [
        (
            {},
            NO_EFFECT | {"outcome": Outcome.INCONCLUSIVE, "reason": Reason.MACHINE_MOVED},
            f"no verdict (machine-moved) in run {SECOND}: stays flagged",
        ),
        ({}, {"outcome": Outcome.UNCHANGED}, "stays flagged, since the second could not have seen"),
        ({"baseline_kind": BaselineKind.SINGLE}, {}, "stays flagged, since one baseline run cannot tell"),
        ({"effect": 0.006}, {"effect": 0.005}, "too small to be confirmed"),
    ],
)
def test_a_flag_that_stays_one_says_why(changes: dict[str, Any], second: dict[str, Any], words: str) -> None:
    said = both_sessions(a_verdict(**FLAGGED | changes, second=a_second_session(**second)))

    assert said is not None
    assert words in said
