"""Tables are built from escaped text alone."""

from __future__ import annotations

import pytest
from rows import a_point, a_verdict

from dashboard.tables import (
    Column,
    code,
    effect_cell,
    link,
    plain,
    table,
    tier_badge,
    two_lines,
    verdict_badge,
)
from store.records import Standing, Tier

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.mark.parametrize(
    "markup",
    [
        plain(HOSTILE),
        plain("x", more=HOSTILE),
        code(HOSTILE),
        link(HOSTILE, f"trends?series={HOSTILE}", more=HOSTILE),
        two_lines(plain("x"), HOSTILE),
        tier_badge(Tier.A, (HOSTILE,)),
        verdict_badge(a_verdict(a_point(), message=HOSTILE)),
        table(HOSTILE, [Column(HOSTILE)], []),
    ],
)
def test_markup_in_names_and_messages_stays_text(markup: str) -> None:
    assert "<img" not in markup
    assert '"alert' not in markup


def test_a_row_that_does_not_fit_its_head_is_a_bug() -> None:
    with pytest.raises(ValueError, match="shorter"):
        table("numbers", [Column("a"), Column("b")], [[plain("1")]])


def test_a_verdict_says_its_outcome_and_standing_in_words() -> None:
    confirmed, flagged = (
        verdict_badge(a_verdict(a_point(), standing=standing))
        for standing in (Standing.CONFIRMED, Standing.FLAGGED)
    )

    assert "▲ regressed, confirmed" in confirmed
    assert "kw-strong" in confirmed
    assert "kw-strong" not in flagged
    assert "not judged" in verdict_badge(None)


def test_an_effect_beyond_its_little_axis_touches_the_edge() -> None:
    cell = effect_cell(a_verdict(a_point(), effect=0.4, effect_low=0.3, effect_high=0.5))

    assert "+40.0 %" in cell
    assert "left:100.0%" in cell


def test_a_verdict_without_a_baseline_has_no_effect() -> None:
    assert "n/a" in effect_cell(a_verdict(a_point(), effect=None, baseline=None))
