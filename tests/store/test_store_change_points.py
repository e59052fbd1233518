"""Change points come back as they were saved, and a new search replaces an older one."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_header, a_sha

from store.change_points import ChangePoint, load_change_points, save_change_points
from store.errors import StoreInvalid
from store.records import CacheState, Case, Quantity, SeriesKey

if TYPE_CHECKING:
    from store.database import Database

REPOSITORY = "github.com/example/kernels"


def a_series(benchmark: str = "softmax", **header: Any) -> SeriesKey:
    case = Case.of(benchmark, {"rows": 8})
    return a_header(**header).series_key(case, Quantity.DEVICE_BUSY, CacheState.COLD)


def a_change_point(commit: int = 12, **changes: Any) -> ChangePoint:
    """A step of 4 % between two neighbouring commits."""
    fields: dict[str, Any] = {
        "series": a_series(),
        "repository": REPOSITORY,
        "commit_before": a_sha(commit - 1),
        "commit_sha": a_sha(commit),
        "run_id": a_header(commit).run_id,
        "size": 0.04,
        "size_low": 0.035,
        "size_high": 0.045,
        "p_value": 0.0001,
        "method_version": 1,
        "found_at": EPOCH + timedelta(days=1),
    }
    return ChangePoint(**(fields | changes))


def test_change_points_come_back_as_they_were_saved_the_oldest_first(database: Database) -> None:
    first, second = a_change_point(30), a_change_point(12, size=-0.02, size_low=-0.03, size_high=-0.01)
    save_change_points(database, REPOSITORY, {a_series(): [first, second]})

    assert load_change_points(database) == [first, second]


def test_a_series_that_was_searched_again_has_only_what_was_found_last(database: Database) -> None:
    other = a_change_point(series=a_series("matmul"))
    save_change_points(database, REPOSITORY, {a_series(): [a_change_point()], a_series("matmul"): [other]})
    save_change_points(database, REPOSITORY, {a_series(): []})

    assert load_change_points(database) == [other]


def test_a_search_in_one_repository_leaves_the_others_alone(database: Database) -> None:
    fork = a_change_point(repository="github.com/somebody/kernels")
    save_change_points(database, fork.repository, {a_series(): [fork]})
    save_change_points(database, REPOSITORY, {a_series(): [a_change_point()]})
    save_change_points(database, REPOSITORY, {a_series(): []})

    assert load_change_points(database) == [fork]
    assert load_change_points(database, repository=REPOSITORY) == []


def test_change_points_are_found_by_series_and_by_gpu(database: Database) -> None:
    there = a_series(gpu_uuid="GPU-other")
    points = [a_change_point(), a_change_point(series=there)]
    save_change_points(database, REPOSITORY, {a_series(): points[:1], there: points[1:]})

    assert load_change_points(database, gpu_uuids=["GPU-other"]) == points[1:]
    assert load_change_points(database, series_ids=[a_series().id]) == points[:1]
    assert load_change_points(database, series_ids=[]) == []


def test_a_step_between_two_runs_of_one_commit_is_told_from_one_between_commits() -> None:
    assert a_change_point(commit_before=a_sha(12)).within_a_commit
    assert not a_change_point().within_a_commit


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": math.nan}, "size is nan"),
        ({"p_value": math.inf}, "p_value is inf"),
        ({"commit_before": "abc"}, "both commits in full: 'abc'"),
        ({"found_at": EPOCH.replace(tzinfo=None)}, "no time zone"),
        ({"repository": "github.com/somebody/kernels"}, "another series or repository"),
        ({"series": a_series("matmul")}, "another series or repository"),
    ],
)
def test_a_step_that_could_not_be_kept_is_refused_and_nothing_is_changed(
    database: Database, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(StoreInvalid, match=words):
        save_change_points(database, REPOSITORY, {a_series(): [replace(a_change_point(), **changes)]})
    assert not database.exists()
