"""The stored history is searched in commit order, on one line, and what is found is kept."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_commit, a_header, a_line_of_commits, a_measurement, a_point, a_run, a_sha
from click.testing import CliRunner

from alerts.change_points import busiest_line, histories_along, search
from alerts.cli import alerts
from alerts.errors import NothingToJudge
from alerts.policy import Policy
from store.change_points import load_change_points
from store.commits import first_parent_line
from store.database import Database
from store.records import SeriesPoint, Tier
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

STEP_AT = 9
LINE = {a_sha(number): 100 - number for number in range(100, 0, -1)}


def level(commit: int, *, change: float = 0.04) -> float:
    """Milliseconds: ``change`` slower from one commit on."""
    return 0.25 * (1 + change * (commit >= STEP_AT))


def a_stored_run(commit: int, *, number: int = 0, change: float = 0.04, **header: Any) -> Any:
    measurement = a_measurement(median_ms=level(commit, change=change), seed=100 * commit + number)
    return a_run(commit, number=number, measurements=(measurement,), header=header)


def some_points(commits: range, **changes: Any) -> list[SeriesPoint]:
    return [a_point(commit, median_ms=level(commit), **changes) for commit in commits]


def dated(points: list[SeriesPoint], line: dict[str, int] | None = None) -> list[tuple[str, str]]:
    """The commits on either side of every step that is found."""
    histories = histories_along(
        LINE if line is None else line, points, rules=Policy(), rule=None, found_at=EPOCH
    )
    return [(change.commit_before, change.commit_sha) for history in histories for change in history.changes]


@pytest.fixture(name="database", scope="module")
def _database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Sixteen commits, 4 per cent slower from the ninth on, beside a branch and a dirty tree."""
    database = Database(tmp_path_factory.mktemp("steps") / "runs.duckdb")
    for commit in range(1, 17):
        save_run(database, a_stored_run(commit))
    branch = a_commit(500, parents=(a_sha(5),))
    save_run(
        database,
        a_run(
            500,
            measurements=(a_measurement(median_ms=0.9, seed=1),),
            history=(branch, *a_line_of_commits(5)),
            header={"merge_base": a_sha(5), "started_at": EPOCH, "ended_at": EPOCH + timedelta(minutes=1)},
        ),
    )
    save_run(database, a_stored_run(16, number=7, change=0.9, dirty=True))
    return database


def test_a_step_is_dated_by_the_commits_on_either_side_of_it(database: Database) -> None:
    (history,) = search(database, found_at=EPOCH)

    (change,) = history.changes
    assert (change.commit_before, change.commit_sha) == (a_sha(STEP_AT - 1), a_sha(STEP_AT))
    assert change.run_id == a_header(STEP_AT).run_id
    assert change.size_low < 0.04 < change.size_high
    assert load_change_points(database) == [change]


def test_branches_and_uncommitted_changes_take_no_part_and_are_counted(database: Database) -> None:
    (history,) = search(database)

    assert len(history.points) == 16
    assert history.left_out == 2


def test_another_gpu_has_no_history_and_the_error_says_so(database: Database) -> None:
    with pytest.raises(NothingToJudge, match="GPU that begins with GPU-nowhere"):
        search(database, gpu="GPU-nowhere")


def test_searching_one_gpu_leaves_what_was_found_on_others(tmp_path: Path) -> None:
    database = Database(tmp_path / "two.duckdb")
    for commit in range(STEP_AT - 4, STEP_AT + 4):
        save_run(database, a_stored_run(commit))
        save_run(database, a_stored_run(commit, number=1, gpu_uuid="GPU-second"))
    search(database)
    search(database, gpu="GPU-second")

    assert {change.series.gpu_uuid for change in load_change_points(database)} == {
        "GPU-second",
        a_header().gpu_uuid,
    }


def test_order_follows_the_line_and_never_the_clock() -> None:
    """Runs of old commits, made up for in one night, in any order."""
    points = [
        a_point(
            commit,
            median_ms=level(commit),
            header={"started_at": EPOCH + timedelta(minutes=minute), "ended_at": EPOCH + timedelta(hours=9)},
        )
        for minute, commit in enumerate(random.Random(2).sample(range(1, 17), 16))
    ]

    assert dated(points) == [(a_sha(STEP_AT - 1), a_sha(STEP_AT))]


def test_a_step_across_commits_that_were_not_measured_names_the_measured_ones() -> None:
    points = some_points(range(1, 7)) + some_points(range(12, 18))

    assert dated(points) == [(a_sha(6), a_sha(12))]


