"""A benchmark over the values of a parameter, on one commit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from builders import a_header, a_measurement, a_run, a_sha
from pages import specs_of, text_of
from rows import an_interval

from dashboard.charts.sweep import sweep_chart
from dashboard.sweeps import sweeps
from store.database import Database
from store.runs import save_run
from store.series import load_points

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage

    from store.records import Measurement, SeriesPoint


def measurements(**more: Any) -> tuple[Measurement, ...]:
    return tuple(
        a_measurement(
            "softmax", parameters={"rows": rows, "dtype": dtype, "causal": True},
            interval=an_interval(rows / 4096), **more,
        )
        for dtype in ("bfloat16", "float32")
        for rows in (8192, 1024, 65536)
    )  # fmt: skip


def points_of(folder: Path, *measured: Measurement) -> list[SeriesPoint]:
    database = Database(folder / "sweep.duckdb")
    save_run(database, a_run(3, measurements=measured))
    return load_points(database, run_ids=[a_header(3).run_id])


def test_cases_that_differ_in_one_number_make_a_line_each(tmp_path: Path) -> None:
    single = a_measurement("topk", parameters={"k": 50})
    sentinel = a_measurement("sentinel_copy", parameters={"n": 1}, tags=("sentinel",))

    (sweep,) = sweeps(points_of(tmp_path, *measurements(), single, sentinel))

    assert sweep.name == "softmax over rows"
    assert list(sweep.lines) == [
        "causal=True, dtype=bfloat16, cold cache", "causal=True, dtype=float32, cold cache",
    ]  # fmt: skip
    assert [[value for value, _ in line] for line in sweep.lines.values()] == [[1024, 8192, 65536]] * 2


def test_sizes_that_span_orders_of_magnitude_have_a_logarithmic_axis(tmp_path: Path) -> None:
    (sweep,) = sweeps(points_of(tmp_path, *measurements()))

    spec = sweep_chart(sweep).to_dict()

    assert json.dumps(spec).count('"type": "log"') >= 2
    assert sum(len(values) for values in spec["datasets"].values()) == 6


def test_the_commit_page_draws_the_sweep_of_its_address(tmp_path: Path, open_page: OpenPage) -> None:
    database = Database(tmp_path / "commit.duckdb")
    save_run(database, a_run(3, measurements=measurements()))

    app = open_page(database.url, "commit", sha=a_sha(3), sweep="softmax over rows")

    assert not app.exception
    assert "Over a parameter" in text_of(app)
    assert '"title": "rows"' in json.dumps(specs_of(app))
