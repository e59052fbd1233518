"""Which confirmed changes wait for a decision, and which verdicts are one change."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from builders import EPOCH, a_commit, a_header, a_run, a_sha, a_verdict
from triage_events import an_event

from alerts.inbox import Change, History, confirmed_changes, decide
from alerts.triage import Decisions
from store.places import Place
from store.records import Outcome, Verdict
from store.triage_events import Action

TODAY = date(2026, 6, 1)
REPOSITORY = "github.com/example/kernels"
SERIES = a_verdict().series.id


def run_id(commit: int, number: int = 0) -> str:
    return a_header(commit, number=number).run_id


def a_history(*branches: tuple[int, int], tip: int = 30) -> History:
    """A straight line of runs; each branch is a commit and where it left the line."""
    commits = {a_sha(number): a_commit(number) for number in range(1, tip + 1)}
    places = {
        run_id(commit, number): Place(repository=REPOSITORY, commit_sha=a_sha(commit), on_base=True)
        for commit in range(1, tip + 1)
        for number in range(2)
    }
    for commit, base in branches:
        commits[a_sha(commit)] = a_commit(commit, parents=(a_sha(base),))
        places[run_id(commit)] = Place(repository=REPOSITORY, commit_sha=a_sha(commit), on_base=False)
    return History.of(REPOSITORY, commits, places)


def confirmed(commit: int, *, number: int = 0, baseline: range = range(1, 7), **changes: Any) -> Verdict:
    """A confirmed regression at a commit, against one run on each commit of a range."""
    ids = tuple(run_id(base) for base in reversed(baseline))
    return a_verdict(a_run(commit, number=number), **{"baseline_run_ids": ids} | changes)


def the_changes(
    verdicts: list[Verdict],
    *events: Any,
    history: History | None = None,
    centers: dict[str, float] | None = None,
) -> list[Change]:
    known = history or a_history()
    found = confirmed_changes(verdicts, known)
    return decide(found, Decisions.of(events), known, {SERIES: centers or {}}, on=TODAY)


def test_two_sessions_and_later_commits_against_the_old_level_are_one_change() -> None:
    again = confirmed(7, number=1, judged_at=EPOCH + timedelta(days=9))
    verdicts = [confirmed(9), again, confirmed(7), confirmed(8, baseline=range(1, 8))]

    (change,) = the_changes(verdicts)

    assert (change.commit_sha, change.seen_at) == (a_sha(7), (a_sha(8), a_sha(9)))
    assert change.verdict.run_id == run_id(7, 1)
    assert change.is_open


def test_a_verdict_against_the_new_level_alone_is_a_change_of_its_own() -> None:
    changes = the_changes([confirmed(7), confirmed(20, baseline=range(10, 20))])

    assert [change.commit_sha for change in changes] == [a_sha(7), a_sha(20)]


def test_faster_and_slower_are_two_changes_and_slower_comes_first() -> None:
    faster = confirmed(9, outcome=Outcome.IMPROVED, effect=-0.5)

    assert [change.commit_sha for change in the_changes([faster, confirmed(7)])] == [a_sha(7), a_sha(9)]


def test_an_accepted_change_is_decided_on_all_commits_that_look_back_behind_it() -> None:
    verdicts = [confirmed(7), confirmed(9, baseline=range(1, 9))]

    (change,) = the_changes(verdicts, an_event(commit=7))
    assert change.accepted == an_event(commit=7)
    (change,) = the_changes(verdicts, an_event(commit=9))
    assert not change.is_open
    (change,) = the_changes(verdicts, an_event(commit=6))  # that moved the level; seven came to confirm it
    assert not change.is_open


def test_what_came_after_an_accepted_change_is_open_again() -> None:
    later = confirmed(20, baseline=range(10, 20))

    first, second = the_changes([confirmed(7), later], an_event(commit=7))

    assert not first.is_open
    assert second.is_open


def test_accepting_a_later_commit_says_nothing_about_an_earlier_change() -> None:
    (change,) = the_changes([confirmed(7)], an_event(commit=12))

    assert change.is_open


def test_a_muted_change_is_decided_and_an_assigned_one_is_not() -> None:
    (muted,) = the_changes([confirmed(7)], an_event(Action.MUTE, commit=3))
    first, second = (an_event(Action.ASSIGN, commit=7, number=n, assignee=who) for n, who in enumerate("ab"))
    (assigned,) = the_changes([confirmed(7)], first, second)

    assert not muted.is_open
    assert (assigned.assigned, assigned.is_open) == (second, True)


def test_notes_and_links_belong_to_the_commits_that_show_the_change() -> None:
    verdicts = [confirmed(7), confirmed(8, baseline=range(1, 8))]
    note, link = an_event(Action.NOTE, commit=7), an_event(Action.LINK, commit=8, number=1)

    (change,) = the_changes(verdicts, note, link, an_event(Action.NOTE, commit=9, number=2))

    assert change.remarks == (note, link)


def test_a_level_that_came_back_is_recovered_whatever_its_verdict_says() -> None:
    still, back = {a_sha(12): 0.2549}, {a_sha(12): 0.2549, a_sha(13): 0.2541}

    (slow,) = the_changes([confirmed(7)], centers={a_sha(7): 0.26} | {a_sha(12): 0.2571})
    assert slow.is_open
    (once,) = the_changes([confirmed(7)], centers=still)
    assert once.recovered_at == a_sha(12)
    (again,) = the_changes([confirmed(7)], centers=back)
    assert again.recovered_at == a_sha(13)
    (relapsed,) = the_changes([confirmed(7)], centers=back | {a_sha(14): 0.26})
    assert relapsed.is_open


def test_a_number_from_before_the_change_or_from_a_branch_recovers_nothing() -> None:
    (change,) = the_changes(
        [confirmed(7)], centers={a_sha(3): 0.25, a_sha(99): 0.25}, history=a_history((99, 6))
    )

    assert change.is_open


def test_what_a_branch_shows_is_told_apart_until_the_branch_is_part_of_the_base() -> None:
    (change,) = the_changes([confirmed(99)], history=a_history((99, 6)))
    assert not change.on_base

    merged = a_history((99, 30))
    merged = History.of(
        REPOSITORY,
        {**merged.commits, a_sha(31): a_commit(31, parents=(a_sha(99),))},
        {**merged.places, run_id(31): Place(repository=REPOSITORY, commit_sha=a_sha(31), on_base=True)},
    )
    (change,) = the_changes([confirmed(99)], history=merged)
    assert change.on_base


def test_verdicts_of_another_repository_or_on_uncommitted_changes_are_left_out() -> None:
    history = a_history()
    elsewhere = replace(history.places[run_id(7)], repository="github.com/somebody/kernels")
    places = {**history.places, run_id(7): elsewhere}

    assert (
        the_changes([confirmed(7), confirmed(88)], history=History.of(REPOSITORY, history.commits, places))
        == []
    )
