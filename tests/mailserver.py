"""A real mail server on loopback that keeps what arrives."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiosmtpd.controller import Controller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiosmtpd.smtp import SMTP


@dataclass
class Mailbox:
    """What arrived; turns away the recipients it is told to."""

    refused: frozenset[str] = frozenset()
    received: list[tuple[list[str], bytes, bool]] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        """Take a recipient, or turn it away."""
        del server, session
        if address in self.refused:
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:  # noqa: N802 - as above
        """Keep the mail, and whether it came through TLS."""
        assert server.transport is not None
        encrypted = session.ssl is not None or server.transport.get_extra_info("ssl_object") is not None
        self.received.append((list(envelope.rcpt_tos), envelope.content, encrypted))
        return "250 OK"


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
