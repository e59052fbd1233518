"""What the Triage page reads and writes: decisions, and the changes they are about."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from alerts import deciding
from alerts.excuses import excuse_of
from alerts.triage import Decisions
from alerts.triage_words import excuse_words
from dashboard.queries import LOCK_DEADLINE_S, Stamp, renames, stamp, store_url
from store import triage as store_triage
from store.database import Database
from store.older_names import NO_RENAMES
from store.triage_events import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from alerts.inbox import Change
    from store.older_names import Renames
    from store.records import SeriesPoint, Verdict
    from store.triage_events import Action, TriageEvent

_cached = st.cache_data(ttl=60, max_entries=8, show_spinner="Reading the store …")


def changes() -> list[Change]:
    """Every confirmed change with what became of it, worst first."""
    url = store_url()
    return _changes(url, stamp(url), datetime.now(UTC).date())


def events() -> list[TriageEvent]:
    """Every event, oldest first."""
    url = store_url()
    return _events(url, stamp(url))


def excuses(judged: Iterable[tuple[SeriesPoint, Verdict | None]]) -> dict[tuple[str, str], str]:
    """Why verdicts are no alarm, such as ``muted until 2027-01-31 by Ada: why``: by run and series.

    Args:
        judged: points with their verdicts; those that nobody excused are left out.
    """
    known: dict[str, list[TriageEvent]] = defaultdict(list)
    for event in events():
        known[event.repository].append(event)
    decisions = {repository: Decisions.of(about) for repository, about in known.items()}
    asked = [
        (point, verdict)
        for point, verdict in judged
        if verdict is not None and point.header.repository in known
    ]
    older: dict[str, Renames] = {}
    for repository in known:
        runs = sorted({point.header.run_id for point, _ in asked if point.header.repository == repository})
        older |= renames(repository, runs)
    today = datetime.now(UTC).date()
    found = {}
    for point, verdict in asked:
        about = decisions[point.header.repository].following(older.get(point.header.run_id, NO_RENAMES))
        excuse = excuse_of(verdict, point.header, about, on=today)
        if excuse is not None:
            found[(point.header.run_id, point.series.id)] = excuse_words(excuse)
    return found


def scopes_of(change: Change) -> dict[str, Scope]:
    """What a decision about a change may cover, by its words, the usual first."""
    series = change.series
    case = Scope(benchmark=series.case.benchmark, parameters=series.case.parameters_json)
    here = Scope(benchmark=case.benchmark, parameters=case.parameters, gpu_uuid=series.gpu_uuid)
    return {
        "this case on every GPU": case,
        "this case on this GPU alone": here,
        "every case of this benchmark": Scope(benchmark=case.benchmark),
    }


def decide(action: Action, change: Change, scope: Scope, *, by: str, **fields: Any) -> list[TriageEvent]:
    """Store a decision about a change; see ``alerts.deciding.record`` for what it raises."""
    about = deciding.Target(
        repository=change.repository, commit_sha=change.commit_sha, scopes=(scope,), series=(change.series,)
    )
    return deciding.record(_database(store_url()), action, about, by=by, **fields)


def take_back(event: TriageEvent, *, by: str) -> TriageEvent:
    """Store that a decision no longer holds; see ``alerts.deciding.revoke`` for what it raises."""
    return deciding.revoke(_database(store_url()), event.event_id, by=by)


def _database(url: str) -> Database:
    return Database(url, lock_deadline_s=LOCK_DEADLINE_S)


# The stamp is an argument of every cached function although none reads it: it is the part
# of the key that changes when the store does. The day ends mutes.


@_cached
def _changes(url: str, stamp: Stamp, day: date) -> list[Change]:  # noqa: ARG001 - key
    return deciding.load_changes(_database(url))


@_cached
def _events(url: str, stamp: Stamp) -> list[TriageEvent]:  # noqa: ARG001 - key
    return store_triage.load_triage_events(_database(url))
