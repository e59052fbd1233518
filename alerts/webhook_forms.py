"""A bulletin as the body of a webhook call: Slack blocks, a Teams card, or JSON for programs.

Text from benchmarks goes into elements that Slack and Teams show as they are (``rich_text`` and
``TextRun``), never into ones that are read as markup: there is nothing to escape, and no mention,
link or emphasis can be made.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from alerts.jsonform import verdict_object
from alerts.message import benchmarks_of
from alerts.next_steps import again_title
from store import shown
from store.outbox_records import Channel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.bulletin import Bulletin, Recovery, Section
    from alerts.message import Row

JSON_VERSION = 1
_SECTIONS_MAX = 5
_ROWS_MAX = 8  # a chat is skimmed; the rest is counted
_TEAMS_BYTES = 26_000  # of blocks; Teams refuses a message of more than 28 kB
_HEADER_MAX = 150  # Slack's limit on a header
_LABEL_LIMIT = 80
_LINE_LIMIT = 500
_COMMAND_LIMIT = 800


def render_body(channel: Channel, bulletin: Bulletin, *, key: str) -> str:
    """The body to post, in ASCII."""
    forms = {Channel.SLACK: slack_object, Channel.TEAMS: teams_object}
    form = forms.get(channel)
    return json.dumps(json_object(bulletin, key=key) if form is None else form(bulletin))


def slack_object(bulletin: Bulletin) -> dict[str, Any]:
    """A Slack message: a header, and one block of rich text for each part."""
    title = shown.visible(bulletin.title, limit=_HEADER_MAX)
    return {
        "text": _slack_escaped(title),  # for notifications; markup is off, and these three always count
        "mrkdwn": False,
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
            *({"type": "rich_text", "elements": list(_slack_part(part))} for part in _parts(bulletin)),
        ],
    }


def teams_object(bulletin: Bulletin) -> dict[str, Any]:
    """An Adaptive Card in the envelope that a workflow's webhook takes."""
    title = _run(f"kernelwatch: {bulletin.title}", weight="Bolder", size="Medium")
    lines = [_run(text, **_TEAMS_STYLES[style]) for part in _parts(bulletin) for style, text in part]
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "msteams": {"width": "Full"},
                    "body": _within_teams_limit([_block(title), *map(_block, lines)]),
                },
            }
        ],
    }


def json_object(bulletin: Bulletin, *, key: str) -> dict[str, Any]:
    """Everything, for programs. Fields are added, never renamed or taken away.

    Names are as they are in the code: whoever shows them escapes them.
    """
    return {
        "version": JSON_VERSION,
        "key": key,
        "kind": bulletin.kind,
        "title": bulletin.title,
        "runs": [_run_object(section) for section in bulletin.sections],
        "recoveries": [_recovery_object(recovery) for recovery in bulletin.recoveries],
    }


_TEAMS_STYLES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strong": {"weight": "Bolder"},
    "code": {"fontType": "Monospace"},
}
_Part = list[tuple[str, str]]  # lines, each with its style: plain, strong or code


def _parts(bulletin: Bulletin) -> Iterable[_Part]:
    for section in bulletin.sections[:_SECTIONS_MAX]:
        yield list(_section(section))
    if len(bulletin.sections) > _SECTIONS_MAX:
        yield [("plain", f"and {len(bulletin.sections) - _SECTIONS_MAX} more runs.")]
    if bulletin.recoveries:
        yield list(_recoveries(bulletin.recoveries))


def _section(section: Section) -> Iterable[tuple[str, str]]:
    message = section.message
    yield "strong", _line(message.answer)
    yield "plain", _line(message.subject)
    yield from (("plain", _line(caveat)) for caveat in message.caveats)
    for row in message.changed[:_ROWS_MAX]:
        yield from _row(row)
    if len(message.changed) > _ROWS_MAX:
        yield "plain", f"and {len(message.changed) - _ROWS_MAX} more changes."
    for item in message.not_measured[:_ROWS_MAX]:
        yield "plain", _line(f"Not measured: {shown.visible(item.label, limit=_LABEL_LIMIT)} {item.why}")
    if len(message.not_measured) > _ROWS_MAX:
        yield "plain", f"and {len(message.not_measured) - _ROWS_MAX} more not measured."
    if message.command is not None:
        yield "plain", f"{again_title(benchmarks_of(message.changed))}:"
        yield "code", shown.visible(message.command, limit=_COMMAND_LIMIT)
    if section.decision is not None:
        yield "plain", f"{section.decision_title}:"
        yield "code", shown.visible(section.decision, limit=_COMMAND_LIMIT)
    if section.left_out is not None:
        yield "plain", section.left_out


