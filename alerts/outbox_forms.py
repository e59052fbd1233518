"""The outbox for a terminal: lists, single messages, and what a delivery did."""

from __future__ import annotations

import json
from email import message_from_string, policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

import click

from alerts.errors import DeliveryError
from alerts.terminal import aligned
from store import shown
from store.outbox_records import Channel, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.outbox_delivery import Report
    from store.outbox_records import Entry, Recipient

_KEY_DIGITS = 12
_SUBJECT_LIMIT = 70
_SHOWN_HEADERS = ("From", "To", "Date", "Message-ID", "Subject")


def list_text(entries: Sequence[Entry]) -> str:
    """A table, one line a recipient, oldest message first."""
    if not entries:
        return "the outbox holds no such message"
    heads = ("key", "queued", "channel", "recipient", "state", "tries", "unsure", "subject")
    rows = [
        (
            entry.key[:_KEY_DIGITS],
            f"{entry.queued_at:%Y-%m-%d %H:%M}",
            entry.channel,
            shown.visible(who.address, limit=_SUBJECT_LIMIT),
            who.state,
            str(who.attempts),
            str(who.uncertain),
            shown.visible(entry.subject, limit=_SUBJECT_LIMIT),
        )
        for entry in entries
        for who in entry.recipients
    ]
    return "\n".join(aligned([heads, *rows]))


def entry_text(entry: Entry) -> str:
    """One message: where it stands with each recipient, then what it says."""
    lines = [f"{entry.key}, {entry.kind} by {entry.channel}, queued {entry.queued_at:%Y-%m-%d %H:%M:%S} UTC"]
    lines += [line for who in entry.recipients for line in _recipient_lines(who)]
    return "\n".join([*lines, "", content_text(entry.channel, entry.content)])


def entries_json(entries: Sequence[Entry]) -> str:
    """For programs; without the content."""
    return json.dumps([_entry_object(entry) for entry in entries], indent=2)


def content_text(channel: Channel, content: str) -> str:
    """What a message says: headers and text of a mail, or the JSON of a webhook call."""
    if channel is not Channel.EMAIL:
        return json.dumps(json.loads(content), indent=2)
    mail = message_from_string(content, _class=EmailMessage, policy=policy.default)
    headers = [f"{name}: {shown.one_line(str(mail[name]), limit=1000)}" for name in _SHOWN_HEADERS]
    parts = [part.get_content_type() for part in mail.walk() if not part.is_multipart()]
    body = mail.get_body(("plain",))
    text = "" if body is None else body.get_content()
    return "\n".join([*headers, f"Parts: {', '.join(parts)}", "", text.rstrip(), ""])


def tell_report(report: Report) -> None:
    """Say what a delivery did.

    Raises:
        DeliveryError: something waits or failed; the message says what and why.
    """
    readers: dict[str, list[str]] = {}
    for subject, address in report.sent:
        readers.setdefault(subject, []).append(address)
    for subject, addresses in readers.items():
        click.echo(f"sent {shown.visible(subject)!r} to {', '.join(addresses)}")
    lines = [f"{_about(item)} waits in the outbox: {item[2]}" for item in report.kept]
    lines += [f"{_about(item)} failed: {item[2]}" for item in report.failed]
    if report.uncertain:
        lines.append(
            f"{shown.count(report.uncertain, 'hand-over')} ended without an answer and may arrive twice"
        )
    if report.lost_claims:
        lines.append(f"{shown.count(report.lost_claims, 'recipient')} was taken over by another sender")
    if report.kept:
        lines.append("'alerts outbox send' tries again what waits, once it is due")
    if report.failed:
        lines.append(
            "'alerts outbox list --state failed' shows what failed, 'alerts outbox resend' tries it again"
        )
    if lines:
        raise DeliveryError("\n".join(lines))


def _about(item: tuple[str, str, str]) -> str:
    return f"{shown.visible(item[0], limit=_SUBJECT_LIMIT)!r} for {item[1]}"


def _recipient_lines(who: Recipient) -> Iterable[str]:
    tried = f"{shown.count(who.attempts, 'attempt')}"
    unsure = f", {who.uncertain} of them without an answer" if who.uncertain else ""
    due = f", due {who.due_at:%Y-%m-%d %H:%M:%S} UTC" if who.state is State.QUEUED else ""
    yield f"  {shown.visible(who.address)}: {who.state}, {tried}{unsure}{due}"
    if who.reason:
        yield f"    {shown.one_line(who.reason, limit=600)}"


def _entry_object(entry: Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "kind": entry.kind,
        "channel": entry.channel,
        "audience": entry.audience,
        "subject": entry.subject,
        "queued_at": entry.queued_at.isoformat(),
        "recipients": [
            {
                "recipient": who.address,
                "state": who.state,
                "reason": who.reason,
                "attempts": who.attempts,
                "uncertain": who.uncertain,
                "due_at": who.due_at.isoformat(),
            }
            for who in entry.recipients
        ],
    }
