"""Alerts through a mail server that fails at random: what arrived, how often, and why."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass
from datetime import timedelta
from email import message_from_bytes
from functools import partial
from typing import TYPE_CHECKING

from mailserver import Fault, Mailbox
from outbox_drafts import NOW, a_draft

from alerts.outbox_delivery import Carrier, deliver
from store.outbox import load_outbox, queue
from store.outbox_records import Channel, State

if TYPE_CHECKING:
    from datetime import datetime

    from store.database import Database

# In a hundred hand-overs.
CHANCES = {
    Fault.NONE: 70,
    Fault.CLOSE_BEFORE_DATA: 8,
    Fault.DEFER: 8,
    Fault.DIE_BEFORE_TAKING: 7,
    Fault.DIE_AFTER_TAKING: 7,
}
BETWEEN = timedelta(hours=4)  # longer than any back-off


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it.

    Attributes:
        lost: alerts that never arrived.
        duplicates: copies beyond the first.
        uncertain: hand-overs without an answer, as the sender counted them.
        faults: what the server did, counted.
        passes: how often somebody came to send.
    """

    lost: int
    duplicates: int
    uncertain: int
    faults: Counter[Fault]
    passes: int


def random_failures(
    database: Database, carrier: Carrier, mailbox: Mailbox, *, alerts: int, seed: int
) -> Trial:
    """Queue alerts, and send until none waits; the server draws a fault for each hand-over."""
    rng = random.Random(seed)
    queue(database, [a_draft(number) for number in range(1, alerts + 1)], now=NOW)
    plan = rng.choices(list(CHANCES), list(CHANCES.values()), k=10 * alerts)
    mailbox.faults = deque(plan)
    now, uncertain, passes = NOW, 0, 0
    while load_outbox(database, states=[State.QUEUED, State.SENDING]):
        report = deliver(database, {Channel.EMAIL: carrier}, rng=rng, clock=partial(_at, now))
        uncertain += report.uncertain
        now, passes = now + BETWEEN, passes + 1
    arrived = Counter(str(message_from_bytes(content)["Subject"]) for _, content, _ in mailbox.received)
    return Trial(
        lost=sum(f"alert {number}" not in arrived for number in range(1, alerts + 1)),
        duplicates=sum(arrived.values()) - len(arrived),
        uncertain=uncertain,
        faults=Counter(plan[: len(plan) - len(mailbox.faults)]),
        passes=passes,
    )


def _at(moment: datetime) -> datetime:
    return moment
