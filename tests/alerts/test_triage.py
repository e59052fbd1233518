"""What decisions mean for a series: the newest that covers it counts."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import permutations

from builders import a_commit, a_point, a_sha
from judgements import a_line
from triage_events import a_revocation, an_event

from alerts.triage import Decisions, in_force
from store.commits import merges_of
from store.triage_events import Action, Scope

SERIES = a_point().series
OTHER = a_point(benchmark="matmul").series
LAST_DAY = date(2026, 6, 30)
COMMITS = {a_sha(number): a_commit(number) for number in range(1, 21)}
MERGES = merges_of(COMMITS)


def test_an_event_that_was_taken_back_counts_nowhere() -> None:
    accepted = an_event()
    revoked = (accepted, a_revocation(accepted))

    assert in_force(revoked) == ()
    assert Decisions.of(revoked).cut(SERIES, a_line(), MERGES) is None


def test_a_baseline_begins_at_the_accepted_change_nearest_to_what_is_judged() -> None:
    old, new = an_event(commit=8), an_event(commit=14)

    for events in permutations([old, new, an_event(commit=25)]):
        cut = Decisions.of(events).cut(SERIES, a_line(20), MERGES)
        assert cut is not None
        assert (cut.commit_sha, cut.event) == (a_sha(14), new)


def test_a_change_that_was_accepted_for_another_benchmark_or_line_cuts_nothing() -> None:
    assert Decisions.of([an_event()]).cut(OTHER, a_line(), MERGES) is None
    assert Decisions.of([an_event(commit=21)]).cut(SERIES, a_line(20), MERGES) is None


def test_a_change_that_was_accepted_on_a_branch_cuts_at_the_merge_that_brought_it_in() -> None:
    merge = a_commit(12, parents=(a_sha(11), a_sha(77)))
    cut = Decisions.of([an_event(commit=77)]).cut(SERIES, a_line(), merges_of(COMMITS | {merge.sha: merge}))

    assert cut is not None
    assert cut.commit_sha == merge.sha


def test_of_two_decisions_on_one_commit_the_newest_counts() -> None:
    first, second = an_event(number=1), an_event(number=2, body="again")

    assert Decisions.of([second, first]).accepted(SERIES) == {a_sha(10): second}


def test_a_mute_holds_up_to_and_with_its_last_day() -> None:
    mute = an_event(Action.MUTE)
    decisions = Decisions.of([mute])

    assert decisions.mute(SERIES, on=LAST_DAY) == mute
    assert decisions.mute(SERIES, on=LAST_DAY + timedelta(days=1)) is None
    assert decisions.mute(OTHER, on=LAST_DAY) is None


def test_unmuting_ends_a_mute_and_a_later_mute_begins_a_new_one() -> None:
    mute, end = an_event(Action.MUTE, number=1), an_event(Action.UNMUTE, number=2)
    again = an_event(Action.MUTE, number=3, body="still broken")

    assert Decisions.of([mute, end]).mute(SERIES, on=LAST_DAY) is None
    assert Decisions.of([mute, end, again]).mute(SERIES, on=LAST_DAY) == again


def test_one_case_can_be_unmuted_while_its_benchmark_stays_muted() -> None:
    mute = an_event(Action.MUTE, number=1)
    case = Scope(benchmark="softmax", parameters=SERIES.case.parameters_json)
    decisions = Decisions.of([mute, an_event(Action.UNMUTE, number=2, scope=case)])
    sibling = a_point(parameters={"rows": 2048}).series

    assert decisions.mute(SERIES, on=LAST_DAY) is None
    assert decisions.mute(sibling, on=LAST_DAY) == mute


def test_taking_an_unmute_back_brings_the_mute_back() -> None:
    mute, end = an_event(Action.MUTE, number=1), an_event(Action.UNMUTE, number=2)

    assert Decisions.of([mute, end, a_revocation(end)]).mute(SERIES, on=LAST_DAY) == mute
