"""A bulletin as a mail: headers, text, HTML, and pictures where there are some."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING

from alerts.email_html import render_html
from alerts.email_text import render_mail_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from alerts.bulletin import Bulletin

_SEVEN_BITS = SMTP.clone(cte_type="7bit")  # what any server takes, and what the outbox keeps


def compose_mail(
    bulletin: Bulletin, *, key: str, sender: str, recipients: Sequence[str], sent_at: datetime
) -> EmailMessage:
    """Build the mail, in ASCII. The same key gives the same Message-ID, however often it is sent."""
    mail = EmailMessage(_SEVEN_BITS)
    mail["Subject"] = f"[kernelwatch] {bulletin.title}"
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Date"] = format_datetime(sent_at)
    mail["Message-ID"] = message_id(key, sender=sender)
    mail["Auto-Submitted"] = "auto-generated"  # keeps out-of-office replies away: RFC 3834
    mail.set_content(render_mail_text(bulletin))
    content_ids = [f"<trend-{index}-{mail['Message-ID'][1:]}" for index in range(len(bulletin.sections))]
    mail.add_alternative(render_html(bulletin, content_ids), subtype="html")
    html = mail.get_body(("html",))
    for section, content_id in zip(bulletin.sections, content_ids, strict=True):
        if section.picture is not None and isinstance(html, EmailMessage):
            html.add_related(
                section.picture.png, "image", "png", cid=content_id, filename="trend.png",
                disposition="inline",
            )  # fmt: skip
    return mail


def message_id(key: str, *, sender: str) -> str:
    """The same for the same message, so that a mail that arrives twice is shown once."""
    domain = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    return f"<{key}@{domain}>"
