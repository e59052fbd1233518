"""Decisions are kept as they were made: nothing is changed, and nothing is taken away."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_header
from triage_events import REPOSITORY, a_revocation, an_event

from store.errors import StoreInvalid
from store.records import CacheState, Case, Quantity, RecordInvalid, SeriesKey
from store.triage import load_triage_events, save_triage_events
from store.triage_events import MUTE_LONGEST, Action, Scope

if TYPE_CHECKING:
    from store.database import Database


def a_series(benchmark: str = "softmax", rows: int = 8, **header: Any) -> SeriesKey:
    case = Case.of(benchmark, {"rows": rows})
    return a_header(**header).series_key(case, Quantity.DEVICE_BUSY, CacheState.COLD)


def test_every_kind_of_event_comes_back_as_it_was_saved_the_oldest_first(database: Database) -> None:
    events = [
        an_event(action, number=number)
        for number, action in enumerate(action for action in Action if action is not Action.REVOKE)
    ]
    narrow = Scope(benchmark="softmax", parameters='{"rows":8}', gpu_uuid="GPU-1", series_id=a_series().id)
    events.append(an_event(number=20, scope=narrow, body="wanted: 'x' <b> \x1b[31m\n"))
    events.append(a_revocation(events[0]))
    save_triage_events(database, [*reversed(events[:-1]), events[-1]])

    assert load_triage_events(database) == events


def test_an_event_that_arrives_twice_is_kept_once(database: Database) -> None:
    save_triage_events(database, [an_event()])
    save_triage_events(database, [an_event(body="another text")])

    assert load_triage_events(database) == [an_event()]


def test_events_are_found_by_repository(database: Database) -> None:
    fork = an_event(number=1, repository="github.com/somebody/kernels")
    save_triage_events(database, [an_event(), fork])

    assert load_triage_events(database, repository=REPOSITORY) == [an_event()]


def test_only_a_decision_that_stands_can_be_taken_back(database: Database) -> None:
    revocation = a_revocation(an_event())
    with pytest.raises(StoreInvalid, match="there is no decision"):
        save_triage_events(database, [an_event(number=9), revocation])
    assert load_triage_events(database) == []
    save_triage_events(database, [an_event(), revocation])

    with pytest.raises(StoreInvalid, match="taken back before"):
        save_triage_events(database, [a_revocation(an_event(), number=51)])
    with pytest.raises(StoreInvalid, match="takes another decision back itself"):
        save_triage_events(database, [a_revocation(revocation, number=52)])
    assert load_triage_events(database) == [an_event(), revocation]


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (Scope(benchmark="softmax"), True),
        (Scope(benchmark="matmul"), False),
        (Scope(benchmark="softmax", parameters='{"rows":8}'), True),
        (Scope(benchmark="softmax", parameters='{"rows":16}'), False),
        (Scope(benchmark="softmax", gpu_uuid=a_series().gpu_uuid), True),
        (Scope(benchmark="softmax", gpu_uuid="GPU-other"), False),
        (Scope(benchmark="softmax", series_id=a_series().id), True),
        (Scope(benchmark="softmax", series_id=a_series(rows=16).id), False),
    ],
)
def test_a_scope_covers_the_series_that_fit_all_its_parts(scope: Scope, *, covered: bool) -> None:
    assert scope.covers(a_series()) is covered


def test_a_scope_reads_like_a_case_and_names_what_narrows_it() -> None:
    scope = Scope(benchmark="softmax", parameters='{"dtype":"bf16","rows":8}', gpu_uuid="GPU-1")

    assert scope.label == "softmax[dtype=bf16, rows=8] on GPU-1"
    assert Scope(benchmark="softmax", series_id="ab12").label == "softmax (series ab12)"


DECIDED = (EPOCH + timedelta(days=2)).date()


@pytest.mark.parametrize(
    ("action", "changes", "words"),
    [
        (Action.MUTE, {"muted_until": None}, "mute needs muted_until"),
        (Action.MUTE, {"body": None}, "needs a text that says why"),
        (Action.MUTE, {"muted_until": DECIDED - timedelta(days=1)}, "over already"),
        (Action.MUTE, {"muted_until": DECIDED + MUTE_LONGEST + timedelta(days=1)}, "longer than a year"),
        (Action.NOTE, {"body": " \n"}, "the message is empty"),
        (Action.NOTE, {"body": "x" * 2001}, "at most 2000"),
        (Action.ACCEPT, {"muted_until": DECIDED}, "muted_until belongs to mute, not to accept"),
        (Action.ASSIGN, {"assignee": None}, "assign needs assignee"),
        (Action.ASSIGN, {"assignee": ""}, "who shall look at it is empty"),
        (Action.LINK, {"url": "javascript:alert(1)"}, "no web address"),
        (Action.LINK, {"url": "https:///issues"}, "no web address"),
        (Action.LINK, {"url": "https://[::1/issues"}, "no web address"),
        (Action.LINK, {"url": "https://a.example/\nHost: b"}, "control characters"),
        (Action.LINK, {"url": "https://ada:secret@example.org/1"}, "user name or password"),
        (Action.ACCEPT, {"commit_sha": "abc"}, "not a full commit id"),
        (Action.ACCEPT, {"decided_by": " "}, "who decides is empty"),
        (Action.ACCEPT, {"decided_at": EPOCH.replace(tzinfo=None)}, "no time zone"),
        (Action.ACCEPT, {"event_id": "1"}, "no UUID"),
        (Action.REVOKE, {}, "revoke needs revokes"),
    ],
)
def test_an_event_that_says_too_little_or_too_much_is_refused(
    action: Action, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(RecordInvalid, match=words):
        an_event(action, **changes)


def test_a_mute_may_end_today_or_in_a_year() -> None:
    for until in (DECIDED, DECIDED + MUTE_LONGEST):
        assert an_event(Action.MUTE, muted_until=until).muted_until == until
    assert date(2026, 3, 4) == DECIDED


def test_a_scope_without_a_benchmark_is_refused() -> None:
    with pytest.raises(RecordInvalid, match="name it"):
        Scope(benchmark="")
