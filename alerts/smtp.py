"""Hand a mail to an SMTP server: verified TLS, no password in the clear, errors that say what to do."""

from __future__ import annotations

import base64
import re
import smtplib
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from alerts.errors import MailError
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PASSWORD_VARIABLE = "KERNELWATCH_SMTP_PASSWORD"  # noqa: S105 - the name of a variable, not a password
_PLACE = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/]+):(\d{1,5})")
_PORT_MAX = 65_535
_GO_AHEAD = 354
_TAKEN = 250
_LASTING = 500  # replies from here on are final; those below ask to try again later
_CLOSING = 421
_WORDS_LIMIT = 200


class Security(StrEnum):
    """How the connection is protected."""

    STARTTLS = "starttls"  # begins in the clear and is upgraded before anything is said
    TLS = "tls"  # from the first byte
    NONE = "none"  # not at all: for a relay on the same machine


def place_of(word: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``; an IPv6 address stands in brackets.

    Raises:
        ValueError: it is no such place.
    """
    place = _PLACE.fullmatch(word)
    if place is None or not 0 < int(place[2]) <= _PORT_MAX:
        raise ValueError(f"{word!r} is not HOST:PORT")
    return place[1].strip("[]"), int(place[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where mail is handed over, and how.

    Attributes:
        password: never shown, not even in a traceback's repr.
        ca_file: certificates to trust instead of the system's.
        timeout_s: how long to wait for each answer, in seconds.
        deadline_s: how long one mail may take from the greeting on, in seconds, however slowly the
            server talks.

    Raises:
        MailError: a log-in would be sent in the clear, or half of it is missing.
    """

    host: str
    port: int
    security: Security = Security.STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    timeout_s: float = 30.0
    deadline_s: float = 180.0

    def __post_init__(self) -> None:
        if self.user is not None and self.security is Security.NONE:
            raise MailError(
                f"logging in to {self} would send the password in the clear: use --security starttls or tls"
            )
        if self.user is not None and not self.password:
            raise MailError(
                f"a log-in as {self.user!r} needs a password: set {PASSWORD_VARIABLE} in the environment"
            )

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def said(self, code: int, words: bytes | str) -> str:
        """A server's reply for people: on one line, and without the password, if it was repeated."""
        text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
        if self.password:
            plain = f"\0{self.user}\0{self.password}"
            for secret in (self.password, _base64(self.password), _base64(plain)):
                text = text.replace(secret, "***")
        return f"{code} {shown.one_line(text, limit=_WORDS_LIMIT)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the server took.

    Attributes:
        refused: recipients that were turned away for good, with the server's words.
        deferred: recipients that were turned away for now, with the server's words.
    """

    accepted: tuple[str, ...]
    refused: Mapping[str, str]
    deferred: Mapping[str, str]


def send(server: Server, content: bytes, *, sender: str, recipients: Sequence[str]) -> Delivery:
    """Hand a mail over once.

    Args:
        server: where to.
        content: the mail with its headers, lines ending in CRLF, in ASCII.
        sender: the address that hears of failures.
        recipients: addresses of those who get it.

    Raises:
        MailError: nobody got it, for a reason that is not about one recipient; its attributes
            say whether to try again and whether the server may have taken it all the same.
            Recipients that the server turned away are in the result.
    """
    with _explained(server), _connected(server) as client:
        if server.user is not None and server.password is not None:
            client.login(server.user, server.password)
        client.ehlo_or_helo_if_needed()
        _expect(server, client.mail(sender), _TAKEN)
        turned_away = {}
        for recipient in recipients:
            code, words = client.rcpt(recipient)
            if code == _CLOSING:
                raise smtplib.SMTPServerDisconnected(server.said(code, words))
            if code not in (_TAKEN, 251, 252):  # the server forwards it, or will see
                turned_away[recipient] = (code, server.said(code, words))
        accepted = tuple(recipient for recipient in recipients if recipient not in turned_away)
        if accepted:
            _hand_over(server, client, content)
        with suppress(smtplib.SMTPException, OSError):
            client.quit()  # all is said; a server that hangs up first has taken nothing back
    return Delivery(
        accepted=accepted,
        refused={who: words for who, (code, words) in turned_away.items() if code >= _LASTING},
        deferred={who: words for who, (code, words) in turned_away.items() if code < _LASTING},
    )


def _hand_over(server: Server, client: smtplib.SMTP, content: bytes) -> None:
    """DATA, the mail, the dot, and the answer to it.

    The dot is the last thing that is sent: until all of it was handed to the network the server
    cannot have taken the mail, and from then on until its answer it may have.
    """
    _expect(server, client.docmd("DATA"), _GO_AHEAD)
    stuffed = re.sub(rb"(?m)^\.", b"..", content)
    client.send(stuffed + (b"" if stuffed.endswith(b"\r\n") else b"\r\n") + b".\r\n")
    try:
        answer = client.getreply()
    except (smtplib.SMTPException, OSError) as error:
        raise MailError(
            f"{server} had the whole mail and gave no answer ({_words(error)}): it may have taken it, "
            "and readers may get it twice",
            uncertain=True,
            away=True,
        ) from None
    _expect(server, answer, _TAKEN)


def _expect(server: Server, answer: tuple[int, bytes], code: int) -> None:
    said, words = answer
    if said == _CLOSING:
        raise smtplib.SMTPServerDisconnected(server.said(said, words))
    if said != code:
        raise smtplib.SMTPResponseException(said, server.said(said, words))


@contextmanager
def _connected(server: Server) -> Iterator[smtplib.SMTP]:
    context = ssl.create_default_context(cafile=server.ca_file)
    if server.security is Security.TLS:
        client: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=server.timeout_s, context=context
        )
    else:
        client = smtplib.SMTP(server.host, server.port, timeout=server.timeout_s)
    try:
        with _ended_after(client, server.deadline_s):
            if server.security is Security.STARTTLS:
                client.starttls(context=context)
            yield client
    finally:
        client.close()


@contextmanager
def _ended_after(client: smtplib.SMTP, seconds: float) -> Iterator[None]:
    """Hang up when time is over, so that a server that talks slowly cannot hold a sender for ever."""

    def hang_up() -> None:
        if client.sock is not None:
            with suppress(OSError):
                client.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _explained(server: Server) -> Iterator[None]:
    """Turn what smtplib, ssl and the network raise into what happened, where, and what to do.

    The causes are left out on purpose: a server may have repeated the password in them.
    """
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise MailError(
            f"the certificate of {server} cannot be trusted ({error.verify_message}): check the host's name, "
            "or name the issuing authority with --ca-file",
            away=True,
        ) from None
    except ssl.SSLError as error:
        raise MailError(
            f"{server} does not speak TLS as expected ({error.reason}): port 465 takes --security tls, "
            "ports 587 and 25 --security starttls",
            away=True,
        ) from None
    except smtplib.SMTPAuthenticationError as error:
        raise MailError(
            f"{server} refused the log-in ({server.said(error.smtp_code, error.smtp_error)}): check --user "
            f"and {PASSWORD_VARIABLE}",
            away=True,
        ) from None
    except smtplib.SMTPNotSupportedError as error:
        raise MailError(
            f"{server} lacks what is asked of it ({error}): check --security and --user", away=True
        ) from None
    except smtplib.SMTPResponseException as error:
        raise MailError(
            f"{server} refused the mail ({_reply(server, error)}): check the sender and the recipients",
            lasting=error.smtp_code >= _LASTING and not isinstance(error, smtplib.SMTPConnectError),
            away=isinstance(error, smtplib.SMTPConnectError),
        ) from None
    except (smtplib.SMTPException, OSError) as error:
        raise MailError(
            f"{server} cannot be talked to ({_words(error)}): check --smtp and --security, "
            "and try again later",
            away=True,
        ) from None


def _reply(server: Server, error: smtplib.SMTPResponseException) -> str:
    """The reply in an error: smtplib's own errors hold it raw, those of this module in words."""
    raw = error.smtp_error
    return server.said(error.smtp_code, raw) if isinstance(raw, bytes) else raw


def _words(error: Exception) -> str:
    return shown.one_line(str(error), limit=_WORDS_LIMIT) or type(error).__name__


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
