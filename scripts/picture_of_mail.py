"""Make the pictures of docs/email.md: the mail on real H200 runs with something planted.

    python scripts/picture_of_mail.py

The mail is sent by `alerts email` to a server on this machine, over STARTTLS with a log-in, and
shown as it arrived. Needs the extras alerts and test, and Chromium.
"""

from __future__ import annotations

import html
import os
import ssl
import subprocess
import sys
import tempfile
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import trustme
from aiosmtpd.smtp import AuthResult, LoginPassword
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from mailserver import Mailbox, listening  # noqa: E402 - found after the path is set
from planted_h200 import planted_runs  # noqa: E402

from alerts.cli import alerts  # noqa: E402
from alerts.judging import judge_run  # noqa: E402
from alerts.smtp import PASSWORD_VARIABLE  # noqa: E402
from store.database import Database  # noqa: E402
from store.runs import save_run  # noqa: E402

PICTURES = ROOT / "docs/img"
PASSWORD = "correct horse"  # noqa: S105 - of a server that lives for one picture
HEIGHTS = {"mail-html": 1240, "mail-text": 960}  # what each page needs at this width
PLAIN = "margin:16px;font:13px/1.4 'Liberation Mono',monospace;white-space:pre-wrap;width:76ch"


def knows_the_password(*arguments: Any) -> AuthResult:
    """Let in whoever knows it."""
    data = arguments[-1]
    right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=right, handled=False)


def received(folder: Path) -> EmailMessage:
    """The mail as it arrived."""
    database = Database(folder / "runs.duckdb")
    runs = planted_runs()
    for run in runs:
        save_run(database, run)
    judge_run(database, runs[-2].header.run_id)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    mailbox = Mailbox()
    options: dict[str, Any] = {
        "tls_context": context, "require_starttls": True, "auth_required": True,
        "authenticator": knows_the_password,
    }  # fmt: skip
    with listening(mailbox, **options) as port:
        done = CliRunner().invoke(
            alerts,
            ["email", "--store", database.url, "--to", "GPU team <gpu-team@example.org>", "--from",
             "kernelwatch <kernelwatch@example.org>", "--smtp", f"localhost:{port}", "--user", "bot",
             "--ca-file", str(folder / "ca.pem")],
            env={**os.environ, PASSWORD_VARIABLE: PASSWORD},
        )  # fmt: skip
    print(done.output, end="")
    ((_, content, encrypted),) = mailbox.received
    print("through TLS" if encrypted else "in the clear")
    mail = message_from_bytes(content, _class=EmailMessage, policy=policy.default)
    assert isinstance(mail, EmailMessage)  # noqa: S101 - what the class asked for
    return mail


def pages(mail: EmailMessage) -> dict[str, str]:
    """Both parts as pages, the picture inside, under the headers that a reader sees."""
    shown = "".join(f"<b>{name}:</b> {html.escape(str(mail[name]).strip())}<br>" for name in ("From", "To"))
    head = (
        '<meta charset="utf-8"><div style="padding:12px 16px;background:#f6f8fa;border-bottom:1px solid '
        f'#d8dee4;font:13px/1.5 \'Liberation Sans\',sans-serif"><b style="font-size:16px">'
        f"{html.escape(str(mail['Subject']).strip())}</b><br>{shown}</div>"
    )
    parts = {part.get_content_type(): part for part in mail.walk()}
    page = str(parts["text/html"].get_content())
    picture = parts["image/png"]
    data = "".join(str(picture.get_payload()).split())  # base64 already
    page = page.replace(f"cid:{picture['Content-ID'].strip('<>')}", f"data:image/png;base64,{data}")
    text = html.escape(str(parts["text/plain"].get_content()))
    return {"mail-html": head + page, "mail-text": f'{head}<pre style="{PLAIN}">{text}</pre>'}


def main() -> None:
    """Send, receive and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, page in pages(received(folder)).items():
            (folder / f"{title}.html").write_text(page, encoding="utf-8")
            target = PICTURES / f"{title}.png"
            subprocess.run(
                ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars",
                 f"--window-size=960,{HEIGHTS[title]}",
                 f"--screenshot={target}", (folder / f"{title}.html").as_uri()],
                check=True, capture_output=True,
            )  # fmt: skip
            print(f"wrote {target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
