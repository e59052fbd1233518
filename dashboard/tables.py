"""Tables as HTML: real links, one look in light and dark, readable by a screen reader. Pure.

Everything that comes from a benchmark, a commit or a machine is escaped here; no other
module writes markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NewType

from alerts.order import Kind
from dashboard.formatting import NOTHING, format_effect, format_effect_interval
from dashboard.palette import (
    DIRECTION_LOOKS,
    DOUBT_COLOR,
    KIND_COLORS,
    KIND_SIGNS,
    NEUTRAL_COLOR,
    OUTCOME_COLORS,
    OUTCOME_SIGNS,
    SLOWER_COLOR,
    STANDING_WORDS,
    TIER_COLORS,
    TIER_MEANINGS,
)
from dashboard.sparklines import HEIGHT_PX, WIDTH_PX, spark_address
from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.differences import Difference, Direction
    from store.records import Tier, Verdict

Markup = NewType("Markup", str)
# Effects beyond this share touch the edge of their little axis.
_BAR_RANGE = 0.05
_CURRENT = ' aria-current="true"'


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


def two_lines(first: Markup, second: str, *, wide_only: bool = False) -> Markup:
    """Something with a quieter line below it, which is hidden on a narrow window where that is asked for."""
    hidden = " kw-wide" if wide_only else ""
    return Markup(f'{first}<span class="kw-quiet kw-below{hidden}">{escape(second)}</span>')


def unbroken(content: Markup) -> Markup:
    """Something that stays on one line, such as the id of a commit."""
    return Markup(f'<span class="kw-nowrap">{content}</span>')


def code(text: str) -> Markup:
    """Text in a type whose letters all have one width."""
    return Markup(f"<code>{escape(text)}</code>")


def link(text: str, address: str, *, more: str | None = None) -> Markup:
    """A link that opens in the same window."""
    title = f' title="{escape(more)}"' if more else ""
    return Markup(f'<a class="kw-link" href="{escape(address)}" target="_self"{title}>{escape(text)}</a>')


def outside_link(text: str, address: str) -> Markup:
    """A link that leaves the dashboard: it opens elsewhere, and tells nobody where it was clicked."""
    return Markup(
        f'<a class="kw-out" href="{escape(address)}" target="_blank" rel="noopener noreferrer nofollow">'
        f"{escape(text)}</a>"
    )


def facts(*lines: Sequence[Markup]) -> Markup:
    """A paragraph of lines, each of parts with a space between them."""
    return Markup(f'<p class="kw-facts">{"<br>".join(" ".join(parts) for parts in lines)}</p>')


def strong(text: str) -> Markup:
    """Text that is to be seen first."""
    return Markup(f"<strong>{escape(text)}</strong>")


def tier_badge(tier: Tier, evidence: Sequence[str] = ()) -> Markup:
    """The letter of a tier; what it rests on shows when the mouse rests on it."""
    more = f"Tier {tier}: {TIER_MEANINGS[tier]}." + "".join(f"\n{sentence}" for sentence in evidence)
    return Markup(
        f'<span class="kw-tier" style="--kw-color:{TIER_COLORS[tier]}" title="{escape(more)}">{tier}</span>'
    )


def verdict_badge(verdict: Verdict | None, excuse: str = "") -> Markup:
    """Sign, outcome and standing of a verdict; its reason shows when the mouse rests on it.

    Args:
        verdict: None where nobody judged.
        excuse: why it is no alarm, beginning with a word such as ``muted``; empty where it is one.
    """
    if verdict is None:
        return Markup(f'<span class="kw-badge" style="--kw-color:{NEUTRAL_COLOR}">{Kind.NOT_JUDGED}</span>')
    why = verdict.reason if verdict.outcome is Outcome.INCONCLUSIVE else ""
    words = [verdict.outcome.lower(), STANDING_WORDS[verdict.standing], why, excuse.partition(" ")[0]]
    strong = " kw-strong" if verdict.standing is Standing.CONFIRMED and not excuse else ""
    title = f"{excuse}\n{verdict.message}" if excuse else verdict.message
    return Markup(
        f'<span class="kw-badge{strong}" style="--kw-color:{OUTCOME_COLORS[verdict.outcome]}" '
        f'title="{escape(title)}">{OUTCOME_SIGNS[verdict.outcome]} '
        f"{escape(', '.join(word for word in words if word))}</span>"
    )


def kind_badge(kind: Kind, why: str) -> Markup:
    """A word on a benchmark that has no verdict; the reason shows when the mouse rests on it."""
    color = SLOWER_COLOR if kind is Kind.FAILED else DOUBT_COLOR
    return Markup(
        f'<span class="kw-badge" style="--kw-color:{color}" title="{escape(why)}">'
        f"{KIND_SIGNS[kind]} {kind}</span>"
    )


def count_badge(kind: Kind | None, count: int, address: str) -> Markup:
    """How many benchmarks there are of a kind (None: of all others), as a link to them; a zero is none."""
    if not count:
        return Markup('<span class="kw-quiet">0</span>')
    color = NEUTRAL_COLOR if kind is None else KIND_COLORS.get(kind, NEUTRAL_COLOR)
    return Markup(
        f'<a class="kw-link kw-count" style="--kw-color:{color}" href="{escape(address)}" target="_self" '
        f'aria-label="{count} {kind or "of other kinds"}">{count}</a>'
    )


def chips(label: str, items: Sequence[tuple[str, str, bool]]) -> Markup:
    """Links in a row, each with its words, its address and whether it is the one that is shown."""
    links = "".join(
        f'<a class="kw-link kw-chip" href="{escape(address)}" target="_self"'
        f"{_CURRENT if current else ''}>{escape(words)}</a>"
        for words, address, current in items
    )
    return Markup(f'<nav class="kw-chips" aria-label="{escape(label)}">{links}</nav>')


def nothing() -> Markup:
    """An empty cell that says so."""
    return Markup(f'<span class="kw-quiet">{NOTHING}</span>')


def spark_cell(values: Sequence[float]) -> Markup:
    """The newest values of a series as a small line; its description says how far they lie apart."""
    if len(values) < 2:  # noqa: PLR2004 - one value is no trend
        return nothing()
    spread = (max(values) - min(values)) / min(values) * 100
    words = f"{len(values)} values, {spread:.1f} % between least and most, newest at the right"
    return Markup(
        f'<img class="kw-spark" src="{spark_address(values)}" width="{WIDTH_PX}" height="{HEIGHT_PX}" '
        f'alt="{words}" title="{words}">'
    )


def direction_badge(direction: Direction) -> Markup:
    """Sign and word of a difference."""
    color, sign = DIRECTION_LOOKS[direction]
    return Markup(f'<span class="kw-badge" style="--kw-color:{color}">{sign} {direction}</span>')


def difference_cell(change: Difference | None) -> Markup:
    """A difference in figures and as a small interval, as ``effect_cell`` shows a verdict's."""
    if change is None or change.effect is None:
        return nothing()
    return _effect_figures(change.effect, change.low, change.high, DIRECTION_LOOKS[change.direction][0])


