"""What was decided about a benchmark under its old name holds for the new one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run, a_sha, a_verdict
from click.testing import CliRunner, Result
from triage_events import an_event

from alerts.cli import alerts
from alerts.deciding import load_changes
from alerts.triage import Decisions
from store.database import Database
from store.older_names import Renames
from store.records import Case
from store.runs import save_run
from store.triage import save_triage_events
from store.triage_events import Action, Scope, TriageEvent

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Run, SeriesKey

TODAY = datetime.now(UTC).date()
OLD, NEW = "soft_max", "softmax"
SLOWER_AT, RENAMED_AT = 15, 16
RENAMED = [(OLD, NEW)]
NEW_SERIES: SeriesKey = a_verdict().series
OLD_SERIES = replace(NEW_SERIES, case=Case(OLD, NEW_SERIES.case.parameters))


def slower(commit: int, number: int) -> Run:
    """A session on a commit since which it is 4 % slower; from ``RENAMED_AT`` on under the new name."""
    seed = 100 * commit + number
    if commit < RENAMED_AT:
        return a_run(commit, number=number, measurements=(a_measurement(OLD, median_ms=0.26, seed=seed),))
    measurement = a_measurement(NEW, median_ms=0.26, seed=seed, renamed_from=OLD)
    return a_run(commit, number=number, measurements=(measurement,))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen commits, one that is slower, and one that does nothing but rename."""
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, SLOWER_AT):
        save_run(Database(path), a_run(commit, measurements=(a_measurement(OLD, seed=commit),)))
    for commit in (SLOWER_AT, RENAMED_AT):
        for number in range(2):
            save_run(Database(path), slower(commit, number))
            judged(str(path), commit, number)
    return path


@pytest.fixture
def store(history: Path, tmp_path: Path) -> Database:
    return Database(shutil.copy(history, tmp_path / "copy.duckdb"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, list(arguments))


def judged(url: str, commit: int = RENAMED_AT, number: int = 1) -> Result:
    run_id = slower(commit, number).header.run_id
    return run("judge", "--store", url, "--run", run_id, "--fail-on", "regression", "--format", "json")


def decide(store: Database, action: Action, **changes: Any) -> None:
    event = an_event(
        action,
        commit=SLOWER_AT,
        repository=a_run().header.repository,
        scope=Scope(benchmark=OLD),
        decided_at=datetime.now(UTC),
        **changes,
    )
    save_triage_events(store, [event])


def waiting(store: Database) -> list[str]:
    return [change.series.case.benchmark for change in load_changes(store) if change.is_open]


def test_a_mute_of_the_old_name_excuses_the_new_one_everywhere(store: Database) -> None:
    before = judged(store.url)
    assert (before.exit_code, set(waiting(store))) == (1, {NEW, OLD})

    decide(store, Action.MUTE, muted_until=TODAY + timedelta(days=7))

    after = judged(store.url)
    assert after.exit_code == 0, after.output
    (row,) = json.loads(after.stdout)["verdicts"]
    assert (row["benchmark"].partition("[")[0], row["muted"]["body"]) == (NEW, "a known fault of the driver")
    assert waiting(store) == []
    mail = run(
        "email", "--store", store.url, "--dry-run", "--to", "a@example.org", "--run",
        slower(RENAMED_AT, 1).header.run_id,
    )  # fmt: skip
    assert "1 regression muted" in mail.output


def test_a_change_accepted_under_the_old_name_is_decided_under_the_new_one(store: Database) -> None:
    decide(store, Action.ACCEPT)

    changes = load_changes(store)

    assert waiting(store) == []
    assert {(c.series.case.benchmark, c.accepted.commit_sha) for c in changes if c.accepted} == {
        (NEW, a_sha(SLOWER_AT)),
        (OLD, a_sha(SLOWER_AT)),
    }
    (event,) = {change.accepted for change in changes}
    assert event is not None
    assert all(change.concerns(event) for change in changes)


def test_a_mute_of_the_old_name_is_ended_by_the_new_one(store: Database) -> None:
    words = (NEW, "--at", a_sha(RENAMED_AT), "--store", store.url, "--as", "Ada")
    assert "softmax is not muted" in run("triage", "unmute", *words).output
    decide(store, Action.MUTE, muted_until=TODAY + timedelta(days=7))

    done = run("triage", "unmute", *words)

    assert done.exit_code == 0, done.output
    assert waiting(store) == [NEW]


def mute_of(**scope: Any) -> TriageEvent:
    return an_event(Action.MUTE, scope=Scope(benchmark=OLD, **scope))


@pytest.mark.parametrize(
    ("event", "measured", "holds"),
    [
        (mute_of(), [NEW], True),
        (mute_of(parameters=NEW_SERIES.case.parameters_json), [NEW], True),
        (mute_of(series_id=OLD_SERIES.id), [NEW], True),
        (mute_of(parameters='{"rows": 2}'), [NEW], False),
        (mute_of(), [NEW, OLD], False),  # the old name was not given up: it is another benchmark
    ],
)
def test_a_decision_follows_the_name_with_all_that_narrows_it(
    event: TriageEvent, measured: list[str], *, holds: bool
) -> None:
    decisions = Decisions.of([event]).following(Renames.of(RENAMED, measured))

    assert (decisions.mute(NEW_SERIES, on=date(2026, 6, 1)) is not None) is holds


def test_of_decisions_under_both_names_the_newest_counts() -> None:
    decisions = Decisions.of(
        [
            an_event(Action.UNMUTE, number=2, scope=Scope(benchmark=NEW)),
            an_event(Action.MUTE, number=3, scope=Scope(benchmark=OLD)),
            an_event(Action.MUTE, number=1, scope=Scope(benchmark=OLD)),
        ]
    ).following(Renames.of(RENAMED, [NEW]))

    assert [event.action for event in decisions.about(NEW_SERIES)] == [
        Action.MUTE, Action.UNMUTE, Action.MUTE,
    ]  # fmt: skip
    assert decisions.mute(NEW_SERIES, on=date(2026, 6, 1)) is not None
