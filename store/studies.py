"""A/A studies: the same code measured several times, and how far the results lay apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.checks import RUN_ID_PATTERN
from store.errors import StoreInvalid
from store.records import SeriesKey, Tier
from store.rows import Row, fetch_rows, from_instant, insert_rows, series_columns, series_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from store.database import Database

_RESULT_FIELDS = (
    "runs", "center_ms", "run_sd", "window_sd", "pairs", "pairs_flagged", "smallest_seen", "pool_runs",
    "pool_flagged", "pool_smallest_seen",
)  # fmt: skip
_STUDY_FIELDS = (
    "study_id", "repository", "commit_shas", "gpu_uuids", "run_ids", "left_out", "seconds",
    "seconds_per_case", "tool_version", "analysed_at",
)  # fmt: skip
_TIME_FIELDS = ("calls_s", "pauses_s", "warm_up_s", "loop_s", "reading_s", "setup_s")
_STUDIES = """
select * from aa_studies
where (? is null or study_id = ?) and (? is null or list_contains(gpu_uuids, ?))
order by analysed_at desc, study_id
"""
_RESULTS = """
select aa_results.* from aa_results join aa_studies using (study_id)
where (? is null or study_id = ?) and (? is null or list_contains(aa_studies.gpu_uuids, ?))
order by benchmark, parameters, series_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AaResult:
    """How far runs of the same code lay apart in one series.

    Attributes:
        tier: the lowest of the runs.
        runs: how many of them gave an interval.
        center_ms: median of the runs' centres, on a log scale.
        run_sd: standard deviation of the log centres; 0.001 is 0.1 %.
        window_sd: standard deviation of the log window medians inside a run, pooled over runs.
        pairs: pairs of runs that were compared.
        pairs_flagged: those whose intervals do not overlap: each would have been a false alarm.
        smallest_seen: the smallest slowdown that 95 % of the pairs would have shown, either run
            first, as a share of the time; below 0 where the pairs lie apart by themselves.
        pool_runs: runs that were judged against the pool of the others; 0 where those are too few.
        pool_flagged: those that a verdict would have called changed.
        pool_smallest_seen: the smallest slowdown that 95 % of them would have shown; None where
            none was judged.
    """

    series: SeriesKey
    tier: Tier
    runs: int
    center_ms: float
    run_sd: float
    window_sd: float
    pairs: int
    pairs_flagged: int
    smallest_seen: float
    pool_runs: int = 0
    pool_flagged: int = 0
    pool_smallest_seen: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WallTime:
    """Where the wall time of runs went, in seconds; what is in none of these lies outside windows.

    Attributes:
        calls_s: the device at the calls, in loops and warm-ups.
        pauses_s: pauses that hold the clock, in loops and warm-ups.
        warm_up_s: the rest of the warm-ups.
        loop_s: the rest of the timed loops: clearing the cache, settling, launching, reading clocks.
        reading_s: reading what was recorded.
        setup_s: the set-up of benchmarks.
    """

    calls_s: float
    pauses_s: float
    warm_up_s: float
    loop_s: float
    reading_s: float
    setup_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AaStudy:
    """Several runs of the same code, compared with one another.

    Attributes:
        study_id: a UUID; saving a study again replaces it.
        commit_shas: the measured commits, each once. More than one means that somebody vouches
            for their being the same where it matters.
        run_ids: the runs, oldest first.
        left_out: labels of cases that fewer than two runs gave an interval for.
        seconds: wall time of all runs together, process starts included.
        seconds_per_case: wall time of a run divided by its cases, on average over the runs.
        wall_time: where ``seconds`` went; None where nobody looked, or passes took turns with those
            of another commit.
    """

    study_id: str
    repository: str
    commit_shas: tuple[str, ...]
    gpu_uuids: tuple[str, ...]
    run_ids: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float
    seconds_per_case: float
    tool_version: str
    analysed_at: datetime
    results: tuple[AaResult, ...]
    wall_time: WallTime | None = None

    @property
    def pairs(self) -> int:
        """Pairs of runs that were compared, over all series."""
        return sum(result.pairs for result in self.results)

    @property
    def pairs_flagged(self) -> int:
        """Those whose intervals do not overlap."""
        return sum(result.pairs_flagged for result in self.results)

    @property
    def false_alarms(self) -> float | None:
        """The share of pairs that would have been a false alarm; None where nothing was compared."""
        return self.pairs_flagged / self.pairs if self.pairs else None

    @property
    def pool_runs(self) -> int:
        """Runs that were judged against the pool of the others, over all series."""
        return sum(result.pool_runs for result in self.results)

    @property
    def pool_flagged(self) -> int:
        """Those that a verdict would have called changed."""
        return sum(result.pool_flagged for result in self.results)

    @property
    def idle_share(self) -> float | None:
        """The share of the time in which neither the device worked on calls nor a pause was needed."""
        if self.wall_time is None or self.seconds <= 0:
            return None
        return 1 - (self.wall_time.calls_s + self.wall_time.pauses_s) / self.seconds


