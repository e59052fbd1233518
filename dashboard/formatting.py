"""Numbers and names as a person reads them: pure text, no markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store import shown

if TYPE_CHECKING:
    from datetime import datetime

    from store.records import Interval, Quantity

_GPU_DIGITS = 4
NOTHING = "n/a"


def format_amount(value: float | None, quantity: Quantity) -> str:
    """What was measured, with four significant digits, such as ``251.3 us`` or ``1.234x``."""
    if value is None:
        return NOTHING
    return shown.amount(value, quantity)


def format_interval(interval: Interval | None, quantity: Quantity) -> str:
    """The bounds of an interval in one unit, such as ``250.9 … 251.8 us``."""
    bounds = None if interval is None else interval.bounds
    if bounds is None:
        return NOTHING
    low, center, high = bounds
    scale, unit = shown.unit_of(center, quantity)
    return f"{shown.digits_of(low / scale)} … {shown.with_unit(shown.digits_of(high / scale), unit)}"


def format_effect(effect: float | None) -> str:
    """A relative change in percent with its sign; positive is slower."""
    if effect is None:
        return NOTHING
    percent = effect * 100
    digits = 1 if abs(percent) >= 10 else 2  # noqa: PLR2004 - 12.3 % needs no second decimal
    text = f"{abs(percent):.{digits}f} %"
    if not float(text[:-2]):
        return text
    return f"+{text}" if percent > 0 else f"\u2212{text}"


def format_effect_interval(low: float | None, high: float | None) -> str:
    """The bounds of a relative change, such as ``+4.80 … +5.60 %``."""
    if low is None or high is None:
        return NOTHING
    return f"{format_effect(low)[:-2]} … {format_effect(high)}"


def format_moment(moment: datetime) -> str:
    """An instant to the minute, with its time zone."""
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or 'UTC'}"


def gpu_label(name: str, uuid: str) -> str:
    """A GPU by name and the last digits of its UUID, since one machine holds several of a kind."""
    return name if uuid.startswith("cpu:") else f"{name} · {uuid[-_GPU_DIGITS:]}"


def literal(text: str) -> str:
    """Text for a Markdown line: whatever came from a benchmark or a commit must not format it."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()<>#+-.!|~$:&" else letter for letter in text)


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, such as ``1 run`` or ``3 runs``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
