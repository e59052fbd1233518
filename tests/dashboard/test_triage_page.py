"""The Triage page: what it lists, takes, refuses and says in every state."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run
from busy_store import sha_of
from pages import text_of
from triage_events import an_event

from alerts.deciding import load_changes
from alerts.judging import judge_run
from dashboard.person import person_of
from dashboard.read_only import READ_ONLY_VARIABLE
from dashboard.sign_in import SIGN_IN_VARIABLE
from store.database import Database
from store.runs import save_run
from store.triage import load_triage_events, save_triage_events
from store.triage_events import Action, Scope

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage
    from streamlit.testing.v1 import AppTest

    from alerts.inbox import Change

TODAY = datetime.now(UTC).date()
NASTY = "<script>alert(1)</script> [x](javascript:1) **b**"


@pytest.fixture
def store(busy_store: Database, tmp_path: Path) -> Database:
    """A store of one's own, in which nothing was decided yet."""
    return Database(shutil.copy(busy_store.url, tmp_path / "copy.duckdb"))


@pytest.fixture
def change(store: Database) -> Change:
    """The slower softmax on the first GPU."""
    return next(change for change in load_changes(store) if change.series.case.benchmark == "softmax")


def opened(open_page: OpenPage, store: Database, change: Change, **parameters: str) -> AppTest:
    address = {"series": change.series.id, "sha": change.commit_sha} | parameters
    return open_page(store.url, "triage", **address)


def named(app: AppTest, name: str = "Ada Example") -> AppTest:
    """The page after somebody has typed a name."""
    app.text_input(key="person.widget").set_value(name).run()
    return app


def button(app: AppTest, label: str) -> Any:
    return next(item for item in app.button if item.label == label)


def about(change: Change, action: Action = Action.ACCEPT, **changes: Any) -> Any:
    return an_event(
        action,
        repository=change.repository,
        scope=Scope(benchmark=change.series.case.benchmark),
        commit_sha=change.commit_sha,
        decided_at=datetime.now(UTC),
        **changes,
    )


def test_what_waits_is_listed_worst_first_with_a_link_to_each(open_page: OpenPage, store: Database) -> None:
    app = open_page(store.url, "triage")
    text = text_of(app)

    assert not app.exception
    assert text.index("softmax[") < text.index("attention_decode[")
    assert f"sha={sha_of(7)}" in text
    assert "waits for a decision" in text


