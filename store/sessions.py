"""What two sessions on one commit showed of a flagged change, in one line: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store import shown
from store.records import BaselineKind, Outcome, Standing

if TYPE_CHECKING:
    from store.records import SecondSession, Verdict

SHORT_RUN_ID = 8


def short_run(run_id: str) -> str:
    """The first digits of a run id, which name it on every command line."""
    return run_id[:SHORT_RUN_ID]


def both_sessions(verdict: Verdict) -> str | None:
    """The effects of both sessions with their runs, and what follows; None where there was one alone.

    Such as ``+4.01 % in run 1a2b3c4d, +3.88 % (+3.10 % to +4.61 %) in run 9f8e7d6c: confirmed``.
    """
    second = verdict.second
    if second is None:
        return None
    own = "no effect" if verdict.effect is None else shown.change(verdict.effect)
    return (
        f"{own} in run {short_run(verdict.run_id)}, {_shown_by(second)} in run {short_run(second.run_id)}: "
        f"{_follows(verdict, second)}"
    )


def _shown_by(second: SecondSession) -> str:
    if second.outcome is Outcome.INCONCLUSIVE:
        return f"no verdict ({second.reason})"
    if second.effect is None or second.effect_low is None or second.effect_high is None:
        return str(second.outcome)
    bounds = f"{shown.change(second.effect_low)} to {shown.change(second.effect_high)}"
    return f"{shown.change(second.effect)} ({bounds})"


def _follows(verdict: Verdict, second: SecondSession) -> str:
    if verdict.standing is not Standing.FLAGGED:
        return str(verdict.standing)
    if second.outcome is Outcome.INCONCLUSIVE:
        return "stays flagged"
    if second.outcome is not verdict.outcome:
        return "stays flagged, since the second could not have seen a change of this size"
    if verdict.baseline_kind is BaselineKind.SINGLE:
        return "stays flagged, since one baseline run cannot tell a change from a difference between sessions"
    return "stays flagged, since a change of this size is too small to be confirmed"
