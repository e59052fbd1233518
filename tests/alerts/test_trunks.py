"""The line of a merge-base, read off that of its branch, is the one that is made for a single run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import a_commit, a_header, a_line_of_commits, a_run, a_sha

from alerts.gathering import baseline_line
from alerts.trunks import Trunks
from store.database import Database
from store.outlines import load_outlines
from store.runs import find_runs, save_run

if TYPE_CHECKING:
    from store.outlines import Outlines
    from store.records import RunHeader

COMMITS = {commit.sha: commit for commit in (*a_line_of_commits(12), a_commit(90, parents=(a_sha(7),)))}


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Outlines:
    database = Database(tmp_path_factory.mktemp("trunks") / "runs.duckdb")
    for commit in (3, 7, 12):
        save_run(database, a_run(commit))
    return load_outlines(database, find_runs(database))


@pytest.mark.parametrize(
    "header",
    [
        a_header(12),
        a_header(7),
        a_header(7, merge_base=a_sha(12)),
        a_header(7, dirty=True),
        a_header(90, merge_base=a_sha(7)),
        a_header(1),
        a_header(40, merge_base=a_sha(39)),
    ],
    ids=["the tip", "in the middle", "behind the tip", "uncommitted", "a branch", "the root", "not known"],
)
def test_the_rest_of_a_trunk_is_the_line_of_a_run(header: RunHeader, points: Outlines) -> None:
    trunks = Trunks([*points.headers, header], COMMITS, points)
    own = None if header.dirty else header.commit_sha
    assert header.merge_base is not None

    rest = trunks.holding(header.merge_base).rest(header.merge_base, without=own)

    expected = baseline_line(header, COMMITS)
    assert dict(rest) == expected
    assert (len(rest), list(rest)) == (len(expected), list(expected))
    assert [sha in rest for sha in COMMITS] == [sha in expected for sha in COMMITS]


def test_of_the_rest_nothing_else_can_be_asked(points: Outlines) -> None:
    trunk = Trunks(points.headers, COMMITS, points).holding(a_sha(7))
    rest = trunk.rest(a_sha(7), without=a_sha(5))

    for sha in (a_sha(8), a_sha(5), a_sha(90)):
        with pytest.raises(KeyError):
            rest[sha]


def test_runs_on_a_trunk_are_ranked_from_its_tip_and_found_by_place(points: Outlines) -> None:
    trunk = Trunks(points.headers, COMMITS, points).holding(a_sha(12))

    assert [run.commit_sha for run in trunk.runs] == [a_sha(12), a_sha(7), a_sha(3)]
    assert [trunk.rank_from(trunk.place[a_sha(commit)]) for commit in (12, 11, 7, 6, 3, 2)] == [
        0,
        1,
        1,
        2,
        2,
        3,
    ]