def test_a_change_is_accepted_by_name_and_moves_to_the_decided_ones(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    app = named(opened(open_page, store, change))
    app.text_area(key="typed.accept").set_value("wanted: more exact")
    button(app, "Accept").click().run()

    (event,) = load_triage_events(store)
    assert (event.action, event.decided_by, event.body) == (
        Action.ACCEPT,
        "Ada Example",
        "wanted: more exact",
    )
    assert (event.commit_sha, event.scope.parameters) == (sha_of(7), change.series.case.parameters_json)
    assert app.success[0].value.replace("\\", "") == "Stored: accept, this case on every GPU."
    assert app.text_area(key="typed.accept").value == ""
    decided = text_of(open_page(store.url, "triage", show="Decided"))
    assert f"accepted at {sha_of(7)[:9]} by Ada Example" in decided
    assert "softmax[" not in text_of(open_page(store.url, "triage"))


def test_nobody_decides_without_a_name(open_page: OpenPage, store: Database, change: Change) -> None:
    app = opened(open_page, store, change)

    assert button(app, "Accept").disabled
    assert "no decision is anonymous" in text_of(app)
    assert button(named(app, "   "), "Accept").disabled


def test_a_name_is_typed_once_and_kept_on_other_pages(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    app = named(opened(open_page, store, change))
    app.switch_page("views/overview.py").run()
    app.switch_page("views/triage.py")
    app.query_params["series"], app.query_params["sha"] = change.series.id, change.commit_sha
    app.run()

    assert app.text_input(key="person.widget").value == "Ada Example"
    assert not button(app, "Accept").disabled


def test_a_mute_needs_a_reason_and_says_so_without_losing_what_was_typed(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    app = named(opened(open_page, store, change, do="Mute"))
    app.date_input[0].set_value(TODAY + timedelta(days=7))
    button(app, "Mute").click().run()

    assert "needs a text that says why" in text_of(app)
    assert load_triage_events(store) == []
    assert app.date_input[0].value == TODAY + timedelta(days=7)
    app.text_area(key="typed.mute").set_value("driver fault")
    button(app, "Mute").click().run()
    (event,) = load_triage_events(store)
    assert (event.muted_until, event.body) == (TODAY + timedelta(days=7), "driver fault")
    assert "muted until" in text_of(open_page(store.url, "triage", show="Decided"))


def test_assigning_noting_and_linking_leave_a_change_waiting(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    app = named(opened(open_page, store, change, do="Assign"))
    app.text_input(key="typed.assignee").set_value("Grace")
    button(app, "Assign").click().run()
    app = named(opened(open_page, store, change, do="Note"))
    app.text_area(key="typed.note").set_value("since the new launcher")
    button(app, "Note").click().run()
    app = named(opened(open_page, store, change, do="Link"))
    app.text_input(key="typed.url").set_value("https://example.org/issues/7")
    button(app, "Link").click().run()

    text = text_of(opened(open_page, store, change))
    assert [event.action for event in load_triage_events(store)] == [Action.ASSIGN, Action.NOTE, Action.LINK]
    assert "assigned to Grace" in text
    assert "since the new launcher" in text
    assert 'href="https://example.org/issues/7" target="_blank" rel="noopener noreferrer nofollow">' in text


def test_an_address_that_is_none_is_refused(open_page: OpenPage, store: Database, change: Change) -> None:
    app = named(opened(open_page, store, change, do="Link"))
    app.text_input(key="typed.url").set_value("javascript:alert(1)")
    button(app, "Link").click().run()

    assert "no web address" in text_of(app)
    assert load_triage_events(store) == []


def test_a_decision_is_taken_back_and_both_stay_in_the_history(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    save_triage_events(store, [about(change)])
    app = named(opened(open_page, store, change, show="Decided"), "Grace Example")
    next(item for item in app.button if item.label.startswith("Take back")).click().run()

    assert [event.action for event in load_triage_events(store)] == [Action.ACCEPT, Action.REVOKE]
    assert "softmax[" in text_of(open_page(store.url, "triage"))
    history = text_of(open_page(store.url, "triage", show="History"))
    assert "accepted (taken back since)" in history
    assert f"took back {load_triage_events(store)[0].event_id[:8]}" in history


def test_a_read_only_server_shows_decisions_without_a_form(
    open_page: OpenPage, store: Database, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")
    save_triage_events(store, [about(change, Action.NOTE)])

    app = opened(open_page, store, change)

    assert "a known fault of the driver" in text_of(app)
    assert "read only" in text_of(app)
    assert not app.button
    assert not app.text_input
    assert not app.text_area


def test_a_server_that_lost_its_sign_in_believes_no_typed_name(
    open_page: OpenPage, store: Database, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SIGN_IN_VARIABLE, "1")

    app = opened(open_page, store, change)

    assert "Sign-in is out of order" in text_of(app)
    assert "Without sign-in these pages are read only." in text_of(app)
    assert not app.text_input
    assert not app.text_area


def test_a_muted_regression_stays_in_sight_on_the_overview_and_at_its_commit(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    assert "regressed, confirmed, muted" not in text_of(open_page(store.url))
    save_triage_events(store, [about(change, Action.MUTE, muted_until=TODAY)])

    overview, commit = open_page(store.url), open_page(store.url, "commit", sha=change.commit_sha)

    assert "regressed, confirmed, muted" in text_of(overview)
    assert "regressed, confirmed, muted" in text_of(commit)
    assert f"muted until {TODAY} by Ada Example: a known fault of the driver" in text_of(commit)


def test_a_mute_of_an_older_name_stands_beside_the_renamed_benchmark(
    open_page: OpenPage, tmp_path: Path
) -> None:
    database = Database(tmp_path / "renamed.duckdb")
    save_run(database, a_run(9, measurements=(a_measurement("soft_max"),)))
    renamed = a_run(10, measurements=(a_measurement("softmax", renamed_from="soft_max"),))
    save_run(database, renamed)
    judge_run(database, renamed.header.run_id)
    mute = an_event(
        Action.MUTE, scope=Scope(benchmark="soft_max"), muted_until=TODAY, decided_at=datetime.now(UTC)
    )
    save_triage_events(database, [mute])

    text = text_of(open_page(database.url, "commit", sha=renamed.header.commit_sha or ""))

    assert f"muted until {TODAY} by Ada Example: a known fault of the driver" in text


def test_what_people_typed_is_text_wherever_it_stands(
    open_page: OpenPage, store: Database, change: Change
) -> None:
    save_triage_events(
        store,
        [
            about(change, Action.NOTE, body=NASTY, decided_by=NASTY),
            about(change, Action.ASSIGN, assignee=NASTY, number=1),
        ],
    )

    for parameters in ({}, {"show": "History"}):
        text = text_of(opened(open_page, store, change, **parameters))
        assert "<script>alert" not in text.replace("<script>const", "")
        assert "&lt;script&gt;" in text


def test_a_change_that_is_not_stored_says_so_and_leads_back(open_page: OpenPage, store: Database) -> None:
    app = open_page(store.url, "triage", series="0000", sha="ffff")

    assert "no confirmed change of series 0000 at ffff" in text_of(app)
    assert not app.exception


def test_nothing_to_decide_and_nothing_decided_are_said(open_page: OpenPage, tmp_path: Path) -> None:
    save_run(Database(tmp_path / "quiet.duckdb"), a_run())
    url = str(tmp_path / "quiet.duckdb")

    assert "Nothing waits for a decision" in text_of(open_page(url, "triage"))
    assert "Nothing was accepted or muted" in text_of(open_page(url, "triage", show="Decided"))
    assert "No change was confirmed on a branch" in text_of(open_page(url, "triage", show="On branches"))
    assert "Nothing was decided yet" in text_of(open_page(url, "triage", show="History"))


def test_a_store_that_is_missing_says_what_to_do(open_page: OpenPage, tmp_path: Path) -> None:
    assert "There is no store here yet" in text_of(open_page(str(tmp_path / "none.duckdb"), "triage"))


@pytest.mark.parametrize(
    ("claims", "person"),
    [
        ({}, None),
        ({"is_logged_in": False, "name": "Ada"}, None),
        ({"is_logged_in": True, "name": "Ada", "email": "ada@example.org"}, "Ada <ada@example.org>"),
        ({"is_logged_in": True, "email": "ada@example.org"}, "ada@example.org"),
        ({"is_logged_in": True, "sub": "1234"}, "1234"),
        ({"is_logged_in": True}, None),
    ],
)
def test_who_signed_in_is_known_by_name_and_address(claims: dict[str, object], person: str | None) -> None:
    assert person_of(claims) == person
