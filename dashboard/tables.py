"""Tables as HTML: real links, one look in light and dark, readable by a screen reader. Pure.

Everything that comes from a benchmark, a commit or a machine is escaped here; no other
module writes markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NewType

from dashboard.formatting import NOTHING, format_effect, format_effect_interval
from dashboard.latest import NOT_JUDGED
from dashboard.palette import (
    NEUTRAL_COLOR,
    OUTCOME_COLORS,
    OUTCOME_SIGNS,
    STANDING_WORDS,
    TIER_COLORS,
    TIER_MEANINGS,
)
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Tier, Verdict

Markup = NewType("Markup", str)
# Effects beyond this share touch the edge of their little axis.
_BAR_RANGE = 0.05


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column.

    Attributes:
        numeric: aligned to the right, with figures of one width.
        wide_only: hidden on a narrow window, where the rest would no longer fit.
    """

    title: str
    numeric: bool = False
    wide_only: bool = False


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Markup]]) -> Markup:
    """A table; the caption is for screen readers.

    Raises:
        ValueError: a row has not one cell for each column.
    """
    head = "".join(f'<th scope="col"{_classes(column)}>{escape(column.title)}</th>' for column in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_classes(column)}>{cell}</td>" for column, cell in zip(columns, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return Markup(
        f'<div class="kw-scroll"><table class="kw-table"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def plain(text: str, *, more: str | None = None) -> Markup:
    """Text, with more of it when the mouse rests on it."""
    if more is None:
        return Markup(escape(text))
    return Markup(f'<span title="{escape(more)}">{escape(text)}</span>')


def two_lines(first: Markup, second: str) -> Markup:
    """Something with a quieter line below it."""
    return Markup(f'{first}<span class="kw-quiet kw-below">{escape(second)}</span>')


def code(text: str) -> Markup:
    """Text in a type whose letters all have one width."""
    return Markup(f"<code>{escape(text)}</code>")


def link(text: str, address: str, *, more: str | None = None) -> Markup:
    """A link that opens in the same window."""
    title = f' title="{escape(more)}"' if more else ""
    return Markup(f'<a href="{escape(address)}" target="_self"{title}>{escape(text)}</a>')


def tier_badge(tier: Tier, evidence: Sequence[str] = ()) -> Markup:
    """The letter of a tier; what it rests on shows when the mouse rests on it."""
    more = f"Tier {tier}: {TIER_MEANINGS[tier]}." + "".join(f"\n{sentence}" for sentence in evidence)
    return Markup(
        f'<span class="kw-tier" style="--kw-color:{TIER_COLORS[tier]}" title="{escape(more)}">{tier}</span>'
    )


def verdict_badge(verdict: Verdict | None) -> Markup:
    """Sign, outcome and standing of a verdict; its reason shows when the mouse rests on it."""
    if verdict is None:
        return Markup(
            f'<span class="kw-badge" style="--kw-color:{NEUTRAL_COLOR}">{NOT_JUDGED.lower()}</span>'
        )
    word = STANDING_WORDS[verdict.standing]
    strong = " kw-strong" if verdict.standing is Standing.CONFIRMED else ""
    return Markup(
        f'<span class="kw-badge{strong}" style="--kw-color:{OUTCOME_COLORS[verdict.outcome]}" '
        f'title="{escape(verdict.message)}">{OUTCOME_SIGNS[verdict.outcome]} '
        f"{verdict.outcome.lower()}{', ' + word if word else ''}</span>"
    )


def count_badge(outcome: str, count: int) -> Markup:
    """How many measurements had an outcome; a zero is quiet."""
    if not count:
        return Markup('<span class="kw-quiet">0</span>')
    color = OUTCOME_COLORS[Outcome(outcome)] if outcome in set(Outcome) else NEUTRAL_COLOR
    return Markup(f'<span class="kw-count" style="--kw-color:{color}">{count}</span>')


def effect_cell(verdict: Verdict | None) -> Markup:
    """The effect in figures, and as a small interval round zero where bounds are known."""
    if verdict is None or verdict.effect is None:
        return Markup(f'<span class="kw-quiet">{NOTHING}</span>')
    low, high = verdict.effect_low, verdict.effect_high
    figures = f'<span class="kw-effect">{escape(format_effect(verdict.effect))}</span>'
    if low is None or high is None:
        return Markup(figures)
    bounds = escape(format_effect_interval(low, high))
    return Markup(
        f'<span class="kw-nowrap">{figures}{_effect_bar(verdict, low, high)}'
        f'<span class="kw-quiet kw-below">{bounds}</span></span>'
    )


def _effect_bar(verdict: Verdict, low: float, high: float) -> str:
    left, right = _share(low), _share(high)
    color = OUTCOME_COLORS[verdict.outcome]
    return (
        f'<span class="kw-bar" style="--kw-color:{color}" aria-hidden="true"><i class="kw-zero"></i>'
        f'<i class="kw-range" style="left:{left:.1f}%;width:{max(right - left, 2):.1f}%"></i>'
        f'<i class="kw-dot" style="left:{_share(verdict.effect or 0):.1f}%"></i></span>'
    )


def _share(effect: float) -> float:
    """Where an effect lies on the little axis, in percent of its width."""
    return 50 + 50 * max(-1.0, min(1.0, effect / _BAR_RANGE))


def _classes(column: Column) -> str:
    names = [name for name, on in (("kw-number", column.numeric), ("kw-wide", column.wide_only)) if on]
    return f' class="{" ".join(names)}"' if names else ""
