"""The commit axis follows first parents, never dates."""

from __future__ import annotations

from datetime import timedelta

from builders import EPOCH, a_commit, a_header, a_sha

from dashboard.timeline import is_on_line, lay_out, main_line

POSITIONS = {a_sha(number): number for number in range(1, 20)}


def test_a_commit_measured_late_keeps_its_place_in_the_history() -> None:
    measured_late = a_header(3, started_at=EPOCH + timedelta(days=9), ended_at=EPOCH + timedelta(days=9))

    timeline = lay_out([measured_late, a_header(4), a_header(5)], POSITIONS, newest=10)

    assert timeline.places == (a_sha(3), a_sha(4), a_sha(5))


def test_only_the_newest_commits_keep_a_place_and_the_others_are_counted() -> None:
    timeline = lay_out([a_header(number) for number in (1, 2, 3, 4)], POSITIONS, newest=3)

    assert timeline.places == (a_sha(2), a_sha(3), a_sha(4))
    assert timeline.n_older == 1


def test_two_runs_on_a_commit_share_its_place() -> None:
    timeline = lay_out([a_header(1), a_header(1, number=1), a_header(2)], POSITIONS, newest=10)

    assert timeline.slots() == {a_sha(1): 0, a_sha(2): 1}


def test_commits_without_a_known_place_stand_at_the_right_end_and_are_counted() -> None:
    timeline = lay_out([a_header(99), a_header(2)], POSITIONS, newest=10)

    assert timeline.places == (a_sha(2), a_sha(99))
    assert timeline.n_without_order == 1


def test_runs_without_a_commit_have_places_of_their_own() -> None:
    timeline = lay_out([a_header(None), a_header(None, number=1)], {}, newest=10)

    assert len(timeline.places) == 2
    assert timeline.labels == ("no commit", "no commit")


def test_the_main_line_is_every_first_parent_ancestor_of_a_merge_base() -> None:
    branch = a_commit(50, parents=(a_sha(3),))
    commits = {commit.sha: commit for commit in (a_commit(1), a_commit(2), a_commit(3), branch)}
    on_branch = a_header(50, merge_base=a_sha(3))

    line = main_line([on_branch], commits)

    assert line == {a_sha(1), a_sha(2), a_sha(3)}
    assert not is_on_line(on_branch, line)
    assert is_on_line(a_header(2), line)


def test_uncommitted_changes_are_off_the_line() -> None:
    assert not is_on_line(a_header(2, dirty=True), frozenset({a_sha(2)}))


def test_a_run_that_is_judged_against_no_branch_is_on_the_line() -> None:
    header = a_header(2, base_ref=None, merge_base=None)

    assert is_on_line(header, main_line([header], {}))
