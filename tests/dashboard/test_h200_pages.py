"""The pages show two real runs of an H200."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pages import specs_of, text_of

from alerts.judging import judge_run
from store.bundle import read_bundle
from store.database import Database
from store.runs import save_run
from store.series import load_points

if TYPE_CHECKING:
    from pages import OpenPage

FOLDER = Path(__file__).parents[1] / "data" / "h200"


@pytest.fixture(name="h200_store", scope="module")
def _h200_store(tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = Database(tmp_path_factory.mktemp("pages") / "runs.duckdb")
    for name in ("first", "second"):
        run = read_bundle(FOLDER / f"{name}.kwrun")
        save_run(database, run)
        judge_run(database, run.header.run_id)
    return database


def test_the_overview_counts_every_benchmark_as_unchanged(h200_store: Database, open_page: OpenPage) -> None:
    app = open_page(h200_store.url)

    assert not app.exception
    assert "NVIDIA H200" in text_of(app)
    assert text_of(app).count("unchanged</span>") == 29


def test_the_trend_shows_both_commits_with_their_interval(h200_store: Database, open_page: OpenPage) -> None:
    points = load_points(h200_store, benchmarks=["softmax"])
    app = open_page(h200_store.url, "trends", series=points[0].series.id)

    assert not app.exception
    assert len(points) == 2
    assert specs_of(app)
    for point in points:
        assert (point.header.commit_sha or "")[:8] in text_of(app)


def test_the_commit_page_shows_each_measurement_with_its_evidence(
    h200_store: Database, open_page: OpenPage
) -> None:
    newest = load_points(h200_store, benchmarks=["matmul_fp8"])[-1]
    app = open_page(h200_store.url, "commit", sha=newest.header.commit_sha or "")

    assert not app.exception
    assert "matmul_fp8" in text_of(app)
    assert "held clocks; 8 windows in 8 processes" in text_of(app)
