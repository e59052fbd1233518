"""Triage events in the store: added, never changed and never taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.errors import StoreInvalid
from store.filters import only
from store.rows import Row, fetch_rows, from_instant, insert_rows
from store.triage_events import Action, Scope, TriageEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from store.database import Database

_PLAIN = (
    "event_id", "repository", "action", "commit_sha", "body", "assignee", "url", "muted_until", "revokes",
    "decided_by", "decided_at",
)  # fmt: skip
_SCOPE = ("benchmark", "parameters", "gpu_uuid", "series_id")
_WITH_ID = "select * from triage_events where event_id = ?"
_REVOKED = "select count(*) from triage_events where revokes = ?"


def save_triage_events(database: Database, events: Sequence[TriageEvent]) -> None:
    """Add events in one transaction, all or none; one that is there already is left as it is.

    Raises:
        StoreInvalid: one takes back an event that does not exist, is a revocation itself, or
            was taken back before.
        StoreError: the store could not be opened or written.
    """
    with database.writing() as connection:
        for event in events:
            if fetch_rows(connection, _WITH_ID, [event.event_id]):
                continue
            if event.revokes is not None:
                _check_revocable(connection, event.revokes)
            insert_rows(connection, "triage_events", [_row(event)])


def load_triage_events(database: Database, *, repository: str | None = None) -> list[TriageEvent]:
    """All events, those that were taken back included, oldest first.

    Args:
        database: the store.
        repository: only those about this repository; None for all.
    """
    chosen = only({"repository": None if repository is None else [repository]})
    if chosen is None:
        return []
    with database.reading() as connection:
        rows = fetch_rows(
            connection,
            f"select * from triage_events {chosen.where} order by decided_at, event_id",  # noqa: S608 - fixed column names
            chosen.parameters,
        )
    return [_event_of(row) for row in rows]


def _check_revocable(connection: duckdb.DuckDBPyConnection, event_id: str) -> None:
    found = fetch_rows(connection, _WITH_ID, [event_id])
    if not found:
        raise StoreInvalid(f"there is no decision {event_id} to take back")
    if found[0]["action"] == Action.REVOKE:
        raise StoreInvalid(f"{event_id} takes another decision back itself: decide anew instead")
    again = connection.execute(_REVOKED, [event_id]).fetchone()
    if again is not None and again[0]:
        raise StoreInvalid(f"the decision {event_id} was taken back before")


def _row(event: TriageEvent) -> Row:
    until = event.muted_until
    return {
        **{name: getattr(event, name) for name in _PLAIN},
        **{name: getattr(event.scope, name) for name in _SCOPE},
        "muted_until": None if until is None else until.isoformat(),
    }


def _event_of(row: Row) -> TriageEvent:
    return TriageEvent(
        **{name: row[name] for name in _PLAIN}
        | {"action": Action(row["action"]), "decided_at": from_instant(row["decided_at"])},
        scope=Scope(**{name: row[name] for name in _SCOPE}),
    )
