"""Hand a mail to an SMTP server: verified TLS, no password in the clear, errors that say what to do."""

from __future__ import annotations

import smtplib
import ssl
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parseaddr
from enum import StrEnum
from typing import TYPE_CHECKING

from alerts.errors import MailError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from email.message import EmailMessage
    from pathlib import Path

PASSWORD_VARIABLE = "KERNELWATCH_SMTP_PASSWORD"  # noqa: S105 - the name of a variable, not a password


class Security(StrEnum):
    """How the connection is protected."""

    STARTTLS = "starttls"  # begins in the clear and is upgraded before anything is said
    TLS = "tls"  # from the first byte
    NONE = "none"  # not at all: for a relay on the same machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where mail is handed over, and how.

    Attributes:
        password: never shown, not even in a traceback's repr.
        ca_file: certificates to trust instead of the system's.
        timeout_s: how long to wait for each answer, in seconds.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the server took.

    Attributes:
        refused: recipients that were turned away, with the server's words.
    """

    accepted: tuple[str, ...]
    refused: Mapping[str, str]


def send(server: Server, mail: EmailMessage, recipients: Sequence[str]) -> Delivery:
    """Hand a mail over once.

    Args:
        server: where to.
        mail: what; its headers are sent as they are.
        recipients: addresses of those who get it.

    Raises:
        MailError: it could not be handed over to anybody. Recipients that the server refused
            while it took others are in the result.
    """
    addresses = [parseaddr(recipient)[1] for recipient in recipients]
    with _explained(server), _connected(server) as client:
        if server.user is not None and server.password is not None:
            client.login(server.user, server.password)
        refused = client.send_message(mail, to_addrs=addresses)
    return Delivery(
        accepted=tuple(address for address in addresses if address not in refused),
        refused={address: _said(code, words) for address, (code, words) in refused.items()},
    )


@contextmanager
def _connected(server: Server) -> Iterator[smtplib.SMTP]:
    context = ssl.create_default_context(cafile=server.ca_file)
    if server.security is Security.TLS:
        with smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout_s, context=context) as client:
            yield client
        return
    with smtplib.SMTP(server.host, server.port, timeout=server.timeout_s) as client:
        if server.security is Security.STARTTLS:
            client.starttls(context=context)
        yield client


@contextmanager
def _explained(server: Server) -> Iterator[None]:
    """Turn what smtplib, ssl and the network raise into what happened, where, and what to do."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise MailError(
            f"the certificate of {server} cannot be trusted ({error.verify_message}): check the host's name, "
            "or name the issuing authority with --ca-file"
        ) from error
    except ssl.SSLError as error:
        raise MailError(
            f"{server} does not speak TLS as expected ({error.reason}): port 465 takes --security tls, "
            "ports 587 and 25 --security starttls"
        ) from error
    except smtplib.SMTPAuthenticationError as error:
        raise MailError(
            f"{server} refused the log-in ({_said(error.smtp_code, error.smtp_error)}): check --user and "
            f"{PASSWORD_VARIABLE}"
        ) from error
    except smtplib.SMTPNotSupportedError as error:
        raise MailError(
            f"{server} lacks what is asked of it ({error}): check --security and --user"
        ) from error
    except smtplib.SMTPRecipientsRefused as error:
        said = "; ".join(
            f"{address}: {_said(code, words)}" for address, (code, words) in error.recipients.items()
        )
        raise MailError(f"{server} refused every recipient ({said}): check the addresses") from error
    except smtplib.SMTPResponseException as error:
        raise MailError(
            f"{server} refused the mail ({_said(error.smtp_code, error.smtp_error)}): check --from and --to"
        ) from error
    except (smtplib.SMTPException, OSError) as error:
        raise MailError(
            f"{server} cannot be talked to ({error}): check --smtp and --security, and try again later"
        ) from error


def _said(code: int, words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return f"{code} {' '.join(text.split())}"
