"""Delivery out of the outbox: at least once to everybody, and twice only where nobody can know."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from mail_trial import random_failures
from mailserver import Fault, Mailbox, listening
from outbox_drafts import NOW, a_draft

from alerts.errors import WebhookError
from alerts.outbox_delivery import LEASE, Outcome, back_off_s, deliver, mail_carrier
from alerts.smtp import Security, Server
from store.database import Database
from store.outbox import claim, load_outbox, queue
from store.outbox_records import ATTEMPTS_MAX, Channel, Claim, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from alerts.outbox_delivery import Carrier, Report

THREE = ("ada@example.org", "bob@example.org", "eve@example.org")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "outbox.duckdb")


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def server(mailbox: Mailbox) -> Iterator[Server]:
    with listening(mailbox) as port:
        yield Server(host="localhost", port=port, security=Security.NONE, timeout_s=10)


def at(database: Database, carrier: Carrier, now: datetime, channel: Channel = Channel.EMAIL) -> Report:
    return deliver(database, {channel: carrier}, rng=random.Random(1), clock=lambda: now)


def states(database: Database) -> dict[str, State]:
    return {who.address: who.state for entry in load_outbox(database) for who in entry.recipients}


def test_what_is_due_is_sent_once(database: Database, server: Server, mailbox: Mailbox) -> None:
    queue(database, [a_draft(1), a_draft(2)], now=NOW)

    first, second = (at(database, mail_carrier(server), NOW) for _ in range(2))

    assert [subject for subject, _ in first.sent] == [entry.subject for entry in load_outbox(database)]
    assert second.sent == []
    assert len(mailbox.received) == 2
    assert set(states(database).values()) == {State.SENT}


def test_of_three_recipients_each_has_a_fate_of_its_own(
    database: Database, server: Server, mailbox: Mailbox
) -> None:
    mailbox.refused, mailbox.deferred = frozenset({THREE[1]}), frozenset({THREE[2]})
    queue(database, [a_draft(recipients=THREE)], now=NOW)

    report = at(database, mail_carrier(server), NOW)
    mailbox.deferred = frozenset()
    at(database, mail_carrier(server), NOW + timedelta(hours=1))

    assert report.failed == [("alert 1", THREE[1], "550 5.1.1 no such mailbox")]
    assert report.kept == [("alert 1", THREE[2], "450 4.2.1 mailbox busy")]
    assert states(database) == {THREE[0]: State.SENT, THREE[1]: State.FAILED, THREE[2]: State.SENT}
    assert [recipients for recipients, _, _ in mailbox.received] == [[THREE[0]], [THREE[2]]]


def test_mail_waits_while_the_server_is_away_and_goes_out_when_it_is_back(
    database: Database, mailbox: Mailbox
) -> None:
    queue(database, [a_draft(number) for number in range(1, 4)], now=NOW)
    with listening(mailbox) as port:
        pass
    away = Server(host="localhost", port=port, security=Security.NONE, timeout_s=1)

    report = at(database, mail_carrier(away), NOW)
    with listening(mailbox) as port:
        back = Server(host="localhost", port=port, security=Security.NONE)
        at(database, mail_carrier(back), NOW + timedelta(minutes=1))

    assert len(report.kept) == 1  # the others were not tried: nobody was there
    assert "cannot be talked to" in report.kept[0][2]
    assert len(mailbox.received) == 3


def test_three_failures_in_a_row_give_the_server_time(
    database: Database, server: Server, mailbox: Mailbox
) -> None:
    mailbox.faults.extend([Fault.DEFER] * 9)
    queue(database, [a_draft(number) for number in range(1, 6)], now=NOW)

    report = at(database, mail_carrier(server), NOW)

    assert len(report.kept) == 3
    assert Counter(entry.recipients[0].attempts for entry in load_outbox(database)) == {1: 3, 0: 2}


def test_a_mail_that_the_server_will_never_take_fails_at_once_and_others_go_on(
    database: Database, server: Server, mailbox: Mailbox
) -> None:
    mailbox.faults.append(Fault.REFUSE)
    queue(database, [a_draft(1), a_draft(2)], now=NOW)

    report = at(database, mail_carrier(server), NOW)

    assert [len(report.failed), len(report.sent), len(report.kept)] == [1, 1, 0]
    assert "554 5.7.1 not wanted" in report.failed[0][2]


@pytest.mark.parametrize(("fault", "copies"), [(Fault.DIE_AFTER_TAKING, 2), (Fault.DIE_BEFORE_TAKING, 1)])
def test_without_an_answer_the_mail_is_sent_again_with_the_same_id_and_counted(
    database: Database, server: Server, mailbox: Mailbox, fault: Fault, copies: int
) -> None:
    mailbox.faults.append(fault)
    queue(database, [a_draft()], now=NOW)

    report = at(database, mail_carrier(server), NOW)
    at(database, mail_carrier(server), NOW + timedelta(hours=1))

    (entry,) = load_outbox(database)
    assert report.uncertain == entry.recipients[0].uncertain == 1
    assert entry.recipients[0].state is State.SENT
    assert [content for _, content, _ in mailbox.received] == [entry.content.encode()] * copies


def test_attempts_end_and_the_reason_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alerts.outbox_delivery.ATTEMPTS_MAX", 3)

    def never(held: Claim) -> Mapping[str, Outcome]:
        raise WebhookError(f"the webhook in ${', '.join(held.attempts)} answered 503: it is tried again")

    queue(database, [a_draft(channel=Channel.SLACK, recipients=("HOOK",))], now=NOW)
    now, passes = NOW, 0
    while states(database)["HOOK"] is State.QUEUED:
        at(database, never, now, Channel.SLACK)
        now, passes = now + timedelta(hours=4), passes + 1

    (entry,) = load_outbox(database)
    assert passes == 3
    assert entry.recipients[0].reason.startswith("given up after 3 attempts: the webhook in $HOOK")


def test_the_other_side_may_ask_for_more_time(database: Database) -> None:
    def busy(held: Claim) -> Mapping[str, Outcome]:
        raise WebhookError(f"{held.entry.subject}: busy", retry_after_s=7200)

    queue(database, [a_draft(channel=Channel.SLACK)], now=NOW)
    at(database, busy, NOW, Channel.SLACK)

    (entry,) = load_outbox(database)
    assert entry.recipients[0].due_at == NOW + timedelta(hours=2)


def test_a_webhook_that_is_away_does_not_hold_up_another(database: Database) -> None:
    tried: list[str] = []

    def one_is_away(held: Claim) -> Mapping[str, Outcome]:
        (variable,) = held.attempts
        tried.append(variable)
        if variable == "AWAY":
            raise WebhookError("cannot be reached", away=True)
        return {variable: Outcome(sent=True)}

    drafts = [
        a_draft(number, channel=Channel.SLACK, audience=name, recipients=(name,))
        for number in range(1, 4)
        for name in ("AWAY", "HERE")
    ]
    queue(database, drafts, now=NOW)
    at(database, one_is_away, NOW, Channel.SLACK)

    assert Counter(tried) == {"AWAY": 1, "HERE": 3}


def test_a_sender_that_was_too_slow_says_that_another_took_over(database: Database) -> None:
    queue(database, [a_draft()], now=NOW)

    def slow(held: Claim) -> Mapping[str, Outcome]:
        assert claim(database, [Channel.EMAIL], now=NOW + LEASE, lease=LEASE) is not None
        return {address: Outcome(sent=True) for address in held.attempts}

    assert at(database, slow, NOW).lost_claims == 1


def test_the_back_off_doubles_up_to_four_hours_with_jitter() -> None:
    rng = random.Random(3)
    waits = [[back_off_s(attempt, rng) for _ in range(200)] for attempt in range(1, ATTEMPTS_MAX + 1)]

    for attempt, seen in enumerate(waits, 1):
        longest = min(60 * 2 ** (attempt - 1), 4 * 3600)
        assert longest / 2 <= min(seen) < 0.6 * longest
        assert 0.9 * longest < max(seen) <= longest


def test_twenty_alerts_arrive_although_the_server_fails_at_random(
    database: Database, server: Server, mailbox: Mailbox
) -> None:
    """None is lost. A duplicate comes from a hand-over without an answer, and from nothing else."""
    trial = random_failures(database, mail_carrier(server), mailbox, alerts=20, seed=20260402)

    assert trial.lost == 0
    assert trial.duplicates == trial.faults[Fault.DIE_AFTER_TAKING] > 0
    assert trial.uncertain == (trial.faults[Fault.DIE_AFTER_TAKING] + trial.faults[Fault.DIE_BEFORE_TAKING])
    entries = load_outbox(database)
    assert {who.state for entry in entries for who in entry.recipients} == {State.SENT}
    assert sum(who.uncertain for entry in entries for who in entry.recipients) == trial.uncertain
