"""Handing a mail to a real server on loopback: TLS, log-in, refusals."""

from __future__ import annotations

import socket
import ssl
import threading
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from aiosmtpd.smtp import AuthResult, LoginPassword
from mailserver import Mailbox, listening

from alerts.errors import MailError
from alerts.smtp import Security, Server, send

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRONG = "wrong horse"
PASSWORD = "correct horse"  # noqa: S105 - the password of a server that lives for one test
RECIPIENTS = ["gpu-team@example.org", "Ada <ada@example.org>"]


@dataclass(frozen=True)
class Authority:
    """A certificate authority that no system trusts, and a server certificate by it."""

    file: Path
    server: ssl.SSLContext


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    own = trustme.CA()
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    own.cert_pem.write_to_path(str(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.issue_cert("localhost").configure_cert(context)
    return Authority(file, context)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


def knows_the_password(*arguments: Any) -> AuthResult:
    data = arguments[-1]
    right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=right, handled=False)


@pytest.fixture
def starttls_port(mailbox: Mailbox, authority: Authority) -> Iterator[int]:
    with listening(
        mailbox,
        tls_context=authority.server,
        require_starttls=True,
        auth_required=True,
        authenticator=knows_the_password,
    ) as port:
        yield port


@pytest.fixture
def tls_port(mailbox: Mailbox, authority: Authority) -> Iterator[int]:
    with listening(mailbox, ssl_context=authority.server) as port:
        yield port


@pytest.fixture
def plain_port(mailbox: Mailbox) -> Iterator[int]:
    with listening(mailbox) as port:
        yield port


def a_server(port: int, **changes: Any) -> Server:
    fields: dict[str, Any] = {"host": "localhost", "port": port, "timeout_s": 10.0}
    return Server(**(fields | changes))


def a_login(port: int, authority: Authority, **changes: Any) -> Server:
    fields: dict[str, Any] = {"user": "bot", "password": PASSWORD, "ca_file": authority.file}
    return a_server(port, **(fields | changes))


def a_mail() -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = "softmax is 8.07 % slower"
    mail["From"] = "bot@example.org"
    mail["To"] = ", ".join(RECIPIENTS)
    mail.set_content("details")
    return mail


def test_a_mail_arrives_through_starttls_and_a_log_in(
    starttls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    delivery = send(a_login(starttls_port, authority), a_mail(), RECIPIENTS)

    assert delivery.accepted == ("gpu-team@example.org", "ada@example.org")
    assert delivery.refused == {}
    ((recipients, content, encrypted),) = mailbox.received
    assert recipients == ["gpu-team@example.org", "ada@example.org"]
    assert b"Subject: softmax is 8.07 % slower" in content
    assert encrypted


def test_a_mail_arrives_through_tls_from_the_first_byte(
    tls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    send(a_server(tls_port, security=Security.TLS, ca_file=authority.file), a_mail(), RECIPIENTS)

    assert [encrypted for _, _, encrypted in mailbox.received] == [True]


def test_a_mail_arrives_in_the_clear_only_when_asked_for(plain_port: int, mailbox: Mailbox) -> None:
    send(a_server(plain_port, security=Security.NONE), a_mail(), RECIPIENTS)

    assert [encrypted for _, _, encrypted in mailbox.received] == [False]


@pytest.mark.parametrize("security", [Security.STARTTLS, Security.TLS])
def test_an_authority_that_is_not_trusted_gets_no_mail(
    security: Security, request: pytest.FixtureRequest, mailbox: Mailbox
) -> None:
    port = request.getfixturevalue(f"{security}_port")

    with pytest.raises(MailError, match=r"cannot be trusted .* --ca-file"):
        send(a_server(port, security=security), a_mail(), RECIPIENTS)

    assert mailbox.received == []


def test_a_certificate_for_another_host_gets_no_mail(
    tls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    server = a_server(tls_port, host="127.0.0.1", security=Security.TLS, ca_file=authority.file)

    with pytest.raises(MailError, match="check the host's name"):
        send(server, a_mail(), RECIPIENTS)

    assert mailbox.received == []


def test_a_wrong_password_is_refused_and_never_shown(
    starttls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    with pytest.raises(MailError, match=r"refused the log-in \(535 .*KERNELWATCH_SMTP_PASSWORD") as caught:
        send(a_login(starttls_port, authority, password=WRONG), a_mail(), RECIPIENTS)

    assert WRONG not in str(caught.value)
    assert mailbox.received == []


def test_a_server_that_offers_no_starttls_gets_no_mail(plain_port: int, mailbox: Mailbox) -> None:
    with pytest.raises(MailError, match="lacks what is asked of it"):
        send(a_server(plain_port), a_mail(), RECIPIENTS)

    assert mailbox.received == []


def test_a_recipient_that_is_refused_is_told_apart_from_those_that_are_not(
    plain_port: int, mailbox: Mailbox
) -> None:
    mailbox.refused = frozenset({"ada@example.org"})

    delivery = send(a_server(plain_port, security=Security.NONE), a_mail(), RECIPIENTS)

    assert delivery.accepted == ("gpu-team@example.org",)
    assert delivery.refused == {"ada@example.org": "550 5.1.1 no such mailbox"}


def test_a_mail_that_nobody_may_get_is_an_error(plain_port: int, mailbox: Mailbox) -> None:
    mailbox.refused = frozenset({"gpu-team@example.org", "ada@example.org"})

    with pytest.raises(MailError, match=r"refused every recipient .*550 5\.1\.1 no such mailbox"):
        send(a_server(plain_port, security=Security.NONE), a_mail(), RECIPIENTS)


def test_nobody_listening_is_an_error_that_says_where() -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))  # bound and not listening: connections are refused
        port = taken.getsockname()[1]

        with pytest.raises(MailError, match=rf"localhost:{port} cannot be talked to .*--smtp"):
            send(a_server(port), a_mail(), RECIPIENTS)


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("localhost", 0)) as silent:
        server = a_server(silent.getsockname()[1], timeout_s=0.3)

        with pytest.raises(MailError, match="timed out"):
            send(server, a_mail(), RECIPIENTS)


def test_tls_where_none_is_spoken_names_the_ports(plain_port: int) -> None:
    with pytest.raises(MailError, match=r"does not speak TLS as expected .*port 465"):
        send(a_server(plain_port, security=Security.TLS), a_mail(), RECIPIENTS)


def test_a_server_that_hangs_up_is_an_error() -> None:
    with socket.create_server(("localhost", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            with pytest.raises(MailError, match="cannot be talked to"):
                send(a_server(listener.getsockname()[1]), a_mail(), RECIPIENTS)
        finally:
            thread.join()


def test_a_log_in_without_tls_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(MailError, match="password in the clear"):
        a_server(25, security=Security.NONE, user="bot", password=PASSWORD)


def test_a_log_in_without_a_password_names_the_variable() -> None:
    with pytest.raises(MailError, match="set KERNELWATCH_SMTP_PASSWORD in the environment"):
        a_server(587, user="bot")


def test_the_password_is_in_no_representation() -> None:
    server = a_server(587, user="bot", password=PASSWORD)

    assert PASSWORD not in repr(server)
    assert PASSWORD not in str(server)
