"""A message as a mail: subject, text and HTML with inline styles, and a picture where there is one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from html import escape
from typing import TYPE_CHECKING

from alerts.message import by_reason
from alerts.terminal import render_text
from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from alerts.message import Message, NotMeasured, Row

_CAVEAT = "margin:0 0 12px;padding:8px 12px;background:#fff8c5"
_PRE = "margin:0 0 16px;padding:8px 12px;background:#f6f8fa;white-space:pre-wrap"
_ROWS_MAX = 50  # a mail is read on a phone; the rest is counted
_SUBJECT_LIMIT = 150
_CELL = "padding:6px 10px;border-bottom:1px solid #d8dee4;text-align:left;vertical-align:top"
_COLOURS = {Outcome.REGRESSED: "#b42318", Outcome.IMPROVED: "#1a7f37"}
_FLAGGED_COLOUR = "#9a6700"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG that is shown in the mail.

    Attributes:
        alt: what it shows, for those who do not see it.
    """

    png: bytes
    alt: str


def compose_mail(
    message: Message,
    *,
    sender: str,
    recipients: Sequence[str],
    picture: Picture | None,
    sent_at: datetime,
) -> EmailMessage:
    """Build the mail. The same run to the same readers has the same Message-ID, however often it is sent."""
    mail = EmailMessage()
    mail["Subject"] = subject(message)
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Date"] = format_datetime(sent_at)
    mail["Message-ID"] = message_id(message.header.run_id, recipients, sender=sender)
    mail["Auto-Submitted"] = "auto-generated"  # keeps out-of-office replies away: RFC 3834
    mail.set_content(render_text(message))
    content_id = mail["Message-ID"].replace("<", "<trend-")
    mail.add_alternative(render_html(message, picture=picture, content_id=content_id), subtype="html")
    html = mail.get_body(("html",))
    if picture is not None and isinstance(html, EmailMessage):
        html.add_related(
            picture.png, "image", "png", cid=content_id, filename="trend.png", disposition="inline"
        )
    return mail


def subject(message: Message) -> str:
    """The answer in five seconds: ``[kernelwatch] softmax +8.1 % slower, 2 more at 1a2b3c4d5``."""
    commit = (
        f"at {shown.short(message.header.commit_sha)} on {shown.one_line(message.header.gpu_name, limit=40)}"
    )
    worst = message.worst
    if worst is None or worst.verdict.effect is None:
        return shown.visible(f"[kernelwatch] {message.answer} {commit}", limit=_SUBJECT_LIMIT)
    confirmed = "" if worst.verdict.standing is Standing.CONFIRMED else " (not confirmed)"
    others = sum(row.verdict.outcome is Outcome.REGRESSED for row in message.changed) - 1
    more = f", {others} more regressed," if others else ""
    label = shown.visible(worst.label, limit=60)
    size = shown.size(worst.verdict.effect)
    return f"[kernelwatch] {label} is {size} slower{confirmed}{more} {commit}"


def message_id(run_id: str, recipients: Sequence[str], *, sender: str) -> str:
    """The same for the same run and readers, so that a mail sent twice is shown once."""
    addresses = sorted(parseaddr(recipient)[1] for recipient in recipients)
    digest = hashlib.sha256("\n".join((run_id, *addresses)).encode()).hexdigest()[:32]
    domain = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    return f"<{digest}@{domain}>"


def render_html(message: Message, *, picture: Picture | None, content_id: str) -> str:
    """The HTML part: a heading, a table of what changed, the picture, what is missing, the command."""
    parts = [
        f'<h1 style="font-size:18px;margin:0 0 4px">{_safe(message.answer)}</h1>',
        f'<p style="margin:0 0 16px;color:#57606a">{_safe(message.subject)}</p>',
        *(f'<p style="{_CAVEAT}">{_safe(caveat)}</p>' for caveat in message.caveats),
        _table(message.changed),
        *_picture(picture, content_id),
        *_list("Kernels that changed", list(_kernels(message.changed))),
        *_list("Not measured", list(_not_measured(message.not_measured))),
        *_list("Inconclusive", list(_inconclusive(message.inconclusive))),
        *_command(message.command),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>kernelwatch</title></head>\n'
        '<body style="margin:0;padding:16px;background:#ffffff;color:#1f2328;'
        f'font:14px/1.45 -apple-system,Segoe UI,Helvetica,Arial,sans-serif">\n{body}\n</body></html>\n'
    )


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    heads = ("Benchmark", "Baseline", "Candidate", "Change (95&nbsp;%)", "Tier", "Verdict")
    head = "".join(f'<th style="{_CELL};font-weight:600">{title}</th>' for title in heads)
    lines = [f'<table style="border-collapse:collapse;margin:0 0 16px"><tr>{head}</tr>']
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


def _not_measured(items: Iterable[NotMeasured]) -> Iterable[str]:
    for item in items:
        quoted = "" if item.quoted is None else f": {_code(shown.one_line(item.quoted))}"
        yield f"{_code(item.label)} {_safe(item.why)}{quoted}"


def _inconclusive(rows: Sequence[Row]) -> Iterable[str]:
    for reason, why, members in by_reason(rows):
        yield f"{_safe(reason)} ({len(members)}): {_reason(why)}"


def _command(command: str | None) -> Iterable[str]:
    if command is not None:
        yield '<p style="margin:0 0 4px;font-weight:600">Measure again</p>'
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


def _reason(why: str) -> str:
    return _safe(shown.one_line(why, limit=600))


def _small(text: str) -> str:
    return f'<span style="color:#57606a">{_safe(text)}</span>'


def _code(text: str) -> str:
    return f'<code style="font:13px ui-monospace,Consolas,monospace">{_safe(text, limit=120)}</code>'


def _safe(text: str, *, limit: int = 700) -> str:
    return escape(shown.visible(text, limit=limit))
