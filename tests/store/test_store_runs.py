"""Runs go in whole, once, and come out as they were."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_commit, a_failure, a_header, a_kernel, a_measurement, a_run, a_sha, a_window
from hypothesis import HealthCheck, Phase, given, settings
from run_strategies import runs

from store.errors import RunNotFound, StoreInvalid, StoreMissing
from store.records import Case, FoldStatus, Interval, Reading, Run
from store.runs import find_runs, load_run, save_run

if TYPE_CHECKING:
    from store.database import Database


# Every example is a transaction on disk, so a failing one is shown as it was drawn, not shrunk.
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=runs())
def test_any_run_comes_back_exactly_as_it_was_saved(database: Database, drawn: Run) -> None:
    """Hypothesis draws the same run again at times, so each gets an id of its own."""
    header = replace(drawn.header, run_id=str(uuid.uuid4()), repository=str(uuid.uuid4()))
    run = replace(drawn, header=header)

    assert save_run(database, run)

    assert load_run(database, run.header.run_id) == run


def test_a_run_with_everything_in_it_comes_back(database: Database) -> None:
    """Unlike the generated runs this one has realistic sizes."""
    odd = a_window(
        2,
        samples_ms=(0.25, 0.26, 0.3),
        exclusions=(None, "clock 1755 MHz outside the band", None),
        sm_clock_mhz=(1980, 1755, None),
        latency_ms=(),
        telemetry={"power_w": Reading(error="NVML: Unknown Error"), "name": Reading(value="a\0b ✓ 🚀")},
    )
    run = a_run(
        measurements=(
            a_measurement("softmax", kernels=(a_kernel(), a_kernel(cluster=(2, 1, 1), count=3))),
            a_measurement("empty", windows=(), interval=Interval(None, None, None, 0, FoldStatus.REFUSED)),
            a_measurement("odd", windows=(odd, a_window(1, samples_ms=(), invalid="records dropped"))),
        ),
        failures=(a_failure(), a_failure(case=None, pass_index=None)),
    )

    save_run(database, run)

    assert load_run(database, run.header.run_id) == run


def test_an_order_of_reading_is_kept(database: Database) -> None:
    context = {"z": Reading(value=1), "a": Reading(value=2)}
    run = a_run(header={"context": context})

    save_run(database, run)

    assert list(load_run(database, run.header.run_id).header.context) == ["z", "a"]


def test_a_run_saved_twice_exists_once(database: Database) -> None:
    run = a_run()
    changed = replace(run, header=replace(run.header, gpu_name="another"))

    assert save_run(database, run) is True
    assert save_run(database, changed) is False
    assert find_runs(database) == [run.header]
    with database.reading() as connection:
        assert connection.execute("select count(*) from windows").fetchall() == [(8,)]


def test_a_run_is_found_by_the_beginning_of_its_id(database: Database) -> None:
    run = a_run()
    save_run(database, run)

    assert load_run(database, run.header.run_id[:4].upper()) == run


def test_a_beginning_that_two_runs_share_names_both(database: Database) -> None:
    first = a_run(header={"run_id": "aaaaaaaa-0000-4000-8000-000000000001"})
    second = a_run(header={"run_id": "aaaaaaaa-0000-4000-8000-000000000002"})
    save_run(database, first)
    save_run(database, second)

    with pytest.raises(RunNotFound, match=r"could be aaaaaaaa.*0001, aaaaaaaa.*0002|.*0002, .*0001"):
        load_run(database, "aaaa")


@pytest.mark.parametrize("unknown", ["ffffffff", "", "  ", "%", "a' or 1=1 --"])
def test_a_run_that_is_not_there_is_not_found(database: Database, unknown: str) -> None:
    save_run(database, a_run())

    with pytest.raises(RunNotFound, match="store show"):
        load_run(database, unknown)


def test_asking_an_absent_store_says_how_to_make_one(database: Database) -> None:
    with pytest.raises(StoreMissing, match="collect"):
        find_runs(database)
    assert not database.exists()


def test_runs_are_found_newest_first_by_commit_and_gpu(database: Database) -> None:
    old, new = a_run(10), a_run(11)
    again = a_run(10, number=1)
    elsewhere = a_run(10, number=2, header={"gpu_uuid": "GPU-other"})
    for run in (old, new, again, elsewhere):
        save_run(database, run)

    assert find_runs(database) == [r.header for r in (new, elsewhere, again, old)]
    assert find_runs(database, limit=1) == [new.header]
    assert find_runs(database, commit_sha=a_sha(11)[:40]) == [new.header]
    assert find_runs(database, gpu_uuid="GPU-other") == [elsewhere.header]
    assert find_runs(database, commit_sha=a_sha(10), gpu_uuid=old.header.gpu_uuid) == [
        again.header,
        old.header,
    ]


def test_runs_without_a_commit_are_kept_and_found(database: Database) -> None:
    run = a_run(None)

    save_run(database, run)

    assert load_run(database, run.header.run_id) == run
    assert find_runs(database) == [run.header]
    assert find_runs(database, commit_sha="0") == []


def test_instants_come_back_in_utc(database: Database) -> None:
    run = a_run()
    save_run(database, run)

    assert load_run(database, run.header.run_id).header.started_at.utcoffset() == timedelta(0)


def test_bytes_that_are_no_text_stay_visible(database: Database) -> None:
    """A file name may hold bytes that are not UTF-8; they must not cost the run."""
    run = a_run(measurements=(a_measurement(source="suites/\udcff.py:1"),))

    save_run(database, run)

    assert load_run(database, run.header.run_id).measurements[0].source == r"suites/\udcff.py:1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run_id": "../../etc/passwd"}, "run id"),
        ({"commit_sha": "abc"}, "commit_sha 'abc'"),
        ({"merge_base": "main"}, "merge_base 'main'"),
        ({"started_at": EPOCH.replace(tzinfo=None)}, "started_at .* no time zone"),
        ({"seed": 2**63}, "seed .* 64 bits"),
    ],
)
def test_a_header_that_cannot_be_kept_is_refused(
    database: Database, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StoreInvalid, match=message):
        save_run(database, a_run(header=changes))
    assert not database.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flops": float("nan")}, "measurement softmax.*: flops is nan"),
        ({"resolution_ms": float("inf")}, "resolution_ms is inf"),
        ({"windows": (a_window(latency_ms=(float("nan"),) * 30),)}, "window 0: latency_ms"),
        ({"windows": (a_window(throttle_reasons=(2**63,) * 30),)}, "throttle_reasons"),
        ({"windows": (a_window(samples_ms=(1e13,)),)}, "1e\\+13 ms, longer than any run"),
        ({"kernels": (a_kernel(grid=(2**63, 1, 1)),)}, "kernel softmax_warp_forward"),
    ],
)
def test_a_measurement_that_cannot_be_kept_is_refused(
    database: Database, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StoreInvalid, match=message):
        save_run(database, a_run(measurements=(a_measurement(**changes),)))


def test_a_series_cannot_occur_twice_in_a_run(database: Database) -> None:
    twice = (a_measurement(source="a.py:1"), a_measurement(source="b.py:2"))

    with pytest.raises(StoreInvalid, match=r"twice, from a\.py:1 and from b\.py:2"):
        save_run(database, a_run(measurements=twice))


def test_a_refused_run_leaves_nothing_behind(database: Database) -> None:
    """The contradiction shows only when the commits are compared, inside the transaction."""
    save_run(database, a_run(10))
    forged = a_run(11, history=(a_commit(11), a_commit(10, parents=(a_sha(4),)), a_commit(12)))

    with pytest.raises(StoreInvalid, match=f"commit {a_sha(10)} .* one of the two histories is false"):
        save_run(database, forged)

    assert find_runs(database) == [a_run(10).header]
    with database.reading() as connection:
        known = connection.execute("select count(*) from commits where sha = ?", [a_sha(12)]).fetchall()
    assert known == [(0,)]


def test_statistics_of_a_window_are_those_of_its_kept_samples(database: Database) -> None:
    window = a_window(
        samples_ms=(1.0, 2.0, 3.0, 4.0, 100.0), exclusions=(None, None, None, None, "clock"), latency_ms=()
    )
    save_run(database, a_run(measurements=(a_measurement(windows=(window,)),)))

    with database.reading() as connection:
        row = connection.execute(
            "select n, n_kept, median_ms, mean_ms, sd_ms, min_ms, p10_ms, p90_ms from windows"
        ).fetchone()

    assert row == (5, 4, 2.5, 2.5, pytest.approx(1.2909944), 1.0, pytest.approx(1.3), pytest.approx(3.7))


def test_statistics_without_samples_are_null_not_zero(database: Database) -> None:
    dropped = a_window(samples_ms=(), invalid="records dropped")
    save_run(database, a_run(measurements=(a_measurement(windows=(dropped,)),)))

    with database.reading() as connection:
        row = connection.execute(
            "select n, n_kept, median_ms, mean_ms, sd_ms, min_ms, p10_ms, p90_ms from windows"
        ).fetchone()

    assert row == (0, 0, None, None, None, None, None, None)


def test_parameters_keep_their_types(database: Database) -> None:
    case = Case.of("b", {"i": 1, "f": 1.0, "t": True, "n": None, "s": "1"})
    run = a_run(measurements=(a_measurement("b", case=case),))
    save_run(database, run)

    loaded = load_run(database, run.header.run_id).measurements[0].case

    assert [(name, type(value)) for name, value in loaded.parameters] == [
        ("f", float),
        ("i", int),
        ("n", type(None)),
        ("s", str),
        ("t", bool),
    ]


def test_run_ids_of_headers_are_uuids() -> None:
    """The builders make what the store demands."""
    assert len(a_header().run_id) == 36
