"""Deliver what waits in the outbox: claim, hand over, write down what became of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from alerts.errors import DeliveryError
from alerts.smtp import send
from alerts.webhook import post
from store import shown
from store.outbox import claim, settle
from store.outbox_records import ATTEMPTS_MAX, Channel, Settled, State

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from alerts.smtp import Server
    from store.database import Database
    from store.outbox_records import Claim

LEASE = timedelta(
    minutes=10
)  # more than any hand-over takes: a mail has three minutes, a call thirty seconds
_FIRST_S, _LONGEST_S = 60.0, 4 * 3600.0
_FAILURES_MAX = 3  # in a row: then the other side is given time
_REASON_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one attempt came to for one recipient.

    Attributes:
        reason: why it is not sent; empty when it is.
        lasting: trying again cannot help.
        uncertain: it may have arrived although nobody said so.
        retry_after_s: how long the other side asked to wait, in seconds.
    """

    sent: bool
    reason: str = ""
    lasting: bool = False
    uncertain: bool = False
    retry_after_s: float = 0.0


class Carrier(Protocol):
    """Hands a claimed message over to everybody it is claimed for."""

    def __call__(self, held: Claim) -> Mapping[str, Outcome]:
        """What it came to, by recipient.

        Raises:
            DeliveryError: it came to the same for all of them.
        """


@dataclass(slots=True)
class Report:
    """What a delivery did, by message and recipient.

    Attributes:
        sent: subject and recipient of what was taken.
        kept: subject, recipient and reason of what waits for another attempt.
        failed: the same of what was given up.
        uncertain: hand-overs without an answer; each of these may arrive twice.
        lost_claims: recipients that another sender took over, since this one was too slow.
    """

    sent: list[tuple[str, str]] = field(default_factory=list)
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    uncertain: int = 0
    lost_claims: int = 0


def deliver(
    database: Database,
    carriers: Mapping[Channel, Carrier],
    *,
    rng: random.Random,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Report:
    """Send what is due, the longest waiting first, until nothing is or the other side is away.

    Args:
        database: the store.
        carriers: how messages of each channel are handed over; those of other channels wait.
        rng: for the jitter of the back-off.
        clock: gives the time.
    """
    report, failures = Report(), Counter[str]()
    open_channels, avoided = dict(carriers), set[str]()
    while held := claim(database, list(open_channels), now=clock(), lease=LEASE, avoided=avoided):
        place = held.entry.channel if held.entry.channel is Channel.EMAIL else ", ".join(held.attempts)
        outcomes, away = _attempt(open_channels[held.entry.channel], held)
        failures[place] = 0 if any(outcome.sent for outcome in outcomes.values()) else failures[place] + 1
        now = clock()
        settled = {
            address: _settled(outcome, held.attempts[address], now, rng)
            for address, outcome in outcomes.items()
        }
        report.lost_claims += settle(database, held, settled, now=now)
        _note(report, held, settled)
        if (away or failures[place] >= _FAILURES_MAX) and held.entry.channel is Channel.EMAIL:
            del open_channels[Channel.EMAIL]
        elif away or failures[place] >= _FAILURES_MAX:
            avoided |= set(held.attempts)
    return report


def mail_carrier(server: Server) -> Carrier:
    """Hands mails over to an SMTP server."""

    def carry(held: Claim) -> Mapping[str, Outcome]:
        content = held.entry.content.encode("ascii")
        recipients = sorted(held.attempts)
        delivery = send(server, content, sender=held.entry.sender, recipients=recipients)
        return {
            **{address: Outcome(sent=True) for address in delivery.accepted},
            **{
                address: Outcome(sent=False, reason=words, lasting=True)
                for address, words in delivery.refused.items()
            },
            **{address: Outcome(sent=False, reason=words) for address, words in delivery.deferred.items()},
        }

    return carry


def webhook_carrier(environment: Mapping[str, str]) -> Carrier:
    """Posts messages to the webhooks whose URLs the environment holds."""

    def carry(held: Claim) -> Mapping[str, Outcome]:
        (variable,) = held.attempts
        post(
            held.entry.content,
            key=held.entry.key,
            url_variable=variable,
            signed_by=held.entry.signed_by,
            environment=environment,
            now=datetime.now(UTC),
        )
        return {variable: Outcome(sent=True)}

    return carry


def back_off_s(attempt: int, rng: random.Random) -> float:
    """Seconds until the next attempt: doubling from a minute up to four hours, up to half of it random.

    The jitter keeps runners that lost the same server from coming back at the same moment.
    """
    longest = min(_FIRST_S * 2.0 ** min(attempt - 1, 30), _LONGEST_S)
    return longest * rng.uniform(0.5, 1.0)


def _attempt(carrier: Carrier, held: Claim) -> tuple[Mapping[str, Outcome], bool]:
    try:
        return carrier(held), False
    except DeliveryError as error:
        outcome = Outcome(
            sent=False,
            reason=shown.one_line(str(error), limit=_REASON_LIMIT),
            lasting=error.lasting,
            uncertain=error.uncertain,
            retry_after_s=error.retry_after_s,
        )
        return dict.fromkeys(held.attempts, outcome), error.away


def _settled(outcome: Outcome, attempt: int, now: datetime, rng: random.Random) -> Settled:
    if outcome.sent:
        return Settled(state=State.SENT, reason="", due_at=now)
    if outcome.lasting:
        return Settled(state=State.FAILED, reason=outcome.reason, due_at=now, uncertain=outcome.uncertain)
    if attempt >= ATTEMPTS_MAX:
        reason = f"given up after {attempt} attempts: {outcome.reason}"
        return Settled(state=State.FAILED, reason=reason, due_at=now, uncertain=outcome.uncertain)
    wait_s = max(back_off_s(attempt, rng), outcome.retry_after_s)
    due_at = now + timedelta(seconds=wait_s)
    return Settled(state=State.QUEUED, reason=outcome.reason, due_at=due_at, uncertain=outcome.uncertain)


def _note(report: Report, held: Claim, settled: Mapping[str, Settled]) -> None:
    for address, result in settled.items():
        report.uncertain += result.uncertain
        if result.state is State.SENT:
            report.sent.append((held.entry.subject, address))
        elif result.state is State.FAILED:
            report.failed.append((held.entry.subject, address, result.reason))
        else:
            report.kept.append((held.entry.subject, address, result.reason))
