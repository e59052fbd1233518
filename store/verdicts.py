"""Verdicts: one per series of a run; judging again replaces what was decided before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.checks import check_verdict
from store.errors import StoreInvalid
from store.filters import only
from store.records import BaselineKind, Drift, Outcome, Reason, SecondSession, Standing, Tier, Verdict
from store.rows import Row, fetch_rows, from_instant, insert_rows, interval_of, series_columns, series_of
from store.run_lists import VERDICTS_WITH_LISTS, insert_lists, list_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database
    from store.records import Interval

_PLAIN = (
    "run_id", "outcome", "reason", "message", "standing", "tier", "windows", "baseline_kind",
    "effect", "effect_low", "effect_high", "p_value", "q_value", "smallest_seen", "judged_at",
)  # fmt: skip
_SECOND = ("run_id", "outcome", "reason", "effect", "effect_low", "effect_high")
_DRIFT = ("since", "effect", "low", "high", "apart")
_ORDERED = "order by judged_at, run_id, benchmark, parameters, series_id"
_DELETE = "delete from verdicts where run_id = ? and series_id = ?"


def save_verdicts(database: Database, verdicts: Sequence[Verdict]) -> None:
    """Store verdicts in one transaction, in place of earlier ones on the same run and series.

    Raises:
        StoreInvalid: a verdict holds a number that is not finite.
        StoreError: the store could not be opened or written.
    """
    if not verdicts:
        return
    for verdict in verdicts:
        check_verdict(verdict)
    latest = {(verdict.run_id, verdict.series.id): verdict for verdict in verdicts}
    with database.writing() as connection:
        connection.executemany(_DELETE, [list(place) for place in latest])
        insert_lists(connection, (run_ids for verdict in latest.values() for run_ids in _lists(verdict)))
        insert_rows(connection, "verdicts", [_row(verdict) for verdict in latest.values()])


def load_verdicts(
    database: Database,
    *,
    run_ids: Sequence[str] | None = None,
    series_ids: Sequence[str] | None = None,
    standing: Sequence[Standing] | None = None,
) -> list[Verdict]:
    """Verdicts, oldest decision first.

    Args:
        database: the store.
        run_ids: only those on these runs, by their whole ids; None for all.
        series_ids: only those on these series; None for all.
        standing: only those of these standings; None for all.

    Raises:
        StoreInvalid: the runs that a verdict rests on are not stored.
    """
    chosen = only({"run_id": run_ids, "series_id": series_ids, "standing": standing})
    if chosen is None:
        return []
    with database.reading() as connection:
        rows = fetch_rows(
            connection,
            f"{VERDICTS_WITH_LISTS} {chosen.where} {_ORDERED}",
            chosen.parameters,
        )
    return [_verdict_of(row) for row in rows]


def _lists(verdict: Verdict) -> list[tuple[str, ...]]:
    return [verdict.baseline_run_ids, *([] if verdict.drift is None else [verdict.drift.run_ids])]


def _row(verdict: Verdict) -> Row:
    return {
        "baseline_list": list_id(verdict.baseline_run_ids),
        "drift_list": verdict.drift and list_id(verdict.drift.run_ids),
        **{name: getattr(verdict, name) for name in _PLAIN},
        **series_columns(verdict.series),
        **{f"drift_{name}": verdict.drift and getattr(verdict.drift, name) for name in _DRIFT},
        **_interval_columns("candidate", verdict.candidate),
        **_interval_columns("baseline", verdict.baseline),
        **{f"second_{name}": verdict.second and getattr(verdict.second, name) for name in _SECOND},
    }


def _interval_columns(prefix: str, interval: Interval | None) -> Row:
    return {
        f"{prefix}_center_ms": interval and interval.center,
        f"{prefix}_low_ms": interval and interval.low,
        f"{prefix}_high_ms": interval and interval.high,
        f"{prefix}_windows": interval and interval.windows,
        f"{prefix}_status": interval and interval.status,
    }


def _listed(row: Row, what: str) -> tuple[str, ...]:
    found = row[f"{what}_run_ids"]
    if found is None:
        raise StoreInvalid(
            f"the verdict on {row['benchmark']} of run {row['run_id']} rests on a list of runs, "
            f"{row[f'{what}_list']}, that is not stored: run 'store doctor', and judge that run again"
        )
    return tuple(found)


def _drift_of(row: Row) -> Drift | None:
    if row["drift_since"] is None:
        return None
    return Drift(**{name: row[f"drift_{name}"] for name in _DRIFT}, run_ids=_listed(row, "drift"))


def _verdict_of(row: Row) -> Verdict:
    baseline = None
    if row["baseline_status"] is not None:
        baseline = interval_of(row, "baseline_", windows="baseline_windows", status="baseline_status")
    return Verdict(
        **{name: row[name] for name in _PLAIN}
        | {
            "outcome": Outcome(row["outcome"]),
            "reason": Reason(row["reason"]),
            "standing": Standing(row["standing"]),
            "tier": Tier(row["tier"]),
            "baseline_kind": BaselineKind(row["baseline_kind"]),
            "judged_at": from_instant(row["judged_at"]),
        },
        series=series_of(row),
        baseline_run_ids=_listed(row, "baseline"),
        drift=_drift_of(row),
        candidate=interval_of(row, "candidate_", windows="candidate_windows", status="candidate_status"),
        baseline=baseline,
        second=_second_of(row),
    )


def _second_of(row: Row) -> SecondSession | None:
    if row["second_run_id"] is None:
        return None
    return SecondSession(
        **{name: row[f"second_{name}"] for name in _SECOND}
        | {"outcome": Outcome(row["second_outcome"]), "reason": Reason(row["second_reason"])}
    )
