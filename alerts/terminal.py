"""A message as plain text: for terminals, and for mail readers without HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.message import benchmarks_of, by_reason
from alerts.next_steps import again_title
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.message import Message, NotMeasured, Row

_LABEL_LIMIT = 60
_NAMED_IN_GROUP = 10


def render_text(message: Message) -> str:
    """The message in lines of text; every character of a name can be seen, none drives a terminal."""
    blocks = [
        [message.answer, message.subject],
        list(message.caveats),
        _table([*message.changed, *message.unchanged]),
        list(_kernels(message.changed)),
        _titled("Second session:", list(_sessions(message.changed))),
        list(_inconclusive(message.inconclusive)),
        _titled("Not measured:", list(_not_measured(message.not_measured))),
        _titled(
            f"{again_title(benchmarks_of(message.changed))}:",
            [f"  {message.command}"] if message.command else [],
        ),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    heads = ("benchmark", "baseline", "candidate", "change (95 %)", "q", "tier", "rests on", "verdict")
    return aligned([heads, *(_cells(row) for row in rows)])


def _cells(row: Row) -> tuple[str, ...]:
    verdict = row.verdict
    return (
        shown.visible(row.label, limit=_LABEL_LIMIT),
        "-" if verdict.baseline is None else shown.interval(verdict.baseline, verdict.series.quantity),
        shown.interval(verdict.candidate, verdict.series.quantity),
        row.effect,
        shown.probability(verdict.q_value),
        verdict.tier,
        row.compared,
        row.decided,
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table with every column as wide as its widest cell, one line a row."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _kernels(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        for change in row.kernels:
            yield (
                f"{shown.visible(row.label, limit=_LABEL_LIMIT)}: kernel "
                f"{shown.visible(change.name, limit=_LABEL_LIMIT)} {change.what}"
            )


def _sessions(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        if row.sessions is not None:
            yield f"  {shown.visible(row.label, limit=_LABEL_LIMIT)}: {row.sessions}"


def _inconclusive(rows: Sequence[Row]) -> Iterable[str]:
    for reason, why, labels in by_reason(rows):
        named = [shown.visible(label, limit=_LABEL_LIMIT) for label in labels]
        yield f"Inconclusive, {reason} ({len(labels)}): {why}"
        yield f"  {shown.enumerated(named, most=_NAMED_IN_GROUP)}"


def _not_measured(items: Iterable[NotMeasured]) -> Iterable[str]:
    for item in items:
        quoted = "" if item.quoted is None else f" ({shown.one_line(item.quoted)})"
        yield f"  {shown.visible(item.label, limit=_LABEL_LIMIT)}: {item.why}{quoted}"


def _titled(title: str, lines: list[str]) -> list[str]:
    return [title, *lines] if lines else []
