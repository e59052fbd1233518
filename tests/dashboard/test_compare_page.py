"""Two sides beside one another: what is paired, what it comes to, and as which file it leaves."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from builders import GPU_UUID, a_header, a_measurement, a_run, a_sha
from busy_store import OTHER_GPU_UUID, sha_of
from pages import specs_of, text_of
from rows import a_point, an_interval

from dashboard.charts.distribution import ROWS_MAX, both_charts
from dashboard.comparing import Filters, compare
from dashboard.differences import Difference, Direction, difference, mean_effect
from dashboard.export import differences_csv, differences_markdown, picture
from store.database import Database
from store.records import SeriesPoint, Tier
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage


def at(commit: int, center: float = 0.25, benchmark: str = "softmax", **header: Any) -> SeriesPoint:
    return a_point(
        header=a_header(commit, **header), benchmark=benchmark, interval=an_interval(center), center=center
    )


def test_what_shares_its_conditions_is_paired_and_the_rest_is_named() -> None:
    found = compare(
        [at(1), at(1, benchmark="gone")], [at(2, 0.26), at(2, benchmark="new"), at(2, benchmark="fast")]
    )

    (item,) = found.differences
    assert (item.base.header.commit_sha, item.candidate.header.commit_sha) == (a_sha(1), a_sha(2))
    assert item.direction is Direction.SLOWER
    assert [case.benchmark for case in found.only_base] == ["gone"]
    assert [case.benchmark for case in found.only_candidate] == ["fast", "new"]


def test_other_gpus_and_environments_are_paired_only_on_purpose() -> None:
    base, other_gpu, newer = at(1), at(1, gpu_uuid="GPU-2"), at(1, environment="driver=590")

    assert not compare([base], [other_gpu]).differences
    assert not compare([base], [newer]).differences
    assert compare([base], [other_gpu], across_gpus=True).differences
    assert compare([base], [newer], across_environments=True).differences


def test_of_several_measurements_of_a_side_the_newest_counts() -> None:
    (item,) = compare([at(1), at(2, 0.30), at(1)], [at(3)]).differences

    assert item.base.interval.center == 0.30


def some_differences(n: int = 4) -> list[Difference]:
    names = [f"bench_{place}" for place in range(n)]
    return [
        difference(at(1, benchmark=name), at(2, 0.25 * (1 + 0.02 * place), benchmark=name))
        for place, name in enumerate(names)
    ]


def test_filters_narrow_by_every_property() -> None:
    same, *_, slowest = some_differences()
    low_tier = difference(at(1), a_point(2, tier=Tier.C, tags=("memory",)))
    items = [same, slowest, low_tier]

    def kept(**filters: Any) -> list[Difference]:
        return [item for item in items if Filters(**filters).keep(item)]

    assert kept() == items
    assert kept(text="BENCH_3 1024") == [slowest]
    assert kept(directions=["slower"]) == [slowest]
    assert kept(tiers=["C"]) == [low_tier]
    assert kept(tags=["memory"]) == [low_tier]


def test_the_chart_stays_light_and_is_valid() -> None:
    differences = some_differences(400)

    spec = both_charts(differences, mean_effect(differences), width_px=900).to_dict()

    marks = sum(len(values) for values in spec["datasets"].values())
    assert marks < 200
    assert f"The {ROWS_MAX} largest changes" in str(spec)


def test_the_csv_holds_every_number_and_no_formula() -> None:
    hostile = difference(at(1, benchmark="=cmd()"), at(2, 0.26, benchmark="=cmd()"))

    (row, *_) = csv.DictReader(io.StringIO(differences_csv([hostile])))

    assert row["benchmark"] == "'=cmd()"
    assert row["direction"] == "slower"
    assert float(row["effect"]) == pytest.approx(0.04)
    assert float(row["base_center_ms"]) == 0.25
    assert row["candidate_commit"] == a_sha(2)


def test_the_markdown_is_a_table_in_which_names_do_nothing() -> None:
    hostile = difference(at(1, benchmark="a|b @all"), at(2, benchmark="a|b @all"))

    text = differences_markdown([hostile], title="one against two", mean="no mean")

    assert text.splitlines()[-1].count("|") == 7
    assert "`" in text.splitlines()[-1]


@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_pictures_are_drawn_without_a_browser(form: Any, magic: bytes) -> None:
    pytest.importorskip("vl_convert")
    differences = some_differences()

    drawn = picture(both_charts(differences, mean_effect(differences), width_px=900), form)

    assert drawn.startswith(magic)
    assert len(drawn) > 5_000


def test_the_page_compares_the_newest_commit_with_the_one_before(
    busy_store: Database, open_page: OpenPage
) -> None:
    app = open_page(busy_store.url, "compare")

    assert not app.exception
    page = text_of(app)
    assert "Geometric mean of the ratios" in page.replace("\\", "")
    assert len(specs_of(app)) == 2


def test_a_branch_and_the_beginning_of_a_commit_are_sides(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url, "compare", base=sha_of(5)[:10], candidate="main", q="softmax")

    assert not app.exception
    assert "Of 2 benchmarks: 2 slower." in text_of(app)


def test_two_gpus_are_compared_when_one_is_chosen_on_each_side(
    busy_store: Database, open_page: OpenPage
) -> None:
    sides = {"base": sha_of(10), "candidate": sha_of(10)}

    app = open_page(busy_store.url, "compare", **sides, base_gpu=GPU_UUID, candidate_gpu=OTHER_GPU_UUID)

    assert not app.exception
    assert "Of 11 benchmarks: 11 slower." in text_of(app)


def test_sides_without_anything_in_common_say_what_differs(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "apart.duckdb")
    save_run(store, a_run(3))
    save_run(store, a_run(4, header={"environment": "driver=590"}))

    apart = text_of(open_page(store.url, "compare", base=a_sha(3), candidate=a_sha(4)))
    together = text_of(
        open_page(
            store.url, "compare", base=a_sha(3), candidate=a_sha(4), candidate_environment="driver=590",
            base_environment=a_header(3).environment,
        )
    )  # fmt: skip

    assert "share no benchmark" in apart
    assert "driver=590" in apart.replace("\\", "")
    assert "Of 1 benchmark:" in together


def test_filters_that_keep_nothing_say_so(busy_store: Database, open_page: OpenPage) -> None:
    assert "No benchmark passes" in text_of(open_page(busy_store.url, "compare", q="nothing like this"))


def test_an_unknown_side_says_what_to_do(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url, "compare", base="ffffffff")

    assert not app.exception
    assert "collect --commit ffffffff" in app.error[0].value.replace("\\", "")


def test_what_one_side_alone_measured_is_named(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "more.duckdb")
    save_run(store, a_run(3))
    save_run(store, a_run(4, measurements=(a_measurement(), a_measurement("topk"))))

    app = open_page(store.url, "compare", base=a_sha(3), candidate=a_sha(4))

    assert "Measured on the candidate alone" in text_of(app)
