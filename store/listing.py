"""What a person asks a store for: its runs at a glance, and one run in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from store import shown
from store.headers import HEADER_COLUMNS, header_of
from store.plain import to_plain
from store.rows import fetch_rows
from store.sessions import short_run
from store.windows import SAMPLE_LISTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database
    from store.records import Failure, Measurement, Reading, Run, RunHeader

_INSTANT = "%Y-%m-%d %H:%M"
_SUMMARIES = """
select {columns},
    (select count(*) from measurements where measurements.run_id = runs.run_id) as measured,
    (select count(*) from failures where failures.run_id = runs.run_id) as failed
from runs order by runs.started_at desc, runs.run_id limit ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run with the numbers of its measurements and failures."""

    header: RunHeader
    measured: int
    failed: int


def list_runs(database: Database, *, limit: int) -> list[RunSummary]:
    """The newest runs first, at most ``limit``."""
    with database.reading() as connection:
        rows = fetch_rows(connection, _SUMMARIES.format(columns=HEADER_COLUMNS), [limit])
    return [RunSummary(header=header_of(row), measured=row["measured"], failed=row["failed"]) for row in rows]


def runs_as_text(runs: Sequence[RunSummary]) -> str:
    """A table of runs, or what to do where there is none."""
    if not runs:
        return "The store holds no run yet: measure something with 'collect'."
    lines = [("RUN", "STARTED (UTC)", "COMMIT", "GPU", "TIMER", "MEASURED", "FAILED", "CONFIRMS")]
    for run in runs:
        header = run.header
        lines.append(
            (
                short_run(header.run_id),
                header.started_at.strftime(_INSTANT),
                _commit(header),
                shown.visible(header.gpu_name, limit=30),
                header.timer,
                f"{run.measured}{' (interrupted)' if header.interrupted else ''}",
                str(run.failed),
                "" if header.confirms_run_id is None else short_run(header.confirms_run_id),
            )
        )
    return _table(lines)


def runs_as_plain(runs: Sequence[RunSummary]) -> list[Any]:
    """The same as JSON values."""
    return [to_plain(run) for run in runs]


def run_as_text(run: Run) -> str:
    """A run: what and where, a table of its measurements, and what failed."""
    parts = [_header_as_text(run.header), _measurements_as_text(run.measurements)]
    parts += [_failure_as_text(failure) for failure in run.failures]
    return "\n\n".join(parts)


def run_as_plain(run: Run) -> dict[str, Any]:
    """The same as JSON values: all but the samples, which ``store export`` gives."""
    plain: dict[str, Any] = to_plain(run)
    plain["n_history"] = len(plain.pop("history"))
    for measurement, listed in zip(run.measurements, plain["measurements"], strict=True):
        for window, parts in zip(measurement.windows, listed["windows"], strict=True):
            for name in SAMPLE_LISTS:
                del parts[name]
            parts |= {
                "n": len(window.samples_ms),
                "n_kept": len(window.kept_ms),
                "median_ms": window.median_ms,
            }
    return plain


def _header_as_text(header: RunHeader) -> str:
    minutes, seconds = divmod(round((header.ended_at - header.started_at).total_seconds()), 60)
    lines = [
        ("run", header.run_id),
        ("commit", f"{header.commit_sha or 'none'}{' with local changes' if header.dirty else ''}"),
        ("repository", header.repository),
        ("left", f"{header.base_ref} at {shown.short(header.merge_base)}" if header.base_ref else "no base"),
        ("started", f"{header.started_at:{_INSTANT}} UTC, took {minutes} min {seconds} s"),
        ("GPU", f"{header.gpu_name} ({header.gpu_uuid})"),
        ("measured with", f"timer {header.timer}, clocks {header.clock_regime}, {header.passes} passes"),
        ("environment", header.environment),
        ("suites", ", ".join(header.suites)),
        *((name, _reading(reading)) for name, reading in sorted(header.context.items())),
    ]
    if header.confirms_run_id is not None:
        lines.append(("confirms", f"what was flagged in run {header.confirms_run_id}"))
    if header.history_note:
        lines.append(("history", header.history_note))
    if header.interrupted:
        lines.append(("interrupted", "the run was ended early; what it holds was measured in full"))
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{shown.visible(name):<{width}}  {shown.one_line(value)}" for name, value in lines)


def _measurements_as_text(measurements: Sequence[Measurement]) -> str:
    if not measurements:
        return "Nothing was measured."
    lines = [("BENCHMARK", "MEDIAN (95 % INTERVAL)", "TIER", "WINDOWS", "SAMPLES", "WHY THIS TIER")]
    for measurement in measurements:
        counted = measurement.counted_windows
        kept = sum(len(window.kept_ms) for window in counted)
        taken = sum(len(window.samples_ms) for window in measurement.windows)
        lines.append(
            (
                shown.visible(measurement.case.label, limit=60),
                shown.interval(measurement.interval, measurement.quantity),
                measurement.tier,
                _part(len(counted), len(measurement.windows)),
                _part(kept, taken),
                shown.one_line("; ".join(measurement.tier_evidence[:1]), limit=80),
            )
        )
    return _table(lines)


def _failure_as_text(failure: Failure) -> str:
    what = shown.visible(failure.case.label if failure.case else "suite file")
    return (
        f"FAILED {what} at {shown.visible(failure.source)} ({failure.stage}): "
        f"{shown.one_line(failure.kind)}: {shown.one_line(failure.message, limit=1000)}"
    )


def _reading(reading: Reading) -> str:
    return f"unreadable: {reading.error}" if reading.error is not None else str(reading.value)


def _part(counted: int, all_of_them: int) -> str:
    return str(counted) if counted == all_of_them else f"{counted} of {all_of_them}"


def _commit(header: RunHeader) -> str:
    return shown.short(header.commit_sha) + ("+" if header.dirty else "")


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
