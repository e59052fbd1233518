"""What the pages say where a number is missing or cannot be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import a_failure, a_measurement, a_run, a_sha
from pages import text_of

from alerts.judging import judge_run
from store.database import Database
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage

    from store.records import Measurement, Run

NEWEST = 8


def measure(database: Database, commit: int, *measurements: Measurement, number: int = 0) -> Run:
    run = a_run(commit, number=number, measurements=measurements)
    save_run(database, run)
    return run


def watched(seed: int, *, sentinel: float = 0.5, softmax: float = 0.25) -> tuple[Measurement, ...]:
    """A benchmark and a sentinel."""
    return (
        a_measurement("softmax", median_ms=softmax, seed=seed),
        a_measurement("sentinel_copy", median_ms=sentinel, seed=seed, tags=("sentinel",)),
    )


@pytest.fixture
def steady(tmp_path: Path) -> Database:
    """One run on each of seven commits."""
    database = Database(tmp_path / "kernelwatch.duckdb")
    for commit in range(1, NEWEST):
        measure(database, commit, *watched(commit))
    return database


def test_a_run_whose_sentinels_moved_never_reads_as_a_machine_that_stood_still(
    steady: Database, open_page: OpenPage
) -> None:
    moved = measure(steady, NEWEST, *watched(NEWEST, sentinel=0.52, softmax=0.26))
    judge_run(steady, moved.header.run_id)

    page = text_of(open_page(steady.url, "commit", sha=a_sha(NEWEST)))

    assert "No verdict on this run: the machine moved" in page
    assert "none of them moved" not in page


def test_the_overview_misses_no_benchmark_that_goes_on_under_another_name(
    steady: Database, open_page: OpenPage
) -> None:
    renamed = a_measurement("row_softmax", seed=NEWEST, renamed_from="softmax")
    run = measure(steady, NEWEST, renamed, watched(NEWEST)[1])
    judge_run(steady, run.header.run_id)

    page = text_of(open_page(steady.url))

    assert "row_softmax[rows=1024]" in page
    assert ">softmax[rows=1024]" not in page
    assert "missing" not in page.partition("Latest word")[2].partition("</table>")[0].partition("tbody")[2]


def test_a_trend_on_the_overview_goes_back_behind_a_rename(steady: Database, open_page: OpenPage) -> None:
    renamed = a_measurement("row_softmax", seed=NEWEST, renamed_from="softmax")
    measure(steady, NEWEST, renamed, watched(NEWEST)[1])

    row = text_of(open_page(steady.url)).partition("row_softmax[rows=1024]</a>")[2].partition("</tr>")[0]

    assert "kw-spark" in row


def test_what_a_suite_gave_up_without_a_new_name_is_missing(steady: Database, open_page: OpenPage) -> None:
    measure(steady, NEWEST, a_measurement("row_softmax", seed=NEWEST), watched(NEWEST)[1])

    row = text_of(open_page(steady.url)).partition(">softmax[rows=1024]</a>")[2].partition("</tr>")[0]

    assert "missing" in row


@pytest.mark.parametrize("page", ["overview", "commit"])
def test_the_q_value_of_a_change_stands_beside_it(steady: Database, open_page: OpenPage, page: str) -> None:
    run = measure(steady, NEWEST, *watched(NEWEST, softmax=0.26))
    judge_run(steady, run.header.run_id)

    said = text_of(open_page(steady.url, page, **({"sha": a_sha(NEWEST)} if page == "commit" else {})))

    assert ", q &lt;0.001</span>" in said.partition(">softmax[rows=1024]</a>")[2].partition("</tr>")[0]


def test_the_overview_says_why_a_result_is_inconclusive(steady: Database, open_page: OpenPage) -> None:
    new = a_measurement("layer_norm", seed=NEWEST)
    run = measure(steady, NEWEST, *watched(NEWEST), new)
    judge_run(steady, run.header.run_id)

    row = text_of(open_page(steady.url)).partition("layer_norm[rows=1024]</a>")[2].partition("</tr>")[0]

    assert "inconclusive, new-benchmark" in row


def test_a_change_that_the_machine_explains_has_no_q_value(steady: Database, open_page: OpenPage) -> None:
    moved = measure(steady, NEWEST, *watched(NEWEST, sentinel=0.52, softmax=0.26))
    judge_run(steady, moved.header.run_id)

    row = text_of(open_page(steady.url)).partition(">softmax[rows=1024]</a>")[2].partition("</tr>")[0]

    assert "inconclusive, machine-moved" in row
    assert ", q " not in row


def test_the_commit_page_lists_what_the_run_has_no_word_on(steady: Database, open_page: OpenPage) -> None:
    measure(steady, NEWEST, watched(NEWEST)[1])

    page = text_of(open_page(steady.url, "commit", sha=a_sha(NEWEST)))

    assert "Last measured on commit" in page
    row = page.partition("softmax[rows=1024]")[2].partition("</tr>")[0]
    assert a_sha(NEWEST - 1)[:9] in row


def test_the_commit_page_misses_nothing_that_was_measured_failed_or_renamed(
    steady: Database, open_page: OpenPage
) -> None:
    failed = a_failure(case=a_measurement("layer_norm").case)
    measure(steady, NEWEST, *watched(NEWEST), a_measurement("layer_norm", seed=1))
    renamed = a_measurement("row_softmax", seed=NEWEST + 1, renamed_from="softmax")
    run = a_run(NEWEST + 1, measurements=(renamed, watched(9)[1]), failures=(failed,))
    save_run(steady, run)

    assert "Last measured on commit" not in text_of(open_page(steady.url, "commit", sha=a_sha(NEWEST + 1)))
