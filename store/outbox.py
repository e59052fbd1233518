"""The outbox: messages that are to be told to people, kept until each recipient has theirs.

A message is queued once per piece of news and audience, however often it is asked for. A
sender claims a message before it hands it over, so that two senders do not send one twice. A
claim ends by itself: when a sender dies, the message is sent again, and counted as uncertain.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import TYPE_CHECKING

from store.errors import MessageNotFound, StoreInvalid
from store.filters import only
from store.outbox_records import (
    ATTEMPTS_MAX,
    Channel,
    Claim,
    Draft,
    Entry,
    Fact,
    News,
    Recipient,
    Settled,
    State,
)
from store.rows import Row, fetch_rows, from_instant, insert_rows, to_instant

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    import duckdb

    from store.database import Database
    from store.filters import Filter


def queue(database: Database, drafts: Sequence[Draft], *, now: datetime) -> list[str]:
    """Put messages into the outbox, in one transaction, unless all they tell was told before.

    Returns:
        The keys of those that were new.

    Raises:
        StoreInvalid: a draft has no recipient, tells nothing, or is not in ASCII.
        StoreError: the store could not be opened or written.
    """
    for draft in drafts:
        if not draft.recipients or not draft.facts or not draft.content.isascii():
            raise StoreInvalid(
                f"the message {draft.subject!r} cannot be queued: it needs a recipient, news to tell, and "
                "content in ASCII"
            )
    fresh: list[str] = []
    if drafts:
        with database.writing() as connection:
            for draft in drafts:
                told = _told(connection, draft.channel, draft.audience)
                if any(fact.identity not in told for fact in draft.facts):
                    _insert(connection, draft, now)
                    fresh.append(draft.key)
    return fresh


def told(database: Database, channel: Channel, audience: str) -> set[Fact]:
    """What an audience was told, or will be by what waits in the outbox."""
    with database.reading() as connection:
        return set(_told(connection, channel, audience).values())


def last_queued(database: Database, kind: str, channel: Channel, audience: str) -> datetime | None:
    """When a message of this kind was last queued for an audience; None for never."""
    with database.reading() as connection:
        row = connection.execute(
            "select max(queued_at) from outbox where kind = ? and channel = ? and audience = ?",
            [kind, channel, audience],
        ).fetchone()
    return None if row is None or row[0] is None else from_instant(row[0])


def claim(
    database: Database,
    channels: Sequence[Channel],
    *,
    now: datetime,
    lease: timedelta,
    avoided: Collection[str] = (),
) -> Claim | None:
    """Take the message that has been due longest, for one sender alone; None when nothing is due.

    A claim that was never settled and is over is given up first: its sender died, and what it
    sent is uncertain.

    Args:
        database: the store.
        channels: only messages of these.
        now: the time.
        lease: how long the claim holds, unless it is settled before.
        avoided: recipients that are left alone.
    """
    if not channels:
        return None
    due = (
        "select message_key from outbox_recipients join outbox using (message_key) "  # noqa: S608 - question marks alone
        f"where state = 'queued' and due_at <= ? and channel in ({_marks(channels)}) "
        f"{f'and recipient not in ({_marks(avoided)}) ' if avoided else ''}"
        "order by due_at, queued_at, message_key limit 1"
    )
    moment = to_instant(now)
    with database.writing() as connection:
        _give_up_dead(connection, moment)
        found = connection.execute(due, [moment, *channels, *avoided]).fetchone()
        if found is None:
            return None
        (key,) = found
        token = uuid.uuid4().hex
        connection.execute(
            "update outbox_recipients set state = 'sending', attempts = attempts + 1, claim = ?, "
            "claimed_until = ?, changed_at = ? where message_key = ? and state = 'queued' and due_at <= ?",
            [token, to_instant(now + lease), moment, key, moment],
        )
        mine = connection.execute(
            "select recipient, attempts from outbox_recipients where claim = ? order by recipient", [token]
        ).fetchall()
        (entry,) = _entries(connection, key)
    return Claim(token=token, entry=entry, attempts=dict(mine), until=now + lease)


def settle(database: Database, held: Claim, outcome: Mapping[str, Settled], *, now: datetime) -> int:
    """Write down what became of a claim, in one transaction.

    Returns:
        How many recipients were no longer held: the claim was over, and another sender has them.
    """
    lost = 0
    with database.writing() as connection:
        for address, result in outcome.items():
            place = [held.entry.key, address, held.token]
            mine = "message_key = ? and recipient = ? and claim = ?"
            if not connection.execute(f"select 1 from outbox_recipients where {mine}", place).fetchone():  # noqa: S608 - fixed text
                lost += 1
                continue
            connection.execute(
                "update outbox_recipients set state = ?, reason = ?, uncertain = uncertain + ?, due_at = ?, "  # noqa: S608 - fixed text
                f"claim = null, claimed_until = null, changed_at = ? where {mine}",
                [
                    result.state, result.reason, int(result.uncertain), to_instant(result.due_at),
                    to_instant(now), *place,
                ],
            )  # fmt: skip
    return lost


def load_outbox(database: Database, *, states: Sequence[State] | None = None) -> list[Entry]:
    """Messages with a recipient in one of the states, oldest first; all where ``states`` is None."""
    with database.reading() as connection:
        entries = _entries(connection)
    if states is None:
        return entries
    return [entry for entry in entries if any(who.state in states for who in entry.recipients)]


def load_message(database: Database, beginning: str) -> Entry:
    """The message whose key begins so.

    Raises:
        MessageNotFound: none does, or several do.
    """
    found = [entry for entry in load_outbox(database) if beginning and entry.key.startswith(beginning)]
    if len(found) != 1:
        how = "no message" if not found else f"{len(found)} messages"
        raise MessageNotFound(
            f"{how} in the outbox of {database.url} has a key that begins with {beginning!r}: "
            "'alerts outbox list' shows them"
        )
    return found[0]


def requeue(
    database: Database, key: str, *, now: datetime, states: Sequence[State], recipients: Sequence[str] | None
) -> int:
    """Make recipients due at once, with all their attempts before them; says how many.

    Args:
        database: the store.
        key: the whole key of the message.
        now: the time.
        states: only recipients in one of these states.
        recipients: only these; None for all.
    """
    change = "state = 'queued', reason = '', attempts = 0, due_at = ?, changed_at = ?"
    moment = to_instant(now)
    chosen = only({"message_key": [key], "state": states, "recipient": recipients})
    return _change(database, change, [moment, moment], chosen)


def drop(database: Database, key: str, *, now: datetime) -> int:
    """Give up every recipient of a message that still waits; says how many. What it told stays told."""
    waiting = (State.QUEUED, State.FAILED)
    change = "state = 'dropped', changed_at = ?"
    return _change(database, change, [to_instant(now)], only({"message_key": [key], "state": waiting}))


def _change(
    database: Database,
    change: str,
    values: Sequence[datetime],
    chosen: Filter | None,
) -> int:
    if chosen is None:
        return 0
    with database.writing() as connection:
        counted = connection.execute(
            f"select count(*) from outbox_recipients {chosen.where}",  # noqa: S608 - fixed column names
            list(chosen.parameters),
        ).fetchone()
        connection.execute(
            f"update outbox_recipients set {change} {chosen.where}",  # noqa: S608 - fixed column names
            [*values, *chosen.parameters],
        )
    return int(counted[0]) if counted else 0


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" for _ in values)


def _give_up_dead(connection: duckdb.DuckDBPyConnection, moment: datetime) -> None:
    connection.execute(
        "update outbox_recipients set state = case when attempts >= ? then 'failed' else 'queued' end, "
        "uncertain = uncertain + 1, reason = 'its sender ended before it could say how it went', "
        "claim = null, claimed_until = null, due_at = ?, changed_at = ? "
        "where state = 'sending' and claimed_until <= ?",
        [ATTEMPTS_MAX, moment, moment, moment],
    )


def _told(
    connection: duckdb.DuckDBPyConnection, channel: Channel, audience: str
) -> dict[tuple[str, ...], Fact]:
    rows = fetch_rows(
        connection,
        "select outbox_told.* from outbox_told join outbox using (message_key) "
        "where channel = ? and audience = ?",
        [channel, audience],
    )
    facts = [
        Fact(**{name: row[name] for name in Fact.__slots__} | {"kind": News(row["kind"])}) for row in rows
    ]
    return {fact.identity: fact for fact in facts}


def _insert(connection: duckdb.DuckDBPyConnection, draft: Draft, now: datetime) -> None:
    plain = ("kind", "channel", "audience", "subject", "content", "sender", "signed_by")
    row: Row = {"message_key": draft.key, "queued_at": now}
    insert_rows(connection, "outbox", [row | {name: getattr(draft, name) for name in plain}])
    untried: Row = {
        "message_key": draft.key, "state": State.QUEUED, "reason": "", "attempts": 0, "uncertain": 0,
        "due_at": now, "claim": None, "claimed_until": None, "changed_at": now,
    }  # fmt: skip
    recipients = [untried | {"recipient": address} for address in dict.fromkeys(draft.recipients)]
    insert_rows(connection, "outbox_recipients", recipients)
    facts = [
        {"message_key": draft.key, **{name: getattr(fact, name) for name in Fact.__slots__}}
        for fact in draft.facts
    ]
    insert_rows(connection, "outbox_told", facts)


def _entries(connection: duckdb.DuckDBPyConnection, key: str | None = None) -> list[Entry]:
    chosen = only({"message_key": None if key is None else [key]})
    where, parameters = ("", ()) if chosen is None else (chosen.where, chosen.parameters)
    recipients: dict[str, list[Recipient]] = defaultdict(list)
    ordered = f"select * from outbox_recipients {where} order by message_key, recipient"  # noqa: S608 - fixed column names
    for row in fetch_rows(connection, ordered, parameters):
        recipients[row["message_key"]].append(_recipient_of(row))
    ordered = f"select * from outbox {where} order by queued_at, message_key"  # noqa: S608 - fixed column names
    return [
        _entry_of(row, tuple(recipients[row["message_key"]]))
        for row in fetch_rows(connection, ordered, parameters)
    ]


def _recipient_of(row: Row) -> Recipient:
    return Recipient(
        address=row["recipient"],
        state=State(row["state"]),
        reason=row["reason"],
        attempts=row["attempts"],
        uncertain=row["uncertain"],
        due_at=from_instant(row["due_at"]),
        changed_at=from_instant(row["changed_at"]),
    )


def _entry_of(row: Row, recipients: tuple[Recipient, ...]) -> Entry:
    plain = ("kind", "audience", "subject", "content", "sender", "signed_by")
    return Entry(
        **{name: row[name] for name in plain},
        key=row["message_key"],
        channel=Channel(row["channel"]),
        queued_at=from_instant(row["queued_at"]),
        recipients=recipients,
    )
