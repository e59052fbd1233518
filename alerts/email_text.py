"""A bulletin as the plain text of a mail: narrow, so that no reader has to wrap a table."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from alerts.message import benchmarks_of, by_reason
from alerts.next_steps import again_title
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.bulletin import Bulletin, Recovery, Section
    from alerts.message import Message, NotMeasured, Row

WIDTH = 76
_LABEL_LIMIT = 70
_NAME_LIMIT = 60
_ROWS_MAX = 50
_NAMED_IN_GROUP = 10


def render_mail_text(bulletin: Bulletin) -> str:
    """The bulletin in lines of at most 76 characters, commands and long names excepted."""
    blocks = [_section(section) for section in bulletin.sections]
    if bulletin.recoveries:
        blocks.append(_recoveries(bulletin.recoveries))
    return f"\n\n{'-' * WIDTH}\n\n".join(blocks) + "\n"


def _section(section: Section) -> str:
    message = section.message
    blocks = [
        [*_wrapped(message.answer), *_wrapped(message.subject)],
        *(_wrapped(caveat) for caveat in message.caveats),
        *_rows(message.changed),
        _titled("Not measured:", [line for item in message.not_measured for line in _not_measured(item)]),
        _titled("Inconclusive:", list(_inconclusive(message.inconclusive))),
        _wrapped(_unchanged(message)),
        _titled(
            f"{again_title(benchmarks_of(message.changed))}:",
            [f"  {message.command}"] if message.command else [],
        ),
        _titled(f"{section.decision_title}:", [f"  {section.decision}"] if section.decision else []),
        _wrapped(section.left_out or ""),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _rows(rows: Sequence[Row]) -> Iterable[list[str]]:
    for row in rows[:_ROWS_MAX]:
        yield [shown.visible(row.label, limit=_LABEL_LIMIT), *_details(row)]
    if len(rows) > _ROWS_MAX:
        yield [f"and {len(rows) - _ROWS_MAX} more changes."]


def _details(row: Row) -> Iterable[str]:
    verdict = row.verdict
    quantity = verdict.series.quantity
    before = "-" if verdict.baseline is None else shown.interval(verdict.baseline, quantity)
    yield f"  {row.decided}, tier {verdict.tier}"
    yield f"  change     {row.effect}"
    yield f"  baseline   {before}"
    yield f"  candidate  {shown.interval(verdict.candidate, quantity)}"
    yield f"  rests on   {row.compared}, q {shown.probability(verdict.q_value)}"
    if row.sessions is not None:
        yield from _wrapped(f"sessions   {row.sessions}", "  ")
    for change in row.kernels:
        yield from _wrapped(f"kernel     {shown.visible(change.name, limit=_NAME_LIMIT)} {change.what}", "  ")


def _recoveries(recoveries: Sequence[Recovery]) -> str:
    blocks = [["Back at the level from before:"]]
    for recovery in recoveries[:_ROWS_MAX]:
        verdict, point = recovery.verdict, recovery.point
        quantity = verdict.series.quantity
        before = "-" if verdict.baseline is None else shown.interval(verdict.baseline, quantity)
        blocks.append(
            [
                shown.visible(recovery.label, limit=_LABEL_LIMIT),
                f"  before     {before}",
                (
                    f"  regressed  {shown.interval(verdict.candidate, quantity)}, with "
                    f"{shown.short(recovery.commit_sha)}"
                ),
                (
                    f"  now        {shown.interval(point.interval, quantity)}, at "
                    f"{shown.short(point.header.commit_sha)}"
                ),
                f"  on         {shown.one_line(point.header.gpu_name, limit=_NAME_LIMIT)}",
            ]
        )
    if len(recoveries) > _ROWS_MAX:
        blocks.append([f"and {len(recoveries) - _ROWS_MAX} more."])
    return "\n\n".join("\n".join(block) for block in blocks)


def _not_measured(item: NotMeasured) -> Iterable[str]:
    quoted = "" if item.quoted is None else f" ({shown.one_line(item.quoted)})"
    yield from _wrapped(f"{shown.visible(item.label, limit=_LABEL_LIMIT)}: {item.why}{quoted}", "  ")


def _inconclusive(rows: Sequence[Row]) -> Iterable[str]:
    for reason, why, labels in by_reason(rows):
        yield from _wrapped(f"{reason} ({len(labels)}): {why}", "  ")
        yield from (f"  {line}" for line in _names(labels))


def _unchanged(message: Message) -> str:
    """How many stand still, and how small a slowdown of theirs would have been seen."""
    if not message.unchanged:
        return ""
    seen = "" if message.sensitivity is None else f": {message.sensitivity}"
    return f"{len(message.unchanged)} unchanged{seen}."


def _names(labels: Sequence[str]) -> list[str]:
    """A list of names, cut short; a name is never broken, since it may be searched for."""
    named = [shown.visible(label, limit=_LABEL_LIMIT) for label in labels[:_NAMED_IN_GROUP]]
    more = len(labels) - len(named)
    return [*(f"  {name}" for name in named), *([f"  and {more} more"] if more else [])]


def _titled(title: str, lines: list[str]) -> list[str]:
    return [title, *lines] if lines else []


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
