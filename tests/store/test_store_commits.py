"""Order follows first parents, whatever the dates say."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from builders import EPOCH, a_commit, a_line_of_commits, a_run, a_sha

from store.commits import (
    commit_positions,
    first_parent_line,
    from_segments,
    load_commits,
    positions,
    segments,
)
from store.runs import load_run, save_run

if TYPE_CHECKING:
    from store.database import Database
    from store.records import Commit

REPOSITORY = "github.com/example/kernels"


def by_sha(*commits: Commit) -> dict[str, Commit]:
    return {commit.sha: commit for commit in commits}


def test_runs_tell_the_store_about_their_commits(database: Database) -> None:
    save_run(database, a_run(3))
    save_run(database, a_run(5))

    assert load_commits(database, REPOSITORY) == by_sha(*a_line_of_commits(5))
    assert load_commits(database, "github.com/example/other") == {}


def test_commits_of_two_repositories_do_not_mix(database: Database) -> None:
    save_run(database, a_run(3))
    save_run(database, a_run(2, number=1, header={"repository": "elsewhere"}))

    assert len(load_commits(database, REPOSITORY)) == 3
    assert len(load_commits(database, "elsewhere")) == 2


def test_the_line_follows_first_parents_and_skips_merged_branches() -> None:
    merge = a_commit(4, parents=(a_sha(2), a_sha(3)))
    commits = by_sha(a_commit(1), a_commit(2), a_commit(3, parents=(a_sha(1),)), merge)

    assert [commit.sha for commit in first_parent_line(commits, merge.sha)] == [a_sha(4), a_sha(2), a_sha(1)]


def test_the_line_ends_where_nothing_more_is_known() -> None:
    assert [commit.sha for commit in first_parent_line(by_sha(a_commit(9), a_commit(8)), a_sha(9))] == [
        a_sha(9),
        a_sha(8),
    ]
    assert first_parent_line({}, a_sha(9)) == []


def test_a_forged_circle_of_commits_ends() -> None:
    circle = by_sha(a_commit(1, parents=(a_sha(2),)), a_commit(2, parents=(a_sha(1),)))

    assert len(first_parent_line(circle, a_sha(1))) == 2
    assert sorted(positions(circle).values()) == [0, 1]


def test_positions_ignore_dates(database: Database) -> None:
    """A rebased or back-dated commit still comes after its parent."""
    backwards = tuple(
        a_commit(number, committed_at=EPOCH - timedelta(days=number)) for number in range(5, 0, -1)
    )
    save_run(database, a_run(5, history=backwards))

    assert commit_positions(database, REPOSITORY) == {a_sha(number): number - 1 for number in range(1, 6)}


def test_branches_share_positions_after_they_part() -> None:
    branch = a_commit(30, parents=(a_sha(2),))

    found = positions(by_sha(*a_line_of_commits(4), branch))

    assert found[branch.sha] == found[a_sha(3)] == 2


def test_pieces_of_history_with_a_gap_between_them_do_not_overlap() -> None:
    old, new = a_line_of_commits(5, length=3), a_line_of_commits(20, length=4)

    found = positions(by_sha(*new, *old))

    assert [found[a_sha(number)] for number in (3, 4, 5, 17, 18, 19, 20)] == [0, 1, 2, 3, 4, 5, 6]


def test_positions_of_a_long_line_are_found_from_any_order() -> None:
    line = a_line_of_commits(3000, length=3000)

    assert positions(by_sha(*line)) == positions(by_sha(*reversed(line)))
    assert positions(by_sha(*line))[a_sha(3000)] == 2999


def test_a_history_is_kept_as_pieces_of_lines() -> None:
    history = (*a_line_of_commits(9, length=3), a_commit(30, parents=()), *a_line_of_commits(5, length=2))

    tips, lengths = segments(history)

    assert (tips, lengths) == ([a_sha(9), a_sha(30), a_sha(5)], [3, 1, 2])
    assert from_segments(by_sha(*history), tips, lengths) == history


def test_a_history_comes_back_although_later_runs_know_more(database: Database) -> None:
    """The first clone reached three commits back, a later one further."""
    short = a_run(10, history=a_line_of_commits(10, length=3))
    save_run(database, short)
    save_run(database, a_run(12, history=a_line_of_commits(12, length=12)))

    assert load_run(database, short.header.run_id).history == short.history