def test_points_that_no_verdict_would_rest_on_make_no_step() -> None:
    rough = [a_point(commit, median_ms=0.5, tier=Tier.C) for commit in range(17, 25)]

    assert dated(some_points(range(1, 9)) + rough) == []


def test_a_step_between_two_runs_of_one_commit_is_the_machines() -> None:
    same = [a_point(8, number=number, median_ms=0.25 if number < 8 else 0.27) for number in range(16)]
    histories = histories_along(LINE, same, rules=Policy(), rule=None, found_at=EPOCH)

    (change,) = histories[0].changes
    assert change.within_a_commit


def test_a_series_from_before_the_change_of_a_driver_is_a_series_of_its_own() -> None:
    old = some_points(range(1, STEP_AT), header={"environment": "driver=1"})

    assert dated(old + some_points(range(STEP_AT, 17))) == []


def test_the_line_with_most_runs_is_searched_whatever_the_order_of_the_points() -> None:
    commits = {commit.sha: commit for commit in a_line_of_commits(20)}
    side = [a_commit(300, parents=(a_sha(10),)), a_commit(301, parents=(a_sha(300),))]
    commits |= {commit.sha: commit for commit in side}
    points = [*some_points(range(1, 21)), a_point(300), a_point(301)]

    line = busiest_line(points, commits)

    assert list(line) == [commit.sha for commit in first_parent_line(commits, a_sha(20))]
    assert busiest_line(reversed(points), commits) == line


def test_runs_of_code_in_no_repository_have_no_line() -> None:
    assert busiest_line([a_point(None)], {}) == {}


# --- the command -------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    return CliRunner().invoke(alerts, list(arguments))


def test_the_command_prints_what_changed_between_which_commits(database: Database) -> None:
    result = run("steps", "--store", database.url)

    assert result.exit_code == 0
    first, _, heads, row = result.output.splitlines()
    assert first.startswith("1 change point in 1 series with 16 measurements; 2 measurements left out: ")
    assert heads.split("  ")[0] == "benchmark"
    assert "softmax[rows=1024]" in row
    assert "+4." in row or "+3.9" in row
    assert row.index(a_sha(STEP_AT - 1)[:9]) < row.index(a_header().gpu_uuid)


def test_the_command_as_json_lists_every_series_that_was_searched(database: Database) -> None:
    (series,) = json.loads(run("steps", "--store", database.url, "--format", "json").output)

    assert series["benchmark"] == "softmax[rows=1024]"
    assert (series["measurements"], series["left_out"]) == (16, 2)
    (change,) = series["changes"]
    assert (change["commit_before"], change["commit"]) == (a_sha(STEP_AT - 1), a_sha(STEP_AT))
    assert change["size_low"] < change["size"] < change["size_high"]


def test_the_command_blames_the_machine_where_one_commit_stands_on_both_sides(tmp_path: Path) -> None:
    database = Database(tmp_path / "same.duckdb")
    for number in range(16):
        measurement = a_measurement(median_ms=0.25 if number < 8 else 0.27, seed=number)
        save_run(database, a_run(8, number=number, measurements=(measurement,)))

    assert "the machine did" in run("steps", "--store", database.url).output


def test_a_step_that_the_sentinels_show_too_is_pointed_out_as_the_machines(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    for commit in range(1, 17):
        sentinel = a_measurement("sentinel_copy", median_ms=level(commit), seed=commit, tags=("sentinel",))
        still = a_measurement("still", seed=commit)
        save_run(database, a_run(commit, measurements=(*a_stored_run(commit).measurements, sentinel, still)))

    text = CliRunner().invoke(alerts, ["steps", "--store", database.url]).output
    told = CliRunner().invoke(alerts, ["steps", "--store", database.url, "--format", "json"]).output

    assert f"changed at {a_sha(STEP_AT)[:9]}: there the machine changed" in text
    softmax = next(series for series in json.loads(told) if series["name"] == "softmax")
    assert [change["sentinels_changed"] for change in softmax["changes"]] == [True]


def test_a_step_of_the_code_alone_is_no_remark_on_the_machine(database: Database) -> None:
    assert "machine" not in CliRunner().invoke(alerts, ["steps", "--store", database.url]).output


def test_an_empty_store_ends_with_three_and_says_what_to_do(tmp_path: Path) -> None:
    database = Database(tmp_path / "empty.duckdb")
    with database.writing():
        pass

    result = run("steps", "--store", database.url)

    assert result.exit_code == 3
    assert "collect --commit HEAD" in result.stderr
