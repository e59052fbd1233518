"""Rows of text as columns that line up in a terminal: pure."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def aligned(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()
) -> list[str]:
    """The rows below a heading, one text each.

    Args:
        columns: names for the heading.
        rows: cells, as many as there are columns.
        right: names of the columns that line up on the right, as numbers do.
    """
    widths = [max(map(_places, column)) for column in zip(columns, *rows, strict=True)]
    lines = []
    for row in (columns, *rows):
        cells = []
        for name, cell, width in zip(columns, row, widths, strict=True):
            space = " " * (width - _places(cell))
            cells.append(space + cell if name in right else cell + space)
        lines.append("  ".join(cells).rstrip())
    return lines


def _places(text: str) -> int:
    """Columns that a text takes in a terminal: Chinese takes two a character, a combining accent none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
