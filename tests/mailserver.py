"""A real mail server on loopback that keeps what arrives."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from aiosmtpd.controller import Controller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiosmtpd.smtp import SMTP


class Fault(Enum):
    """How one hand-over goes wrong."""

    NONE = auto()
    CLOSE_BEFORE_DATA = auto()
    DEFER = auto()
    REFUSE = auto()
    DIE_BEFORE_TAKING = auto()  # the whole mail arrived, and is not kept
    DIE_AFTER_TAKING = auto()  # it is kept, and nobody hears of it


_ANSWERS = {Fault.DEFER: "451 4.3.0 try again", Fault.REFUSE: "554 5.7.1 not wanted"}


@dataclass
class Mailbox:
    """What arrived; turns away the recipients it is told to, and fails as it is told to.

    Attributes:
        refused, deferred: recipients that are turned away for good, and for now.
        faults: what happens to the next mails, one each; those after them arrive.
    """

    refused: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()
    faults: deque[Fault] = field(default_factory=deque)
    received: list[tuple[list[str], bytes, bool]] = field(default_factory=list)

    async def handle_MAIL(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        """Begin a mail, or hang up."""
        del session
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        if self.faults and self.faults[0] is Fault.CLOSE_BEFORE_DATA:
            self.faults.popleft()
            _hang_up(server)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        """Take a recipient, or turn it away."""
        del server, session
        if address in self.refused:
            return "550 5.1.1 no such mailbox"
        if address in self.deferred:
            return "450 4.2.1 mailbox busy"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:  # noqa: N802 - as above
        """Keep the mail, and whether it came through TLS."""
        assert server.transport is not None
        fault = self.faults.popleft() if self.faults else Fault.NONE
        if fault in (Fault.NONE, Fault.DIE_AFTER_TAKING):
            encrypted = session.ssl is not None or server.transport.get_extra_info("ssl_object") is not None
            self.received.append((list(envelope.rcpt_tos), envelope.content, encrypted))
        if fault in (Fault.DIE_BEFORE_TAKING, Fault.DIE_AFTER_TAKING):
            _hang_up(server)
        return _ANSWERS.get(fault, "250 OK")


def _hang_up(server: SMTP) -> None:
    assert server.transport is not None
    server.transport.abort()  # type: ignore[attr-defined]  # a transport that can be written to


class _Started(Controller):
    """A controller on a port that the system chooses, known once it listens."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # aiosmtpd leaves it untyped


@contextmanager
def listening(mailbox: Mailbox, **options: Any) -> Iterator[int]:
    """Run a server for ``mailbox``; gives its port. Options are those of aiosmtpd's controller."""
    controller = _Started(mailbox, hostname="localhost", port=0, **options)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()