def save_study(database: Database, study: AaStudy) -> None:
    """Store a study in one transaction, in place of an earlier one with its id.

    Raises:
        StoreInvalid: the id is no UUID, a number is not finite, or an instant has no time zone.
        StoreError: the store could not be opened or written.
    """
    _check(study)
    with database.writing() as connection:
        for table in ("aa_studies", "aa_results"):
            connection.execute(f"delete from {table} where study_id = ?", [study.study_id])  # noqa: S608 - fixed names
        insert_rows(
            connection,
            "aa_studies",
            [{name: getattr(study, name) for name in _STUDY_FIELDS} | _time_columns(study.wall_time)],
        )
        insert_rows(
            connection,
            "aa_results",
            [
                {
                    "study_id": study.study_id,
                    **series_columns(result.series),
                    "tier": result.tier,
                    **{name: getattr(result, name) for name in _RESULT_FIELDS},
                }
                for result in study.results
            ],
        )


def load_studies(
    database: Database, *, study_id: str | None = None, gpu_uuid: str | None = None
) -> list[AaStudy]:
    """Studies, newest first, their results by benchmark.

    Args:
        database: the store.
        study_id: only this one; None for all.
        gpu_uuid: only those with a run on this GPU; None for all.
    """
    parameters = [study_id, study_id, gpu_uuid, gpu_uuid]
    with database.reading() as connection:
        studies = fetch_rows(connection, _STUDIES, parameters)
        results = fetch_rows(connection, _RESULTS, parameters)
    by_study: dict[str, list[AaResult]] = {}
    for row in results:
        by_study.setdefault(row["study_id"], []).append(_result_of(row))
    return [_study_of(row, by_study.get(row["study_id"], [])) for row in studies]


def _check(study: AaStudy) -> None:
    where = f"study {study.study_id}"
    if not RUN_ID_PATTERN.fullmatch(study.study_id):
        raise StoreInvalid(f"the study's id is no UUID in lower case: {study.study_id!r}")
    if study.analysed_at.utcoffset() is None:
        raise StoreInvalid(f"{where}: analysed_at {study.analysed_at} has no time zone")
    numbers: list[tuple[str, float | None]] = [
        ("seconds", study.seconds),
        ("seconds_per_case", study.seconds_per_case),
    ]
    numbers += _time_columns(study.wall_time).items()
    for result in study.results:
        label = result.series.case.label
        numbers += [(f"{label}: {name}", getattr(result, name)) for name in _RESULT_FIELDS]
    for name, value in numbers:
        if value is not None and not math.isfinite(value):
            raise StoreInvalid(f"{where}: {name} is {value}, which is not finite")


def _time_columns(spent: WallTime | None) -> dict[str, float | None]:
    return {name: None if spent is None else getattr(spent, name) for name in _TIME_FIELDS}


def _study_of(row: Row, results: Sequence[AaResult]) -> AaStudy:
    lists = {name: tuple(row[name]) for name in ("commit_shas", "gpu_uuids", "run_ids", "left_out")}
    spent = {name: row[name] for name in _TIME_FIELDS}
    return AaStudy(
        **{name: row[name] for name in _STUDY_FIELDS}
        | lists
        | {
            "analysed_at": from_instant(row["analysed_at"]),
            "results": tuple(results),
            "wall_time": None if None in spent.values() else WallTime(**spent),
        }
    )


def _result_of(row: Row) -> AaResult:
    counts = {name: row[name] for name in _RESULT_FIELDS}
    return AaResult(series=series_of(row), tier=Tier(row["tier"]), **counts)
