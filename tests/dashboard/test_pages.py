"""Every page in every state, as the server draws it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from builders import a_failure, a_header, a_measurement, a_run, a_second_session, a_sha, a_verdict
from busy_store import BRANCH_COMMIT, sha_of
from pages import links_of, specs_of, text_of

from store.database import Database
from store.runs import find_runs, save_run
from store.series import load_points
from store.verdicts import save_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pages import OpenPage

    from store.records import SeriesPoint


def point_of(store: Database, benchmark: str) -> SeriesPoint:
    """The newest point of a benchmark."""
    return load_points(store, benchmarks=[benchmark])[-1]


@contextmanager
def writer_elsewhere(path: Path) -> Iterator[None]:
    """Another process has the file open for writing, as a collector would."""
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        yield


def test_the_overview_lists_the_worst_first_with_links(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url)

    assert not app.exception
    page = text_of(app)
    assert page.index("regressed, confirmed") < page.index("unchanged</span>")
    series = point_of(busy_store, "softmax").series.id
    assert f'href="/trends?series={series}"' in page
    assert f'href="/commit?sha={sha_of(10)}&amp;run=' in page
    assert "Where each GPU stands" in page


@pytest.mark.parametrize(
    ("parameters", "seen", "hidden"),
    [
        ({"q": "soft"}, "softmax[", "layer_norm["),
        ({"verdict": ["confirmed", "flagged"]}, "topk[", "matmul_prefill["),
        ({"tier": "C"}, "None of", "layer_norm["),
    ],
)
def test_filters_of_the_url_narrow_the_overview(
    busy_store: Database,
    open_page: OpenPage,
    parameters: dict[str, Any],
    seen: str,
    hidden: str,
) -> None:
    page = text_of(open_page(busy_store.url, **parameters))

    assert seen in page
    assert hidden not in page


def test_a_filter_that_a_person_sets_goes_into_the_url(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url)

    app.text_input[0].set_value("topk").run()

    assert "topk" in app.query_params["q"]
    assert "softmax[" not in text_of(app)

    app.text_input[0].set_value("").run()

    assert "q" not in app.query_params


def test_a_trend_of_the_url_is_drawn_with_its_table(busy_store: Database, open_page: OpenPage) -> None:
    point = point_of(busy_store, "softmax")

    app = open_page(busy_store.url, "trends", series=point.series.id)

    assert not app.exception
    (spec,) = specs_of(app)
    assert spec["title"]["text"] == "softmax[dtype=bfloat16, rows=8192]"
    page = text_of(app)
    assert "regressed, confirmed" in page
    assert "Fuse bias and activation in the MLP epilogue" in page


def test_several_series_stand_below_one_another(busy_store: Database, open_page: OpenPage) -> None:
    ids = [point_of(busy_store, name).series.id for name in ("softmax", "topk", "rotary")]

    app = open_page(busy_store.url, "trends", series=ids, axis="relative")

    titles = [spec["title"]["text"].split("[")[0] for spec in specs_of(app)]
    assert sorted(titles) == ["rotary", "softmax", "topk"]
    assert all("(%)" in json.dumps(spec) for spec in specs_of(app))


def test_branches_are_left_out_with_a_note_until_they_are_asked_for(
    busy_store: Database, open_page: OpenPage
) -> None:
    points = load_points(busy_store, benchmarks=["layer_norm"])
    series = next(p.series.id for p in points if p.header.commit_sha == sha_of(BRANCH_COMMIT))

    closed = text_of(open_page(busy_store.url, "trends", series=series))
    opened = text_of(open_page(busy_store.url, "trends", series=series, runs="all"))

    assert "2 runs off the main line or with uncommitted changes left out" in closed
    assert "Try a two-pass layer norm" not in closed
    assert "Try a two-pass layer norm" in opened


def test_older_commits_are_left_out_with_a_note(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "long.duckdb")
    for number in range(1, 56):
        save_run(store, a_run(number, measurements=(a_measurement(passes=3),), history=()))
    series = load_points(store)[0].series.id

    page = text_of(open_page(store.url, "trends", series=series, commits="50"))

    assert "The newest 50 commits are shown" in page
    assert "5 older ones are not" in page
    assert "The newest 30 of 50 points: show all" in page
    assert page.count("/evidence?") == 30
    everything = text_of(open_page(store.url, "trends", series=series, commits="50", all="1"))
    assert everything.count("/evidence?") == 50


def test_without_a_series_the_movers_are_offered(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url, "trends")

    assert "Choose a series" in text_of(app)
    labels = [label for label, query in links_of(app) if "series=" in query]
    assert labels
    assert not specs_of(app)


def test_an_unknown_series_is_said_to_be_unknown(busy_store: Database, open_page: OpenPage) -> None:
    page = text_of(open_page(busy_store.url, "trends", series="0123456789abcdef"))

    assert "This series is not in the store" in page
    assert "0123456789abcdef" in page


def test_one_unknown_series_does_not_hide_a_known_one(busy_store: Database, open_page: OpenPage) -> None:
    known = point_of(busy_store, "topk").series.id

    app = open_page(busy_store.url, "trends", series=[known, "0123456789abcdef"])

    assert "0123456789abcdef" in app.warning[0].value
    assert len(specs_of(app)) == 1


def test_a_commit_shows_verdicts_intervals_windows_kernels_and_failures(
    busy_store: Database, open_page: OpenPage
) -> None:
    run = find_runs(busy_store, commit_sha=sha_of(7))[0]

    app = open_page(busy_store.url, "commit", sha=sha_of(7)[:10], run=run.run_id)

    assert not app.exception
    page = text_of(app)
    assert app.title[0].value == r"Reformat the attention launcher"
    assert "regressed, confirmed" in page
    assert "cunn_SoftMaxForward" in page
    assert f"collect --commit {sha_of(7)} --gpu {run.gpu_uuid}" in page
    assert "1.2 GiB were free" in page.replace("\\", "")
    effects, windows = specs_of(app)
    assert "baseline_low" in json.dumps(effects)
    assert "sample (us)" in json.dumps(windows)


def test_a_commit_opens_with_the_run_that_was_confirmed_and_tells_both_sessions(
    tmp_path: Path, open_page: OpenPage
) -> None:
    database = Database(tmp_path / "confirmed.duckdb")
    first = a_run()
    again = a_run(number=1, header={"confirms_run_id": first.header.run_id})
    for run in (first, again):
        save_run(database, run)
    save_verdicts(database, [a_verdict(first, second=a_second_session(run_id=again.header.run_id))])

    app = open_page(database.url, "commit", sha=first.header.commit_sha or "")

    said = text_of(app)
    assert f"+4.00 % in run {first.header.run_id[:8]}, +3.80 % (+3.10 % to +4.61 %) in run" in said
    assert f"{again.header.run_id[:8]}: confirmed" in said
    assert any(f"confirms {first.header.run_id[:8]}" in option for option in app.selectbox[0].options)


def test_a_run_without_verdicts_says_how_to_judge_it(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "silent.duckdb")
    save_run(store, a_run(3))

    page = text_of(open_page(store.url, "commit", sha=a_sha(3)))

    assert "alerts compare" in page
    assert "not judged" in page


def test_a_run_where_everything_failed_shows_the_failures(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "broken.duckdb")
    save_run(store, a_run(3, measurements=(), failures=(a_failure(log="Traceback of the call"),)))

    app = open_page(store.url, "commit", sha=a_sha(3))

    assert not app.exception
    assert "This run measured nothing" in text_of(app)
    assert "Traceback of the call" in text_of(app)


def test_a_run_outside_a_repository_has_a_page(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "loose.duckdb")
    save_run(store, a_run(None, header={"base_ref": None}))
    run_id = find_runs(store)[0].run_id

    overview = open_page(store.url)
    app = open_page(store.url, "commit", run=run_id)

    assert f"/commit?run={run_id}" in text_of(overview)
    assert not app.exception
    assert "no commit" in text_of(app)


def test_a_machine_without_a_gpu_has_pages(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "cpu.duckdb")
    save_run(store, a_run(3, header={"gpu_uuid": "cpu:runner-1", "gpu_name": "runner-1", "timer": "wall"}))
    series = load_points(store)[0].series.id

    for page, parameters in (("overview", {}), ("trends", {"series": series}), ("commit", {"sha": a_sha(3)})):
        app = open_page(store.url, page, **parameters)
        assert not app.exception
        assert "--gpu" not in text_of(app)


def test_without_a_commit_the_last_ones_are_offered(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url, "commit")

    assert f"sha={sha_of(10)}" in {query for _, query in links_of(app)}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"sha": "f" * 40}, "collect --commit ffff"),
        ({"run": "no-such-run"}, "no-such-run"),
        ({"sha": sha_of(7), "run": "no-such-run"}, "no-such-run"),
    ],
)
def test_an_unknown_commit_or_run_says_what_to_do(
    busy_store: Database, open_page: OpenPage, parameters: dict[str, Any], words: str
) -> None:
    app = open_page(busy_store.url, "commit", **parameters)

    assert not app.exception
    assert words in app.error[0].value.replace("\\", "")


def test_an_address_cannot_put_a_link_into_an_error(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url, "commit", run="[sign in](https://elsewhere.example)")

    assert r"\[sign in\]\(https" in app.error[0].value


def test_a_beginning_that_fits_two_commits_is_refused(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "twins.duckdb")
    for number in (3, 4):
        save_run(store, a_run(number))

    app = open_page(store.url, "commit", sha="000")

    assert "use more digits" in app.error[0].value.replace("\\", "")


@pytest.mark.parametrize("page", ["overview", "trends", "commit"])
def test_a_missing_store_says_what_to_type(tmp_path: Path, open_page: OpenPage, page: str) -> None:
    missing = tmp_path / "none yet.duckdb"

    app = open_page(missing, page)

    assert not app.exception
    assert app.header[0].value == "There is no store here yet"
    assert f"collect --commit HEAD --store '{missing}'" in text_of(app)
    assert not missing.exists()


@pytest.mark.parametrize("page", ["overview", "trends", "commit"])
def test_an_empty_store_says_what_to_type(tmp_path: Path, open_page: OpenPage, page: str) -> None:
    store = Database(tmp_path / "empty.duckdb")
    with store.writing():
        pass

    app = open_page(store.url, page)

    assert not app.exception
    assert app.header[0].value == "The store is empty"
    assert "collect --commit HEAD" in text_of(app)


def test_a_store_in_use_offers_to_try_again(
    tmp_path: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.queries.LOCK_DEADLINE_S", 0.0)
    store = Database(tmp_path / "busy.duckdb")
    save_run(store, a_run(3))

    with writer_elsewhere(store.path):
        app = open_page(store.url)
        assert app.header[0].value == "The store is in use"

    app.button[0].click().run()

    assert app.title[0].value == "Overview"


def test_a_newer_store_asks_for_an_upgrade(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "newer.duckdb")
    save_run(store, a_run(3))
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("update schema_version set version = version + 1000")

    app = open_page(store.url)

    assert app.header[0].value == "The store is newer than this dashboard"
    assert "pip install --upgrade" in text_of(app)


def test_a_page_shows_what_was_measured_since(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "growing.duckdb")
    save_run(store, a_run(3))
    app = open_page(store.url)
    assert "topk[" not in text_of(app)

    save_run(store, a_run(4, measurements=(a_measurement("topk"),)))
    app.run()

    assert "topk[" in text_of(app)


def test_names_from_a_benchmark_are_shown_as_text(tmp_path: Path, open_page: OpenPage) -> None:
    hostile = "<b onclick=x>*bold*"
    store = Database(tmp_path / "hostile.duckdb")
    run = a_run(
        3,
        measurements=(a_measurement(hostile),),
        failures=(a_failure(message="[click](http://example.com) **now**"),),
        header={"gpu_name": "<i>GPU</i>"},
    )
    save_run(store, run)

    app = open_page(store.url, "commit", sha=a_sha(3))

    page = text_of(app)
    assert "<b onclick" not in page.replace("&lt;b", "")
    assert "[click](http" not in page


def test_an_interrupted_run_and_a_short_history_are_pointed_out(tmp_path: Path, open_page: OpenPage) -> None:
    store = Database(tmp_path / "short.duckdb")
    header = a_header(3, interrupted=True, history_note="the clone is shallow")
    save_run(store, a_run(3, header={"interrupted": True, "history_note": header.history_note}))

    app = open_page(store.url, "commit", sha=a_sha(3))

    warnings = " ".join(warning.value for warning in app.warning)
    assert "ended early" in warnings
    assert "the clone is shallow" in warnings