def effect_cell(verdict: Verdict | None) -> Markup:
    """The effect in figures with its q-value, and as a small interval round zero where bounds are known."""
    if verdict is None or verdict.effect is None:
        return nothing()
    judged = verdict.q_value is not None and verdict.outcome is not Outcome.INCONCLUSIVE
    return _effect_figures(
        verdict.effect,
        verdict.effect_low,
        verdict.effect_high,
        OUTCOME_COLORS[verdict.outcome],
        more=f", q {shown.probability(verdict.q_value)}" if judged else "",
    )


def _effect_figures(
    effect: float, low: float | None, high: float | None, color: str, more: str = ""
) -> Markup:
    figures = f'<span class="kw-effect">{escape(format_effect(effect))}</span>'
    if low is None or high is None:
        return Markup(figures)
    bounds = escape(format_effect_interval(low, high) + more)
    return Markup(
        f'<span class="kw-nowrap">{figures}{_effect_bar(effect, low, high, color)}'
        f'<span class="kw-quiet kw-below">{bounds}</span></span>'
    )


def _effect_bar(effect: float, low: float, high: float, color: str) -> str:
    left, right = _share(low), _share(high)
    return (
        f'<span class="kw-bar" style="--kw-color:{color}" aria-hidden="true"><i class="kw-zero"></i>'
        f'<i class="kw-range" style="left:{left:.1f}%;width:{max(right - left, 2):.1f}%"></i>'
        f'<i class="kw-dot" style="left:{_share(effect):.1f}%"></i></span>'
    )


def _share(effect: float) -> float:
    """Where an effect lies on the little axis, in percent of its width."""
    return 50 + 50 * max(-1.0, min(1.0, effect / _BAR_RANGE))


def _classes(column: Column) -> str:
    names = [name for name, on in (("kw-number", column.numeric), ("kw-wide", column.wide_only)) if on]
    return f' class="{" ".join(names)}"' if names else ""
