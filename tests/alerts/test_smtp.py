"""Handing a mail to a real server on loopback: TLS, log-in, refusals."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from aiosmtpd.smtp import AuthResult, LoginPassword
from mailserver import Fault, Mailbox, listening

from alerts.errors import MailError
from alerts.smtp import Delivery, Security, Server, place_of, send

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRONG = "wrong horse"
PASSWORD = "correct horse"  # noqa: S105 - the password of a server that lives for one test
SENDER = "bot@example.org"
RECIPIENTS = ["gpu-team@example.org", "ada@example.org"]
MAIL = (
    b"Subject: softmax is 8.07 % slower\r\nFrom: bot@example.org\r\n\r\n"
    b"details\r\n.a line that begins with a dot\r\n"
)


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


def hand_over(server: Server) -> Delivery:
    return send(server, MAIL, sender=SENDER, recipients=RECIPIENTS)


def test_a_mail_arrives_through_starttls_and_a_log_in(
    starttls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    delivery = hand_over(a_login(starttls_port, authority))

    assert delivery.accepted == ("gpu-team@example.org", "ada@example.org")
    assert delivery.refused == {}
    ((recipients, content, encrypted),) = mailbox.received
    assert recipients == ["gpu-team@example.org", "ada@example.org"]
    assert b"Subject: softmax is 8.07 % slower" in content
    assert encrypted


def test_a_mail_arrives_through_tls_from_the_first_byte(
    tls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    hand_over(a_server(tls_port, security=Security.TLS, ca_file=authority.file))

    assert [encrypted for _, _, encrypted in mailbox.received] == [True]


def test_a_mail_arrives_in_the_clear_only_when_asked_for(plain_port: int, mailbox: Mailbox) -> None:
    hand_over(a_server(plain_port, security=Security.NONE))

    assert [encrypted for _, _, encrypted in mailbox.received] == [False]


@pytest.mark.parametrize("security", [Security.STARTTLS, Security.TLS])
def test_an_authority_that_is_not_trusted_gets_no_mail(
    security: Security, request: pytest.FixtureRequest, mailbox: Mailbox
) -> None:
    port = request.getfixturevalue(f"{security}_port")

    with pytest.raises(MailError, match=r"cannot be trusted .* --ca-file"):
        hand_over(a_server(port, security=security))

    assert mailbox.received == []


def test_a_certificate_for_another_host_gets_no_mail(
    tls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    server = a_server(tls_port, host="127.0.0.1", security=Security.TLS, ca_file=authority.file)

    with pytest.raises(MailError, match="check the host's name"):
        hand_over(server)

    assert mailbox.received == []


def test_a_wrong_password_is_refused_and_never_shown(
    starttls_port: int, authority: Authority, mailbox: Mailbox
) -> None:
    with pytest.raises(MailError, match=r"refused the log-in \(535 .*KERNELWATCH_SMTP_PASSWORD") as caught:
        hand_over(a_login(starttls_port, authority, password=WRONG))

    assert WRONG not in str(caught.value)
    assert mailbox.received == []


def test_a_server_that_offers_no_starttls_gets_no_mail(plain_port: int, mailbox: Mailbox) -> None:
    with pytest.raises(MailError, match="lacks what is asked of it"):
        hand_over(a_server(plain_port))

    assert mailbox.received == []


def test_a_recipient_that_is_refused_is_told_apart_from_those_that_are_not(
    plain_port: int, mailbox: Mailbox
) -> None:
    mailbox.refused = frozenset({"ada@example.org"})

    delivery = hand_over(a_server(plain_port, security=Security.NONE))

    assert delivery.accepted == ("gpu-team@example.org",)
    assert delivery.refused == {"ada@example.org": "550 5.1.1 no such mailbox"}


def test_a_recipient_that_is_put_off_is_told_apart_from_one_that_is_refused(
    plain_port: int, mailbox: Mailbox
) -> None:
    mailbox.refused = frozenset({"ada@example.org"})
    mailbox.deferred = frozenset({"gpu-team@example.org"})

    delivery = hand_over(a_server(plain_port, security=Security.NONE))

    assert delivery.accepted == ()
    assert delivery.refused == {"ada@example.org": "550 5.1.1 no such mailbox"}
    assert delivery.deferred == {"gpu-team@example.org": "450 4.2.1 mailbox busy"}
    assert mailbox.received == []


def test_a_mail_arrives_byte_for_byte(plain_port: int, mailbox: Mailbox) -> None:
    hand_over(a_server(plain_port, security=Security.NONE))

    ((_, content, _),) = mailbox.received
    assert content == MAIL


@pytest.mark.parametrize(
    ("fault", "said", "lasting", "uncertain"),
    [
        (Fault.REFUSE, "refused the mail (554 5.7.1 not wanted)", True, False),
        (Fault.DEFER, "refused the mail (451 4.3.0 try again)", False, False),
        (Fault.CLOSE_BEFORE_DATA, "cannot be talked to", False, False),
        (Fault.DIE_BEFORE_TAKING, "had the whole mail and gave no answer", False, True),
        (Fault.DIE_AFTER_TAKING, "had the whole mail and gave no answer", False, True),
    ],
)
def test_how_a_hand_over_ends_says_whether_it_may_have_arrived(
    plain_port: int, mailbox: Mailbox, fault: Fault, said: str, *, lasting: bool, uncertain: bool
) -> None:
    mailbox.faults.append(fault)

    with pytest.raises(MailError) as caught:
        hand_over(a_server(plain_port, security=Security.NONE))

    assert said in str(caught.value)
    assert (caught.value.lasting, caught.value.uncertain) == (lasting, uncertain)
    assert len(mailbox.received) == (fault is Fault.DIE_AFTER_TAKING)


def test_a_server_that_drips_its_answers_is_given_up_at_the_deadline() -> None:
    stopped = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"220 slow\r\n")
            connection.recv(100)
            while not stopped.wait(0.05):
                try:
                    connection.sendall(b"2")
                except OSError:
                    return

    with socket.create_server(("localhost", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        server = a_server(listener.getsockname()[1], security=Security.NONE, deadline_s=0.5)
        try:
            with pytest.raises(MailError, match="cannot be talked to"):
                hand_over(server)
        finally:
            stopped.set()
            thread.join()


def test_a_password_that_the_server_repeats_is_not_shown() -> None:
    server = a_server(587, user="bot", password=PASSWORD)
    encoded = base64.b64encode(f"\0bot\0{PASSWORD}".encode()).decode()

    said = server.said(535, f"5.7.8 no: {PASSWORD} {encoded}\r\n\x1b[31m".encode())

    assert said == r"535 5.7.8 no: *** *** \x1b[31m"


def test_a_traceback_of_a_refused_log_in_holds_no_password(starttls_port: int, authority: Authority) -> None:
    with pytest.raises(MailError) as caught:
        hand_over(a_login(starttls_port, authority, password=WRONG))

    text = "".join(traceback.format_exception(caught.value))
    assert WRONG not in text
    assert base64.b64encode(WRONG.encode()).decode() not in text


@pytest.mark.parametrize(
    ("word", "place"), [("mail.example.org:587", ("mail.example.org", 587)), ("[::1]:25", ("::1", 25))]
)
def test_a_place_is_a_host_and_a_port(word: str, place: tuple[str, int]) -> None:
    assert place_of(word) == place


def test_nobody_listening_is_an_error_that_says_where() -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))  # bound and not listening: connections are refused
        port = taken.getsockname()[1]

        with pytest.raises(MailError, match=rf"localhost:{port} cannot be talked to .*--smtp"):
            hand_over(a_server(port))


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("localhost", 0)) as silent:
        server = a_server(silent.getsockname()[1], timeout_s=0.3)

        with pytest.raises(MailError, match="timed out"):
            hand_over(server)


def test_tls_where_none_is_spoken_names_the_ports(plain_port: int) -> None:
    with pytest.raises(MailError, match=r"does not speak TLS as expected .*port 465"):
        hand_over(a_server(plain_port, security=Security.TLS))


def test_a_server_that_hangs_up_is_an_error() -> None:
    with socket.create_server(("localhost", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            with pytest.raises(MailError, match="cannot be talked to"):
                hand_over(a_server(listener.getsockname()[1]))
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
