"""The outbox: queued once, claimed by one sender, never forgotten."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from outbox_drafts import LEASE, NOW, a_draft, a_fact

from store.database import Database
from store.errors import MessageNotFound, StoreInvalid
from store.outbox import claim, drop, last_queued, load_message, load_outbox, queue, requeue, settle, told
from store.outbox_records import Channel, Claim, Recipient, Settled, State

if TYPE_CHECKING:
    from pathlib import Path

SENT = Settled(state=State.SENT, reason="", due_at=NOW)
THREE = ("ada@example.org", "bob@example.org", "eve@example.org")
AFTER_LEASE = NOW + LEASE


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "outbox.duckdb")


def take(database: Database, **changes: object) -> Claim | None:
    now = changes.get("now", NOW)
    assert isinstance(now, type(NOW))
    return claim(database, [Channel.EMAIL], now=now, lease=LEASE)


def taken(database: Database) -> Claim:
    held = take(database)
    assert held is not None
    return held


def the_recipient(database: Database) -> Recipient:
    ((recipient,),) = (entry.recipients for entry in load_outbox(database))
    return recipient


def test_a_message_comes_back_as_it_was_queued(database: Database) -> None:
    draft = a_draft(recipients=THREE, subject="größer \U0001f600", signed_by="SECRET_NAME")

    assert queue(database, [draft], now=NOW) == [draft.key]

    (entry,) = load_outbox(database)
    assert (entry.key, entry.content, entry.subject) == (draft.key, draft.content, draft.subject)
    assert (entry.queued_at, entry.signed_by, entry.channel) == (NOW, "SECRET_NAME", Channel.EMAIL)
    assert [(who.address, who.state, who.attempts) for who in entry.recipients] == [
        (address, State.QUEUED, 0) for address in THREE
    ]


def test_the_same_news_to_the_same_list_is_queued_once_whichever_run_showed_it(database: Database) -> None:
    again = a_draft(facts=(replace(a_fact(), run_id="another run"),))

    assert len(queue(database, [a_draft(), a_draft()], now=NOW)) == 1
    assert queue(database, [again], now=NOW) == []
    assert len(load_outbox(database)) == 1


def test_other_news_another_list_and_another_channel_are_messages_of_their_own(database: Database) -> None:
    drafts = [
        a_draft(1), a_draft(2), a_draft(1, audience="bob@example.org"), a_draft(1, channel=Channel.SLACK),
    ]  # fmt: skip

    assert len(queue(database, drafts, now=NOW)) == len({draft.key for draft in drafts}) == 4


def test_a_message_with_one_new_piece_of_news_is_queued_beside_the_earlier_one(database: Database) -> None:
    queue(database, [a_draft()], now=NOW)

    more = a_draft(facts=(a_fact(), a_fact(series_id="series-2")))

    assert queue(database, [more], now=NOW) == [more.key]
    assert {fact.series_id for fact in told(database, Channel.EMAIL, "ada@example.org")} == {
        "series-1", "series-2",
    }  # fmt: skip


def test_the_key_does_not_depend_on_the_order_of_the_news() -> None:
    facts = (a_fact(1), a_fact(2), a_fact(3))

    assert a_draft(facts=facts).key == a_draft(facts=facts[::-1]).key


@pytest.mark.parametrize("wrong", [{"recipients": ()}, {"facts": ()}, {"content": "größer"}], ids=str)
def test_a_message_that_could_not_be_delivered_is_refused(database: Database, wrong: dict[str, Any]) -> None:
    with pytest.raises(StoreInvalid, match="'alert 1' cannot be queued: it needs a recipient"):
        queue(database, [a_draft(**wrong)], now=NOW)


def test_a_claimed_message_is_nobody_elses(database: Database) -> None:
    queue(database, [a_draft(1), a_draft(2)], now=NOW)

    first, second, third = take(database), take(database), take(database)

    assert first is not None
    assert second is not None
    assert {first.entry.subject, second.entry.subject} == {"alert 1", "alert 2"}
    assert first.attempts == {"ada@example.org": 1}
    assert third is None


def test_a_message_for_another_channel_is_left_alone(database: Database) -> None:
    queue(database, [a_draft(channel=Channel.TEAMS)], now=NOW)

    assert take(database) is None
    assert claim(database, [], now=NOW, lease=LEASE) is None
    assert claim(database, [Channel.SLACK, Channel.TEAMS], now=NOW, lease=LEASE) is not None


def test_what_became_of_each_recipient_is_kept(database: Database) -> None:
    queue(database, [a_draft(recipients=THREE)], now=NOW)
    later = NOW + timedelta(minutes=5)
    outcome = {
        THREE[0]: SENT,
        THREE[1]: Settled(state=State.FAILED, reason="550 no such mailbox", due_at=NOW),
        THREE[2]: Settled(state=State.QUEUED, reason="no answer", due_at=later, uncertain=True),
    }

    assert settle(database, taken(database), outcome, now=NOW) == 0

    (entry,) = load_outbox(database)
    assert [(who.state, who.reason, who.uncertain) for who in entry.recipients] == [
        (State.SENT, "", 0), (State.FAILED, "550 no such mailbox", 0), (State.QUEUED, "no answer", 1),
    ]  # fmt: skip
    assert take(database) is None
    again = take(database, now=later)
    assert again is not None
    assert again.attempts == {THREE[2]: 2}


def test_a_dead_senders_message_is_due_again_and_counted_as_uncertain(database: Database) -> None:
    queue(database, [a_draft()], now=NOW)
    dead = taken(database)

    assert take(database, now=AFTER_LEASE - timedelta(seconds=1)) is None
    again = take(database, now=AFTER_LEASE)

    assert again is not None
    assert again.attempts == {"ada@example.org": 2}
    assert the_recipient(database).uncertain == 1
    assert settle(database, dead, {"ada@example.org": SENT}, now=AFTER_LEASE) == 1
    assert the_recipient(database).state is State.SENDING


def test_a_message_that_kills_every_sender_fails_in_the_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.outbox.ATTEMPTS_MAX", 3)
    queue(database, [a_draft()], now=NOW)
    now, taken_up = NOW, 0
    while take(database, now=now) is not None:
        taken_up += 1
        now += LEASE

    assert taken_up == 3
    assert the_recipient(database).state is State.FAILED
    assert "its sender ended" in the_recipient(database).reason


def test_the_message_that_waited_longest_goes_first(database: Database) -> None:
    for minutes in (2, 1, 3):
        queue(database, [a_draft(minutes)], now=NOW + timedelta(minutes=minutes))

    held = [take(database, now=NOW + timedelta(minutes=9)) for _ in range(3)]

    assert [one.entry.subject for one in held if one] == ["alert 1", "alert 2", "alert 3"]


def test_a_failed_recipient_can_be_tried_again_and_a_sent_one_only_when_asked_for(database: Database) -> None:
    queue(database, [a_draft(recipients=THREE)], now=NOW)
    held = taken(database)
    failed = Settled(state=State.FAILED, reason="550", due_at=NOW)
    settle(database, held, dict(zip(THREE, (SENT, failed, SENT), strict=True)), now=NOW)

    assert requeue(database, held.entry.key, now=NOW, states=[State.FAILED], recipients=None) == 1
    again = taken(database)
    assert again.attempts == {THREE[1]: 1}
    settle(database, again, {THREE[1]: SENT}, now=NOW)
    assert requeue(database, held.entry.key, now=NOW, states=[State.SENT], recipients=THREE[:1]) == 1
    assert taken(database).attempts == {THREE[0]: 2 - 1}


def test_a_dropped_message_is_not_sent_and_not_queued_again(database: Database) -> None:
    (key,) = queue(database, [a_draft()], now=NOW)

    assert drop(database, key, now=NOW) == 1
    assert take(database) is None
    assert queue(database, [a_draft()], now=NOW) == []
    assert the_recipient(database).state is State.DROPPED
    assert drop(database, key, now=NOW) == 0


def test_messages_are_found_by_state_and_by_the_beginning_of_their_key(database: Database) -> None:
    queue(database, [a_draft(1), a_draft(2)], now=NOW)
    held = taken(database)
    settle(database, held, {"ada@example.org": SENT}, now=NOW)

    assert [entry.key for entry in load_outbox(database, states=[State.SENT])] == [held.entry.key]
    assert load_message(database, held.entry.key[:12]).subject == held.entry.subject
    for beginning, said in (("", "no message"), ("zz", "no message")):
        with pytest.raises(MessageNotFound, match=f"{said} in the outbox of .*alerts outbox list"):
            load_message(database, beginning)


def test_the_last_digest_of_an_audience_is_known(database: Database) -> None:
    def last() -> object:
        return last_queued(database, "digest", Channel.EMAIL, "ada@example.org")

    queue(database, [a_draft(1)], now=NOW)
    assert last() is None
    queue(database, [a_draft(2, kind="digest")], now=NOW)
    assert last() == NOW


SENDER = """
import sys
from datetime import UTC, datetime, timedelta
from store.database import Database
from store.outbox import claim
from store.outbox_records import Channel
while held := claim(
    Database(sys.argv[1]), [Channel.EMAIL], now=datetime.now(UTC), lease=timedelta(minutes=10)
):
    print(held.entry.key)
"""


def test_three_senders_at_once_claim_every_message_once(database: Database) -> None:
    queue(database, [a_draft(number) for number in range(1, 13)], now=NOW)
    senders = [
        subprocess.Popen([sys.executable, "-c", SENDER, database.url], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]

    claimed = [key for sender in senders for key in sender.communicate(timeout=60)[0].split()]

    assert [sender.returncode for sender in senders] == [0, 0, 0]
    assert sorted(claimed) == sorted(entry.key for entry in load_outbox(database))
