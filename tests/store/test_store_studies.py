"""Studies come back as they were saved, each once, the newest first."""

from __future__ import annotations

import math
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from builders import EPOCH, GPU_UUID, a_header, a_run, a_sha

from store.doctor import Level, examine
from store.errors import StoreInvalid
from store.records import CacheState, Case, Quantity, Tier
from store.runs import save_run
from store.schema import migrate
from store.studies import AaResult, AaStudy, WallTime, load_studies, save_study

if TYPE_CHECKING:
    from store.database import Database


A_TIME = WallTime(calls_s=20.0, pauses_s=30.5, warm_up_s=10.0, loop_s=40.0, reading_s=15.0, setup_s=60.0)


def a_result(benchmark: str = "softmax", **changes: Any) -> AaResult:
    """A series that five runs agree on."""
    fields: dict[str, Any] = {
        "series": a_header().series_key(
            Case.of(benchmark, {"rows": 8}), Quantity.DEVICE_BUSY, CacheState.COLD
        ),
        "tier": Tier.A,
        "runs": 5,
        "center_ms": 0.25,
        "run_sd": 0.001,
        "window_sd": 0.002,
        "pairs": 10,
        "pairs_flagged": 1,
        "smallest_seen": 0.004,
        "pool_runs": 5,
        "pool_flagged": 1,
        "pool_smallest_seen": 0.006,
    }
    return AaResult(**(fields | changes))


def a_study(number: int = 0, **changes: Any) -> AaStudy:
    """A study of two benchmarks, one hour after the one before."""
    fields: dict[str, Any] = {
        "study_id": str(uuid.UUID(int=number)),
        "repository": "github.com/example/kernels",
        "commit_shas": (a_sha(10),),
        "gpu_uuids": (GPU_UUID,),
        "run_ids": tuple(a_header(number=i).run_id for i in range(5)),
        "left_out": ("broken",),
        "seconds": 250.5,
        "seconds_per_case": 1.7,
        "tool_version": "0.1.0",
        "analysed_at": EPOCH + timedelta(hours=number),
        "results": (a_result("matmul", pairs_flagged=0), a_result()),
        "wall_time": A_TIME,
    }
    return AaStudy(**(fields | changes))


def test_a_study_comes_back_as_it_was_saved(database: Database) -> None:
    save_study(database, a_study())

    assert load_studies(database) == [a_study()]


def test_saving_a_study_again_replaces_it(database: Database) -> None:
    save_study(database, a_study())
    later = replace(a_study(), results=(a_result("gather"),))
    save_study(database, later)

    assert load_studies(database) == [later]


def test_studies_are_found_by_id_and_by_gpu(database: Database) -> None:
    ours, other = a_study(1), a_study(2, gpu_uuids=("GPU-other",))
    save_study(database, ours)
    save_study(database, other)

    assert load_studies(database) == [other, ours]
    assert load_studies(database, gpu_uuid=GPU_UUID) == [ours]
    assert load_studies(database, study_id=other.study_id) == [other]


def test_a_study_counts_false_alarms_over_all_its_series() -> None:
    study = a_study()

    assert (study.pairs_flagged, study.pairs, study.false_alarms) == (1, 20, 0.05)
    assert a_study(results=()).false_alarms is None


def test_a_study_without_pools_and_without_its_time_comes_back_so(database: Database) -> None:
    bare = a_result(pool_runs=0, pool_flagged=0, pool_smallest_seen=None)
    study = a_study(results=(bare,), wall_time=None)
    save_study(database, study)

    assert load_studies(database) == [study]
    assert study.idle_share is None


def test_a_study_counts_flags_against_the_pool_and_time_that_was_no_use() -> None:
    study = a_study()

    assert (study.pool_flagged, study.pool_runs) == (2, 10)
    assert study.idle_share == pytest.approx(1 - 50.5 / 250.5)


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (a_study(study_id="first"), "no UUID"),
        (a_study(seconds=math.inf), "seconds is inf"),
        (a_study(results=(a_result(run_sd=math.nan),)), r"softmax\[rows=8\]: run_sd is nan"),
        (a_study(wall_time=replace(A_TIME, loop_s=math.nan)), "loop_s is nan"),
        (a_study(results=(a_result(pool_smallest_seen=math.inf),)), "pool_smallest_seen is inf"),
        (a_study(analysed_at=EPOCH.replace(tzinfo=None)), "no time zone"),
    ],
)
def test_a_study_that_could_not_be_kept_is_refused(database: Database, study: AaStudy, words: str) -> None:
    with pytest.raises(StoreInvalid, match=words):
        save_study(database, study)
    assert not database.exists()


def test_a_store_from_before_pairs_and_studies_keeps_its_runs(database: Database) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{database.path}' as db")
        connection.execute("use db")
        migrate(connection, target=2)
        connection.execute(
            "insert into runs values ('a', 'r', null, false, null, null, 'n', now()::timestamp, "
            "now()::timestamp, 'g', 'g', 'wall', 'free', '', 8, 1, [], '0', 1, false, '{}', [], [], "
            "now()::timestamp)"
        )
    save_run(database, a_run())

    with database.reading() as connection:
        rows = connection.execute(
            "select run_id, paired_with, paired_role, aa_study from runs order by run_id desc"
        ).fetchall()
    assert rows == [("a", None, None, None), (a_run().header.run_id, None, None, None)]
    assert load_studies(database) == []


def test_a_study_from_before_pools_comes_back_without_them(database: Database) -> None:
    series = a_result().series
    with duckdb.connect() as connection:
        connection.execute(f"attach '{database.path}' as db")
        connection.execute("use db")
        migrate(connection, target=8)
        connection.execute(
            "insert into aa_studies values (?, 'r', [], ['g'], ['a', 'b'], [], 80, 2, '0', now()::timestamp)",
            [str(uuid.UUID(int=1))],
        )
        connection.execute(
            "insert into aa_results values (?, ?, 'softmax', ?, ?, ?, ?, ?, ?, ?, 'A', 2, 1, 0, 0, 1, 0, 0)",
            [
                str(uuid.UUID(int=1)), series.id, series.case.parameters_json, series.quantity,
                series.gpu_uuid, series.timer, series.cache_state, series.clock_regime, series.environment,
            ],
        )  # fmt: skip

    (study,) = load_studies(database)
    assert study.wall_time is None
    assert [(r.pool_runs, r.pool_flagged, r.pool_smallest_seen) for r in study.results] == [(0, 0, None)]


def test_the_doctor_sees_results_whose_study_is_gone(database: Database) -> None:
    save_study(database, a_study())
    with database.writing() as connection:
        connection.execute("delete from aa_studies")

    wrong = [finding.message for finding in examine(database) if finding.level is Level.WRONG]
    assert wrong == ["2 results without their study"]
