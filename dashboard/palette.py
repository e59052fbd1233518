"""Colours, shapes and words for tiers and outcomes, the same on every page.

The hues differ in lightness as well as in colour, so that they stay apart for people who
see red and green alike, and each keeps a contrast of at least 3:1 on the light and on the
dark background. Colour never stands alone: each has a shape or a word beside it.
"""

from __future__ import annotations

from alerts.order import Kind
from dashboard.differences import Direction
from store.records import Outcome, Standing, Tier

TIER_COLORS = {Tier.A: "#2f7fd1", Tier.B: "#c77a12", Tier.C: "#9b6fc4"}
TIER_SHAPES = {Tier.A: "circle", Tier.B: "square", Tier.C: "cross"}
TIER_MEANINGS = {
    Tier.A: "clocks held, at least 6 independent windows, nothing disturbed",
    Tier.B: "sound, but not everything that tier A asks for",
    Tier.C: "disturbed or too little data: shown, never judged",
}

SLOWER_COLOR = "#d6483f"
FASTER_COLOR = "#1a9a8a"
DOUBT_COLOR = "#c77a12"
NEUTRAL_COLOR = "#7d8590"
CANDIDATE_COLOR = "#2f7fd1"
# As text on a tint of itself, where a contrast of 4.5:1 is asked for.
PRIMARY_COLORS = {"light": "#1d63ad", "dark": "#5aa2ea"}

OUTCOME_COLORS = {
    Outcome.REGRESSED: SLOWER_COLOR,
    Outcome.IMPROVED: FASTER_COLOR,
    Outcome.UNCHANGED: NEUTRAL_COLOR,
    Outcome.INCONCLUSIVE: DOUBT_COLOR,
}
OUTCOME_SIGNS = {
    Outcome.REGRESSED: "▲",
    Outcome.IMPROVED: "▼",
    Outcome.UNCHANGED: "=",
    Outcome.INCONCLUSIVE: "?",
}
STANDING_WORDS = {
    Standing.NONE: "",
    Standing.FLAGGED: "flagged",
    Standing.CONFIRMED: "confirmed",
    Standing.WITHDRAWN: "withdrawn",
}
KIND_COLORS = {
    Kind.CONFIRMED: SLOWER_COLOR,
    Kind.FLAGGED: SLOWER_COLOR,
    Kind.FAILED: SLOWER_COLOR,
    Kind.MISSING: DOUBT_COLOR,
    Kind.IMPROVED: FASTER_COLOR,
    Kind.INCONCLUSIVE: DOUBT_COLOR,
}
KIND_SIGNS = {Kind.FAILED: "✕", Kind.MISSING: "…"}
DIRECTION_LOOKS = {
    Direction.SLOWER: (SLOWER_COLOR, "▲"),
    Direction.FASTER: (FASTER_COLOR, "▼"),
    Direction.SAME: (NEUTRAL_COLOR, "="),
    Direction.UNKNOWN: (DOUBT_COLOR, "?"),
}
