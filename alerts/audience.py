"""Who is told about which benchmarks: rules by glob, and files of owners. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parseaddr
from enum import StrEnum
from typing import TYPE_CHECKING

from alerts.errors import MailError
from alerts.policy import matches
from store.outbox_records import Channel
from store.records import Tier

if TYPE_CHECKING:
    from datetime import datetime

    from store.records import Case

_ADDRESS = re.compile(r"[^\s@,;<>()\"\\]+@[^\s@,;<>()\"\\]+")


class Digest(StrEnum):
    """How often an audience is told."""

    OFF = "off"  # at once, one message per commit
    DAILY = "daily"
    WEEKLY = "weekly"

    def is_due(self, last: datetime | None, now: datetime) -> bool:
        """Whether one may go out at ``now``, after the last one at ``last``; days and weeks of UTC."""
        if last is None or self is Digest.OFF:
            return True
        if self is Digest.DAILY:
            return now.date() > last.date()
        return now.isocalendar()[:2] > last.isocalendar()[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A glob over the names and the labels of cases, and whether the audience is told about them."""

    benchmarks: str
    told: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """A list of readers.

    Attributes:
        recipients: mail addresses, names allowed; or the name of a webhook's variable.
        rules: the last one that matches a benchmark decides, as in an owner file.
        minimum: the lowest tier worth a message.
        flagged: whether regressions that no fresh session confirmed are told, too.
        signed_by: name of the variable that holds the secret of a JSON webhook.
    """

    channel: Channel
    recipients: tuple[str, ...]
    rules: tuple[Rule, ...] = (Rule(benchmarks="*"),)
    digest: Digest = Digest.OFF
    minimum: Tier = Tier.A
    flagged: bool = False
    signed_by: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The recipients without their names, sorted, each once."""
        if self.channel is not Channel.EMAIL:
            return self.recipients
        return tuple(sorted({parseaddr(recipient)[1] for recipient in self.recipients}))

    @property
    def name(self) -> str:
        """What identifies the list: its addresses."""
        return ", ".join(self.addresses)

    def covers(self, case: Case) -> bool:
        """Whether this audience is told about a case."""
        matching = [rule for rule in self.rules if matches(case, rule.benchmarks)]
        return bool(matching) and matching[-1].told


def one_address(word: str) -> str:
    """The word itself, once it is seen to be one mail address that fits into a header.

    Raises:
        ValueError: it is none.
    """
    address = parseaddr(word)[1]
    if not _ADDRESS.fullmatch(address) or not word.isprintable() or "," in word or not address.isascii():
        raise ValueError(f"{word!r} is not a mail address")
    return word


def owner_audiences(text: str, *, name: str) -> list[tuple[tuple[str, ...], tuple[Rule, ...]]]:
    """The lists of an owner file, each with its rules.

    A line is a glob of benchmark names and the addresses of those who own them; the last line
    that matches a benchmark decides, and one without addresses leaves it without an owner. ``#``
    begins a comment.

    Raises:
        MailError: a word is no address; the message names the line.
    """
    lines: list[tuple[str, tuple[str, ...]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        glob, *words = line.partition("#")[0].split() or [""]
        try:
            addresses = tuple(sorted({one_address(word) for word in words}))
        except ValueError as error:
            raise MailError(
                f"{name}, line {number}: {error}: write a glob of benchmark names, then addresses"
            ) from None
        if glob:
            lines.append((glob, addresses))
    lists = dict.fromkeys(addresses for _, addresses in lines if addresses)
    return [
        (mine, tuple(Rule(benchmarks=glob, told=addresses == mine) for glob, addresses in lines))
        for mine in lists
    ]
