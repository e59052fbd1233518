"""The one order in which results are listed everywhere: the worst news first. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from store.records import Verdict


class Kind(StrEnum):
    """What there is to say about a benchmark, worst first."""

    CONFIRMED = "confirmed"  # a regression that held in a fresh session
    FLAGGED = "flagged"  # a regression seen in one run
    FAILED = "failed"  # the newest run tried it and got no number
    MISSING = "missing"  # the newest run has no word on it
    IMPROVED = "improved"
    WITHDRAWN = "withdrawn"  # did not hold in a fresh session
    INCONCLUSIVE = "inconclusive"
    NOT_JUDGED = "not judged"
    UNCHANGED = "unchanged"


PLACES = {kind: place for place, kind in enumerate(Kind)}
_NO_Q = 1.0  # where nothing is known about how surprising a change is


def kind_of(verdict: Verdict | None) -> Kind:
    """What a verdict says."""
    if verdict is None:
        return Kind.NOT_JUDGED
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return Kind.INCONCLUSIVE
    if verdict.outcome is Outcome.UNCHANGED:
        return Kind.UNCHANGED
    if verdict.standing is Standing.WITHDRAWN:
        return Kind.WITHDRAWN
    if verdict.outcome is Outcome.IMPROVED:
        return Kind.IMPROVED
    return Kind.CONFIRMED if verdict.standing is Standing.CONFIRMED else Kind.FLAGGED


def worst_first(verdict: Verdict | None, *, excused: bool = False) -> tuple[int, bool, bool, float, float]:
    """The place of a verdict in a list that begins with the worst news.

    Of one kind, what people know about comes after what is news to them, then what a second session
    held up before the rest, then what is least likely to be noise, by its q-value over all that was
    tested on the commit; then the larger effect. Where all of them are surely no noise, as their
    q-values are shown alike, the larger effect decides.

    Args:
        verdict: None where there is none.
        excused: whether it is muted, or its change accepted.
    """
    place = PLACES[kind_of(verdict)]
    if verdict is None:
        return place, excused, True, _NO_Q, 0.0
    q_value = _NO_Q if verdict.q_value is None else max(verdict.q_value, shown.SMALLEST_PROBABILITY)
    unsure = verdict.standing is not Standing.CONFIRMED
    return place, excused, unsure, q_value, -abs(verdict.effect or 0.0)
