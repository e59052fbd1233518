"""Build records with only the parts a test cares about; everything else is plausible and fixed."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from store.folding import FOLD_VERSION, fold_windows
from store.records import (
    BaselineKind,
    CacheState,
    Case,
    ClockRegime,
    Commit,
    Failure,
    FoldStatus,
    Interval,
    Kernel,
    Measurement,
    Outcome,
    Quantity,
    Reading,
    Reason,
    Run,
    RunHeader,
    SecondSession,
    SeriesPoint,
    Stage,
    Standing,
    Tier,
    Timer,
    Verdict,
    Window,
)

EPOCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GPU_UUID = "GPU-5b1e4f6a-0c3d-4e2f-9a7b-1c2d3e4f5a6b"
ENVIRONMENT = "cuda=13.0 driver=580.159.04 torch=2.11.0"


def a_sha(number: int) -> str:
    """A commit id that is easy to recognise: the number, in forty hexadecimal digits."""
    return f"{number:040x}"


def a_commit(number: int, **changes: Any) -> Commit:
    """Commit ``number`` on a straight line: its parent is the commit before it."""
    fields: dict[str, Any] = {
        "sha": a_sha(number),
        "parents": (a_sha(number - 1),) if number > 1 else (),
        "author": "Ada Example",
        "authored_at": EPOCH + timedelta(hours=number),
        "committed_at": EPOCH + timedelta(hours=number),
        "subject": f"Change number {number}",
    }
    return Commit(**(fields | changes))


def a_line_of_commits(newest: int, length: int = 50) -> tuple[Commit, ...]:
    """Commit ``newest`` and its ancestors, newest first."""
    return tuple(a_commit(number) for number in range(newest, max(newest - length, 0), -1))


def some_samples(median_ms: float, *, n: int = 30, noise: float = 0.002, seed: int = 0) -> tuple[float, ...]:
    """Durations around a median with relative noise, always the same for the same seed."""
    rng = random.Random(seed)
    return tuple(median_ms * (1 + rng.gauss(0, noise)) for _ in range(n))


def a_window(
    pass_index: int = 0, *, median_ms: float = 0.25, n: int = 30, seed: int = 0, **changes: Any
) -> Window:
    """A good window of the CUPTI timer at a steady 1980 MHz."""
    samples: tuple[float, ...] = changes.pop("samples_ms", some_samples(median_ms, n=n, seed=seed))
    n = len(samples)
    fields: dict[str, Any] = {
        "pass_index": pass_index,
        "position": 0,
        "pid": 4000 + pass_index,
        "started_at": EPOCH + timedelta(seconds=pass_index),
        "samples_ms": samples,
        "exclusions": (None,) * n,
        "latency_ms": samples,
        "sum_ms": samples,
        "copy_ms": (0.0,) * n,
        "n_kernels": (1,) * n,
        "pause_ms": (0.0,) * n,
        "sm_clock_mhz": (1980,) * n,
        "throttle_reasons": (0,) * n,
        "warmup_calls": 25,
        "warmup_ms": 26.0,
        "telemetry": {"temperature_c": Reading(value=41), "power_w": Reading(value=212.0)},
    }
    return Window(**(fields | changes))


def a_kernel(**changes: Any) -> Kernel:
    """One kernel of a call."""
    fields: dict[str, Any] = {
        "name": "softmax_warp_forward",
        "grid": (1024, 1, 1),
        "block": (128, 1, 1),
        "cluster": (0, 0, 0),
        "registers": 40,
        "shared_bytes": 0,
        "count": 1,
    }
    return Kernel(**(fields | changes))


def a_measurement(
    benchmark: str = "softmax",
    *,
    median_ms: float = 0.25,
    passes: int = 8,
    between: float = 0.001,
    seed: int = 0,
    parameters: dict[str, Any] | None = None,
    **changes: Any,
) -> Measurement:
    """A tier-A measurement of ``passes`` windows whose medians differ by about ``between``."""
    rng = random.Random(f"{benchmark}-{seed}")
    windows = changes.pop(
        "windows",
        tuple(
            a_window(i, median_ms=median_ms * (1 + rng.gauss(0, between)), seed=1000 * seed + i)
            for i in range(passes)
        ),
    )
    fields: dict[str, Any] = {
        "case": Case.of(benchmark, {"rows": 1024} if parameters is None else parameters),
        "quantity": Quantity.DEVICE_BUSY,
        "cache_state": CacheState.COLD,
        "tags": ("memory",),
        "source": "suites/example.py:12",
        "interval": fold_windows([w.kept_ms for w in windows if w.counts], resolution=3.2e-5),
        "resolution_ms": 3.2e-5,
        "tier": Tier.A,
        "tier_evidence": ("held clocks; 8 windows of their own process; every kept sample at 1980 MHz",),
        "kernels": (a_kernel(),),
        "flops": 4.2e7,
        "bytes_moved": 3.4e7,
        "windows": windows,
        "fold_version": FOLD_VERSION,
    }
    return Measurement(**(fields | changes))


def a_failure(benchmark: str = "broken", **changes: Any) -> Failure:
    """A benchmark that raised in its call."""
    fields: dict[str, Any] = {
        "case": Case.of(benchmark, {}),
        "stage": Stage.CALL,
        "kind": "ValueError",
        "message": "shapes do not match",
        "source": "suites/example.py:30",
        "log": "Traceback (most recent call last): ...",
        "pass_index": 0,
    }
    return Failure(**(fields | changes))


def a_header(commit: int | None = 10, *, number: int = 0, **changes: Any) -> RunHeader:
    """The header of run ``number`` on commit ``commit``."""
    started = EPOCH + timedelta(hours=commit or 0, minutes=10 + number)
    fields: dict[str, Any] = {
        "run_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"run-{commit}-{number}")),
        "repository": "github.com/example/kernels",
        "commit_sha": None if commit is None else a_sha(commit),
        "dirty": False,
        "base_ref": "main",
        "merge_base": None if commit is None else a_sha(commit),
        "started_at": started,
        "ended_at": started + timedelta(seconds=40),
        "gpu_uuid": GPU_UUID,
        "gpu_name": "NVIDIA H200",
        "timer": Timer.CUPTI,
        "clock_regime": ClockRegime.HELD,
        "environment": ENVIRONMENT,
        "passes": 8,
        "seed": 7,
        "suites": ("builtin",),
        "tool_version": "0.1.0",
        "protocol_version": 1,
        "context": {
            "gpu.driver": Reading(value="580.159.04"),
            "gpu.power_limit_w": Reading(value=700.0),
            "gpu.memory_temperature_c": Reading(error="NVML: Not Supported"),
            "host.name": Reading(value="runner-1"),
        },
    }
    return RunHeader(**(fields | changes))


def a_run(commit: int | None = 10, *, number: int = 0, **changes: Any) -> Run:
    """A run of one tier-A measurement on commit ``commit`` of a straight history."""
    header_changes = changes.pop("header", {})
    fields: dict[str, Any] = {
        "header": a_header(commit, number=number, **header_changes),
        "measurements": (a_measurement(seed=(commit or 0) * 100 + number),),
        "failures": (),
        "history": () if commit is None else a_line_of_commits(commit),
    }
    return Run(**(fields | changes))


def a_point(commit: int | None = 10, *, number: int = 0, **changes: Any) -> SeriesPoint:
    """What the store gives back of a measurement in run ``number`` on commit ``commit``.

    ``header`` holds changes of the run's header; the rest are changes of the measurement.
    """
    header = a_header(commit, number=number, **changes.pop("header", {}))
    measurement = a_measurement(**{"seed": (commit or 0) * 100 + number} | changes)
    counted = measurement.counted_windows
    return SeriesPoint(
        header=header,
        series=header.series_key(measurement.case, measurement.quantity, measurement.cache_state),
        interval=measurement.interval,
        resolution_ms=measurement.resolution_ms,
        tier=measurement.tier,
        tier_evidence=measurement.tier_evidence,
        tags=measurement.tags,
        source=measurement.source,
        window_medians_ms=tuple(w.median_ms for w in counted if w.median_ms is not None),
        window_passes=tuple(w.pass_index for w in counted),
        n_samples=sum(len(w.kept_ms) for w in counted),
        n_left_out=sum(len(w.samples_ms) - len(w.kept_ms) for w in counted),
        kernels=measurement.kernels,
        flops=measurement.flops,
        bytes_moved=measurement.bytes_moved,
        renamed_from=measurement.renamed_from,
    )


def a_verdict(run: Run | None = None, **changes: Any) -> Verdict:
    """A confirmed regression of 4 % on the first measurement of a run."""
    run = run or a_run()
    fields: dict[str, Any] = {
        "run_id": run.header.run_id,
        "series": run.series_key(run.measurements[0]),
        "outcome": Outcome.REGRESSED,
        "reason": Reason.INTERVALS_APART,
        "message": "260.0 us is 4.00 % slower than 250.0 us",
        "standing": Standing.CONFIRMED,
        "tier": Tier.A,
        "windows": 8,
        "candidate": Interval(0.26, 0.259, 0.261, 8, FoldStatus.OK),
        "baseline": Interval(0.25, 0.249, 0.251, 40, FoldStatus.OK),
        "baseline_kind": BaselineKind.POOL,
        "baseline_run_ids": (a_header(8).run_id, a_header(9).run_id),
        "effect": 0.04,
        "effect_low": 0.032,
        "effect_high": 0.048,
        "p_value": 0.0004,
        "q_value": 0.002,
        "smallest_seen": 0.008,
        "judged_at": EPOCH + timedelta(days=1),
    }
    return Verdict(**(fields | changes))


def a_second_session(**changes: Any) -> SecondSession:
    """A later run of the same commit that shows a regression of 3.8 %."""
    fields: dict[str, Any] = {
        "run_id": a_header(number=1).run_id,
        "outcome": Outcome.REGRESSED,
        "reason": Reason.INTERVALS_APART,
        "effect": 0.038,
        "effect_low": 0.031,
        "effect_high": 0.0461,
    }
    return SecondSession(**(fields | changes))
