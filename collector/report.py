"""A run as a person reads it in a terminal, and as a program reads it: pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.tables import aligned
from store import shown
from store.plain import to_plain
from store.records import FoldStatus, Outcome, Quantity, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Interval, Measurement, Run, SeriesKey, Verdict

_COLUMNS = ("benchmark", "median", "95 % interval", "throughput", "tier", "windows", "kernels", "verdict")
_RIGHT = frozenset({"median", "throughput", "windows", "kernels"})
USABLE_RATIO = 4.0  # of the bounds; beyond it a call might as well have become twice as fast


def run_text(run: Run, verdicts: Sequence[Verdict] | None) -> str:
    """The run as a table, what failed below it.

    Args:
        run: what was measured.
        verdicts: of this run; None where it was not judged.
    """
    by_series = {verdict.series: verdict for verdict in verdicts or ()}
    rows = [
        _row(
            measurement,
            _verdict_text(by_series.get(run.series_key(measurement)), judged=verdicts is not None),
        )
        for measurement in run.measurements
    ]
    parts = [_title(run), "", *aligned(_COLUMNS, rows, right=_RIGHT)]
    if run.failures:
        parts += ["", f"Not measured ({len(run.failures)}):", *failure_lines(run)]
    return "\n".join(parts)


def _title(run: Run) -> str:
    header = run.header
    commit = "no commit" if header.commit_sha is None else header.commit_sha[: shown.SHORT_SHA]
    dirty = " with uncommitted changes" if header.dirty else ""
    seconds = (header.ended_at - header.started_at).total_seconds()
    ended = "interrupted after" if header.interrupted else "in"
    return (
        f"{shown.one_line(header.repository)} at {commit}{dirty} on {shown.one_line(header.gpu_name)}, "
        f"timer {header.timer}, "
        f"{header.clock_regime} clocks, {ended} {seconds:.0f} s"
    )


def _row(measurement: Measurement, verdict: str) -> tuple[str, ...]:
    interval = measurement.interval
    counts = [kernel.count for kernel in measurement.kernels]
    return (
        shown.one_line(measurement.case.label),
        "none" if interval.center is None else shown.amount(interval.center, measurement.quantity),
        _bounds(interval, measurement.quantity),
        _throughput(measurement),
        measurement.tier.value,
        str(interval.windows),
        str(sum(counts)) if counts else "",
        verdict,
    )


def _throughput(measurement: Measurement) -> str:
    """What the benchmark's flops and bytes come to at the centre; empty where it does not say them."""
    rates = ((measurement.tflops, "TFLOP/s"), (measurement.bandwidth_tbs, "TB/s"))
    return ", ".join(f"{shown.digits_of(rate)} {unit}" for rate, unit in rates if rate is not None)


def _bounds(interval: Interval, quantity: Quantity) -> str:
    """The bounds, and how far they can be used.

    Three windows that differ much give bounds many powers of ten apart. Each then gets a unit of
    its own, for ``0.001 to 5916401 us`` says nothing to anybody.
    """
    mark = " provisional" if interval.status is FoldStatus.PROVISIONAL else ""
    if interval.bounds is None:
        return shown.bounds(interval, quantity)
    low, _, high = interval.bounds
    if high <= USABLE_RATIO * low:
        return f"{shown.bounds(interval, quantity)}{mark}"
    return f"{shown.amount(low, quantity)} to {shown.amount(high, quantity)}{mark}, too wide to use"


def _verdict_text(verdict: Verdict | None, *, judged: bool) -> str:
    if verdict is None:
        return "not judged" if not judged else ""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return f"{verdict.outcome} ({verdict.reason})"
    effect = "" if verdict.effect is None else f" {shown.change(verdict.effect)}"
    standing = "" if verdict.standing is Standing.NONE else f", {verdict.standing}"
    return f"{verdict.outcome}{effect}{standing}"


def failure_lines(run: Run) -> list[str]:
    """One line a failure; a case that failed alike in several passes is said once."""
    grouped: dict[tuple[str, ...], int] = {}
    for failure in run.failures:
        label = "suite" if failure.case is None else failure.case.label
        key = (label, failure.source, failure.kind, failure.message)
        grouped[key] = grouped.get(key, 0) + 1
    return [
        f"  {shown.one_line(label)} ({shown.one_line(source)}): {shown.one_line(f'{kind}: {message}')}"
        + (f" [{count} passes]" if count > 1 else "")
        for (label, source, kind, message), count in grouped.items()
    ]


def run_json(run: Run, verdicts: Sequence[Verdict] | None) -> dict[str, Any]:
    """The run without raw samples, as JSON values. Times are milliseconds."""
    header = run.header
    by_series: dict[SeriesKey, Verdict] = {verdict.series: verdict for verdict in verdicts or ()}
    return {
        "run_id": header.run_id,
        "repository": header.repository,
        "commit": header.commit_sha,
        "dirty": header.dirty,
        "interrupted": header.interrupted,
        "paired_with": header.paired_with,
        "paired_role": header.paired_role,
        "aa_study": header.aa_study,
        "confirms_run_id": header.confirms_run_id,
        "gpu_uuid": header.gpu_uuid,
        "gpu_name": header.gpu_name,
        "timer": header.timer.value,
        "clock_regime": header.clock_regime.value,
        "environment": header.environment,
        "passes": header.passes,
        "seed": header.seed,
        "started_at": header.started_at.isoformat(),
        "ended_at": header.ended_at.isoformat(),
        "judged": verdicts is not None,
        "measurements": [
            _measurement_json(run, m, by_series.get(run.series_key(m))) for m in run.measurements
        ],
        "failures": [
            {
                "benchmark": None if failure.case is None else failure.case.label,
                "stage": failure.stage.value,
                "kind": failure.kind,
                "message": failure.message,
                "source": failure.source,
                "pass": failure.pass_index,
                "log": failure.log,
            }
            for failure in run.failures
        ],
    }


def _measurement_json(run: Run, measurement: Measurement, verdict: Verdict | None) -> dict[str, Any]:
    interval = measurement.interval
    return {
        "series": run.series_key(measurement).id,
        "benchmark": measurement.case.benchmark,
        "parameters": dict(measurement.case.parameters),
        "quantity": measurement.quantity.value,
        "unit": "x" if measurement.quantity is Quantity.RATIO else "ms",
        "cache_state": measurement.cache_state.value,
        "source": measurement.source,
        "median_ms": interval.center,
        "low_ms": interval.low,
        "high_ms": interval.high,
        "status": interval.status.value,
        "windows": interval.windows,
        "samples": sum(len(window.kept_ms) for window in measurement.counted_windows),
        "tier": measurement.tier.value,
        "evidence": list(measurement.tier_evidence),
        "tflops": measurement.tflops,
        "bandwidth_tbs": measurement.bandwidth_tbs,
        "kernels": [{"name": kernel.name, "count": kernel.count} for kernel in measurement.kernels],
        "verdict": None
        if verdict is None
        else {
            "outcome": verdict.outcome.value,
            "reason": verdict.reason.value,
            "standing": verdict.standing.value,
            "message": verdict.message,
            "effect": verdict.effect,
            "effect_low": verdict.effect_low,
            "effect_high": verdict.effect_high,
            "second": None if verdict.second is None else to_plain(verdict.second),
        },
    }
