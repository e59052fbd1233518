"""A bulletin as the HTML part of a mail: inline styles, no script, nothing fetched from anywhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from alerts.message import benchmarks_of, by_reason
from alerts.next_steps import again_title
from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.bulletin import Bulletin, Picture, Recovery, Section
    from alerts.message import Message, NotMeasured, Row

_CAVEAT = "margin:0 0 12px;padding:8px 12px;background:#fff8c5"
_PRE = "margin:0 0 16px;padding:8px 12px;background:#f6f8fa;white-space:pre-wrap"
_NAMED_IN_GROUP = 10
_ROWS_MAX = 50  # a mail is read on a phone; the rest is counted
_CELL = "padding:6px 10px;border-bottom:1px solid #d8dee4;text-align:left;vertical-align:top"
_FONT = "font:14px/1.45 -apple-system,Segoe UI,Helvetica,Arial,sans-serif"
_TABLE = f"border-collapse:collapse;margin:0 0 16px;{_FONT}"  # old clients do not hand the font down
_CODE = "font:13px ui-monospace,Consolas,monospace;word-break:break-word;overflow-wrap:anywhere"
_COLOURS = {Outcome.REGRESSED: "#b42318", Outcome.IMPROVED: "#1a7f37"}
_FLAGGED_COLOUR = "#9a6700"


def render_html(bulletin: Bulletin, content_ids: Sequence[str]) -> str:
    """The whole page; ``content_ids`` names the picture of each section, in order."""
    parts = [
        part
        for section, content_id in zip(bulletin.sections, content_ids, strict=True)
        for part in _section(section, content_id)
    ]
    parts += _recoveries(bulletin.recoveries)
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>kernelwatch</title></head>\n'
        '<body style="margin:0;padding:16px;background:#ffffff;color:#1f2328;'
        f'{_FONT}">\n{body}\n</body></html>\n'
    )


def _section(section: Section, content_id: str) -> Iterable[str]:
    """A heading, a table of what changed, the picture, what is missing, the command."""
    message = section.message
    yield f'<h1 style="font-size:18px;margin:0 0 4px">{_safe(message.answer)}</h1>'
    yield f'<p style="margin:0 0 16px;color:#57606a">{_safe(message.subject)}</p>'
    yield from (f'<p style="{_CAVEAT}">{_safe(caveat)}</p>' for caveat in message.caveats)
    yield _table(message.changed)
    yield from _picture(section.picture, content_id)
    yield from _list("Kernels that changed", list(_kernels(message.changed)))
    yield from _list("Second session", list(_sessions(message.changed)))
    yield from _list("Not measured", list(_not_measured(message.not_measured)))
    yield from _list("Inconclusive", list(_inconclusive(message.inconclusive)))
    yield from _unchanged(message)
    yield from _command(again_title(benchmarks_of(message.changed)), message.command)
    yield from _command(section.decision_title, section.decision)
    if section.left_out is not None:
        yield f'<p style="color:#57606a">{_safe(section.left_out)}</p>'


def _recoveries(recoveries: Sequence[Recovery]) -> Iterable[str]:
    if not recoveries:
        return
    yield '<h1 style="font-size:18px;margin:0 0 12px">Back at the level from before</h1>'
    heads = ("Benchmark", "Regressed with", "Before", "Regressed to", "Now", "Measured at")
    head = "".join(f'<th style="{_CELL};font-weight:600">{title}</th>' for title in heads)
    rows = "\n".join(_recovery(recovery) for recovery in recoveries[:_ROWS_MAX])
    yield f'<table style="{_TABLE}"><tr>{head}</tr>\n{rows}</table>'
    if len(recoveries) > _ROWS_MAX:
        yield f"<p>and {len(recoveries) - _ROWS_MAX} more.</p>"


def _recovery(recovery: Recovery) -> str:
    verdict, point = recovery.verdict, recovery.point
    quantity = verdict.series.quantity
    cells = (
        _code(recovery.label),
        _safe(shown.short(recovery.commit_sha)),
        "-" if verdict.baseline is None else _safe(shown.interval(verdict.baseline, quantity)),
        _safe(shown.interval(verdict.candidate, quantity)),
        (
            f'<strong style="color:{_COLOURS[Outcome.IMPROVED]}">'
            f"{_safe(shown.interval(point.interval, quantity))}</strong>"
        ),
        f"{_safe(shown.short(point.header.commit_sha))}<br>{_small(shown.one_line(point.header.gpu_name))}",
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    heads = ("Benchmark", "Baseline", "Candidate", "Change (95&nbsp;%)", "Tier", "Verdict")
    head = "".join(f'<th style="{_CELL};font-weight:600">{title}</th>' for title in heads)
    lines = [f'<table style="{_TABLE}"><tr>{head}</tr>']
    lines += [_row(row) for row in rows[:_ROWS_MAX]]
    lines.append("</table>")
    if len(rows) > _ROWS_MAX:
        lines.append(f"<p>and {len(rows) - _ROWS_MAX} more changes.</p>")
    return "\n".join(lines)


def _row(row: Row) -> str:
    verdict = row.verdict
    confirmed = verdict.standing is Standing.CONFIRMED
    colour = _COLOURS.get(verdict.outcome, "inherit") if confirmed else _FLAGGED_COLOUR
    rests_on = f"{row.compared}, q {shown.probability(verdict.q_value)}"
    cells = (
        _code(row.label),
        "-" if verdict.baseline is None else _safe(shown.interval(verdict.baseline, verdict.series.quantity)),
        _safe(shown.interval(verdict.candidate, verdict.series.quantity)),
        f'<span style="color:{colour}">{_effect(row.effect)}</span>',
        _safe(verdict.tier),
        f'<span style="color:{colour}">{_safe(row.decided)}</span><br>{_small(rests_on)}',
    )
    columns = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
    return f"<tr>{columns}</tr>"


def _picture(picture: Picture | None, content_id: str) -> Iterable[str]:
    if picture is not None:
        yield (
            f'<p><img src="cid:{escape(content_id.strip("<>"))}" alt="{_safe(picture.alt)}" width="640" '
            'style="max-width:100%;height:auto"></p>'
        )


def _kernels(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        for change in row.kernels:
            yield f"{_code(row.label)}: {_code(change.name)} {_safe(change.what)}"


def _sessions(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        if row.sessions is not None:
            yield f"{_code(row.label)}: {_safe(row.sessions)}"


def _not_measured(items: Iterable[NotMeasured]) -> Iterable[str]:
    for item in items:
        quoted = "" if item.quoted is None else f": {_code(shown.one_line(item.quoted))}"
        yield f"{_code(item.label)} {_safe(item.why)}{quoted}"


def _inconclusive(rows: Sequence[Row]) -> Iterable[str]:
    for reason, why, labels in by_reason(rows):
        named = shown.enumerated([_code(label) for label in labels], most=_NAMED_IN_GROUP)
        yield f"{_safe(reason)} ({len(labels)}): {_safe(why)}: {named}"


def _unchanged(message: Message) -> Iterable[str]:
    """How many stand still, and how small a slowdown of theirs would have been seen."""
    if message.unchanged:
        seen = "" if message.sensitivity is None else f": {message.sensitivity}"
        yield f"<p>{len(message.unchanged)} unchanged{_safe(seen)}.</p>"


def _command(title: str, command: str | None) -> Iterable[str]:
    if command is not None:
        yield f'<p style="margin:0 0 4px;font-weight:600">{title}</p>'
        yield f'<pre style="{_PRE}">{_safe(command, limit=2000)}</pre>'


def _list(title: str, items: Sequence[str]) -> Iterable[str]:
    if items:
        kept = "".join(f'<li style="margin:0 0 4px">{item}</li>' for item in items[:_ROWS_MAX])
        more = f"<li>and {len(items) - _ROWS_MAX} more</li>" if len(items) > _ROWS_MAX else ""
        yield f'<p style="margin:0 0 4px;font-weight:600">{title}</p>'
        yield f'<ul style="margin:0 0 16px">{kept}{more}</ul>'


def _effect(effect: str) -> str:
    """The change itself in bold, its interval behind it."""
    change, _, interval = effect.partition(" (")
    return f"<strong>{_safe(change)}</strong>{_safe(f' ({interval}' if interval else '')}"


def _small(text: str) -> str:
    return f'<span style="color:#57606a">{_safe(text)}</span>'


def _code(text: str) -> str:
    return f'<code style="{_CODE}">{_safe(text, limit=120)}</code>'


def _safe(text: str, *, limit: int = 700) -> str:
    return escape(shown.visible(text, limit=limit))
