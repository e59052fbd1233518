"""Numbers and names as people read them. Nothing here is parsed again."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

from store.records import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Interval

_UNITS = ((1e3, "s"), (1.0, "ms"), (1e-3, "us"), (1e-6, "ns"))
_SIGNIFICANT = 4
_TEN_PERCENT = 0.1
_TIMES = "x"  # the unit of a ratio: 1.234x
SHORT_SHA = 9
SMALLEST_PROBABILITY = 0.001  # three digits say enough; all smaller ones are shown alike


def duration(milliseconds: float) -> str:
    """Four significant digits in the unit that suits: ``250.3 us``."""
    return amount(milliseconds, Quantity.ELAPSED)


def amount(value: float, quantity: Quantity) -> str:
    """What was measured, with four significant digits: ``250.3 us``, or ``1.234x`` of a ratio."""
    scale, unit = unit_of(value, quantity)
    return with_unit(digits_of(value / scale), unit)


def interval(value: Interval, quantity: Quantity) -> str:
    """Centre and bounds in the centre's unit: ``250.3 us (249.9 to 250.8)``."""
    if value.center is None:
        return "no number"
    if value.bounds is None:
        return f"{amount(value.center, quantity)} (no interval)"
    scale, unit = unit_of(value.center, quantity)
    low, center, high = (digits_of(bound / scale) for bound in value.bounds)
    return f"{with_unit(center, unit)} ({low} to {high})"


def bounds(value: Interval, quantity: Quantity) -> str:
    """Bounds alone, in the centre's unit: ``249.9 to 250.8 us``."""
    if value.bounds is None:
        return "no interval"
    low, center, high = value.bounds
    scale, unit = unit_of(center, quantity)
    return f"{digits_of(low / scale)} to {with_unit(digits_of(high / scale), unit)}"


def change(relative: float) -> str:
    """A relative change with its sign: ``+3.02 %``."""
    # Adding zero turns -0.0 into 0.0: -0.001 % reads +0.00 %, not -0.00 %.
    if abs(relative) >= _TEN_PERCENT:
        return f"{round(100 * relative, 1) + 0.0:+.1f} %"
    return f"{round(100 * relative, 2) + 0.0:+.2f} %"


def size(relative: float) -> str:
    """A relative change without its sign: ``3.02 %``."""
    return change(abs(relative)).removeprefix("+")


def share(relative: float) -> str:
    """A bound such as the smallest change seen, rounded up so that it never promises too much."""
    digits = 1 if relative >= _TEN_PERCENT else 2
    steps = 10**digits
    return f"{-(-100 * relative * steps // 1) / steps:.{digits}f} %"


def probability(value: float | None) -> str:
    """A p- or q-value: ``0.03``, ``<0.001`` or ``n/a`` where nothing varied."""
    if value is None:
        return "n/a"
    return f"<{SMALLEST_PROBABILITY}" if value < SMALLEST_PROBABILITY else f"{value:.2g}"


def count(number: int, noun: str) -> str:
    """A number with its noun: ``1 run``, ``3 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def enumerated(words: Sequence[str], *, most: int) -> str:
    """The first words, and how many are left out: ``gather, softmax and 3 more``."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{', '.join(words[:most])}{more}"


def short(sha: str | None) -> str:
    """The first digits of a commit id."""
    return "no commit" if sha is None else sha[:SHORT_SHA]


def visible(text: str, *, limit: int = 300) -> str:
    """Text on one line in which every character can be seen, cut at ``limit`` characters.

    Names and messages come from benchmarks. Control characters would drive a terminal, line
    breaks would leave the table, and direction marks would make a name read as another one.
    """
    seen = "".join(character if _harmless(character) else _escaped(character) for character in text)
    return seen if len(seen) <= limit else f"{seen[: limit - 3]}..."


def one_line(text: str, *, limit: int = 300) -> str:
    """A paragraph on one line: runs of white space become one space, the rest is made visible."""
    return visible(re.sub(r"\s+", " ", text).strip(), limit=limit)


def _harmless(character: str) -> bool:
    return character == " " or unicodedata.category(character)[0] in "LMNPS"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def unit_of(value: float, quantity: Quantity) -> tuple[float, str]:
    """The largest unit in which a duration reads at least 1: its length in milliseconds, and its name.

    A ratio is shown as it is.
    """
    if quantity is Quantity.RATIO:
        return 1.0, _TIMES
    size = abs(value) * (1 + 0.5 * 10**-_SIGNIFICANT)  # 999.96 us reads 1.000 ms
    return next(((scale, unit) for scale, unit in _UNITS if size >= scale), _UNITS[-1])


def with_unit(digits: str, unit: str) -> str:
    """Digits and unit as they are written: ``250.3 us``, but ``1.234x``."""
    return digits + unit if unit == _TIMES else f"{digits} {unit}"


def digits_of(value: float) -> str:
    """Fixed notation with four significant digits, whatever the size."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    magnitude = math.floor(math.log10(abs(float(f"{value:.{_SIGNIFICANT}g}"))))
    return f"{value:.{max(_SIGNIFICANT - 1 - magnitude, 0)}f}"
