"""What the outbox holds: messages, their recipients, and the news they tell."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

ATTEMPTS_MAX = 24  # with the back-off of docs/email.md: three days, which outlasts a weekend


class Channel(StrEnum):
    """How a message travels."""

    EMAIL = "email"
    SLACK = "slack"
    TEAMS = "teams"
    JSON = "json"


class State(StrEnum):
    """How far the delivery to one recipient is."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"


class News(StrEnum):
    """What a message tells of a series."""

    REGRESSION = "regression"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Fact:
    """One piece of news: a series regressed with a commit, or is back after it had.

    Attributes:
        commit_sha: the commit that the regression came with, also of a recovery.
        run_id: the run that showed it. Another run that shows the same is no news.
    """

    kind: News
    repository: str
    commit_sha: str
    series_id: str
    run_id: str

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes it the same news, whichever run showed it."""
        return self.kind, self.repository, self.commit_sha, self.series_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message before it is queued.

    Attributes:
        kind: regression, recovery or digest.
        audience: who is addressed, such as the sorted addresses of a list; news is told once to each.
        recipients: mail addresses, or the name of the variable that holds a webhook's URL.
        subject: one line for whoever looks into the outbox.
        content: the message as it goes over the wire, in ASCII.
        sender: the address in a mail's envelope; empty for a webhook.
        signed_by: name of the variable that holds the secret of a signature, or None.
        facts: what it tells.
    """

    kind: str
    channel: Channel
    audience: str
    recipients: tuple[str, ...]
    subject: str
    content: str
    sender: str = ""
    signed_by: str | None = None
    facts: tuple[Fact, ...]

    @property
    def key(self) -> str:
        """The same for the same news to the same audience."""
        return message_key(self.kind, self.channel, self.audience, self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """How far the delivery of a message to one recipient is.

    Attributes:
        reason: why it is not sent yet or failed, in words; empty when there is nothing to say.
        attempts: how often a sender took it up.
        uncertain: how many attempts ended without an answer; each may have arrived all the same.
        due_at: when it is to be tried next.
        changed_at: when the state was last changed.
    """

    address: str
    state: State
    reason: str
    attempts: int
    uncertain: int
    due_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message in the outbox. Attributes are those of the draft it was made from."""

    key: str
    kind: str
    channel: Channel
    audience: str
    subject: str
    content: str
    sender: str
    signed_by: str | None
    queued_at: datetime
    recipients: tuple[Recipient, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A message that one sender has for itself until ``until``.

    Attributes:
        token: names the claim; only its holder can settle it.
        attempts: recipients that are to get it now, each with the number of this attempt, from 1.
    """

    token: str
    entry: Entry
    attempts: Mapping[str, int]
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of one recipient of a claim.

    Attributes:
        state: SENT, FAILED, or QUEUED to try again at ``due_at``.
        uncertain: nobody knows whether the other side took it.
    """

    state: State
    reason: str
    due_at: datetime
    uncertain: bool = False


def message_key(kind: str, channel: Channel, audience: str, facts: Sequence[Fact]) -> str:
    """The id of a message: 32 hexadecimal digits, the same for the same news to the same audience."""
    told = sorted("\t".join(fact.identity) for fact in facts)
    return hashlib.sha256("\n".join((kind, channel, audience, *told)).encode()).hexdigest()[:32]