def _row(row: Row) -> Iterable[tuple[str, str]]:
    verdict = row.verdict
    quantity = verdict.series.quantity
    before = "" if verdict.baseline is None else f"{shown.interval(verdict.baseline, quantity)} -> "
    yield "code", shown.visible(row.label, limit=_LABEL_LIMIT)
    yield "plain", _line(f"{row.effect}, {row.decided}, tier {verdict.tier}")
    yield "plain", _line(f"{before}{shown.interval(verdict.candidate, quantity)}, {row.compared}")
    if row.sessions is not None:
        yield "plain", _line(f"sessions: {row.sessions}")
    for change in row.kernels:
        yield (
            "plain",
            _line(f"kernel {shown.visible(change.name, limit=_LABEL_LIMIT)} {change.what}"),
        )


def _recoveries(recoveries: Sequence[Recovery]) -> Iterable[tuple[str, str]]:
    yield "strong", "Back at the level from before"
    for recovery in recoveries[:_ROWS_MAX]:
        quantity = recovery.verdict.series.quantity
        now = shown.interval(recovery.point.interval, quantity)
        yield "code", shown.visible(recovery.label, limit=_LABEL_LIMIT)
        yield (
            "plain",
            _line(
                f"{now} at {shown.short(recovery.point.header.commit_sha)}; had regressed to "
                f"{shown.interval(recovery.verdict.candidate, quantity)} with "
                f"{shown.short(recovery.commit_sha)}"
            ),
        )
    if len(recoveries) > _ROWS_MAX:
        yield "plain", f"and {len(recoveries) - _ROWS_MAX} more."


def _block(run: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [run], "spacing": "Small"}


def _within_teams_limit(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many blocks from the top as Teams takes, and a line that counts the rest."""
    kept: list[dict[str, Any]] = []
    room = _TEAMS_BYTES
    for block in blocks:
        room -= len(json.dumps(block)) + 2  # and what parts it from the next
        if room < 0:
            return [*kept, _block(_run(f"and {len(blocks) - len(kept)} more lines."))]
        kept.append(block)
    return kept


def _slack_part(part: _Part) -> Iterable[dict[str, Any]]:
    for style, text in part:
        element: dict[str, Any] = {"type": "text", "text": text}
        if style != "plain":
            element["style"] = {"bold" if style == "strong" else "code": True}
        yield {"type": "rich_text_section", "elements": [element, {"type": "text", "text": "\n"}]}


def _run(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextRun", "text": text, **style}


def _run_object(section: Section) -> dict[str, Any]:
    message = section.message
    header = message.header
    return {
        "run_id": header.run_id,
        "repository": header.repository,
        "commit": header.commit_sha,
        "gpu_uuid": header.gpu_uuid,
        "gpu_name": header.gpu_name,
        "answer": message.answer,
        "compared": message.subject,
        "caveats": list(message.caveats),
        "news": sorted(section.due),
        "changed": [verdict_object(row.verdict) for row in message.changed],
        "not_measured": [
            {"benchmark": item.label, "why": item.why, "quoted": item.quoted} for item in message.not_measured
        ],
        "command": message.command,
    }


def _recovery_object(recovery: Recovery) -> dict[str, Any]:
    point = recovery.point
    return {
        "commit": recovery.commit_sha,
        "regression": verdict_object(recovery.verdict),
        "run_id": point.header.run_id,
        "back_at_commit": point.header.commit_sha,
        "now_ms": {
            "low": point.interval.low,
            "center": point.interval.center,
            "high": point.interval.high,
        },
    }


def _line(text: str) -> str:
    return shown.visible(text, limit=_LINE_LIMIT)


def _slack_escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
