"""From a worker's window messages to a measurement: mark, fold, grade. Pure."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from collector.intervals import FOLD_VERSION, fold_windows
from collector.remarks import remarks
from collector.tiers import DEFAULT_RULE, NO_BAND, ClockBand, TierRule, clock_band, grade
from store.records import (
    CacheState,
    Case,
    ClockRegime,
    Failure,
    Kernel,
    Measurement,
    Quantity,
    Reading,
    Stage,
    Timer,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.loaded import CaseInfo

HOLDING = (ClockRegime.HELD, ClockRegime.LOCKED, ClockRegime.VERIFY)


def measurements_of(
    case: CaseInfo,
    messages: Sequence[Mapping[str, Any]],
    *,
    timer: Timer,
    regime: ClockRegime,
    proven_mhz: int | None = None,
    rule: TierRule = DEFAULT_RULE,
) -> list[Measurement]:
    """Fold the windows of one case.

    There is one measurement for each state of the cache the windows found: a case whose
    calls had to be repeated in some windows and not in others is two series, not a mixture.

    Args:
        case: what was measured.
        messages: its windows, as the worker sent them.
        timer: how they were timed.
        regime: what was done about the clocks.
        proven_mhz: the SM clock that was locked or verified; samples taken at another are left out.
        rule: what the tiers ask for.
    """
    groups: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for message in messages:
        groups.setdefault((message["quantity"], message["cold"]), []).append(message)
    return [
        _measurement(
            case,
            group,
            Quantity(quantity),
            cold=cold,
            timer=timer,
            regime=regime,
            proven_mhz=proven_mhz,
            rule=rule,
        )
        for (quantity, cold), group in groups.items()
    ]


def _measurement(
    case: CaseInfo,
    messages: Sequence[Mapping[str, Any]],
    quantity: Quantity,
    *,
    cold: bool,
    timer: Timer,
    regime: ClockRegime,
    proven_mhz: int | None,
    rule: TierRule,
) -> Measurement:
    band = NO_BAND
    if regime in HOLDING:
        pairs = (
            pair
            for message in messages
            if message["invalid"] is None
            for pair in zip(message["sm_clock_mhz"], message["throttle_reasons"], strict=True)
        )
        band = clock_band(pairs, proven_mhz=proven_mhz)
    windows = tuple(_window(message, band) for message in messages)
    counted = [window for window in windows if window.counts]
    resolution_ms = max(message["resolution_ms"] for message in messages)
    graded = grade(windows, timer=timer, regime=regime, rule=rule)
    return Measurement(
        case=Case.of(case.benchmark, case.parameters),
        quantity=quantity,
        cache_state=CacheState.COLD if cold else CacheState.WARM,
        tags=case.tags,
        source=case.source,
        interval=fold_windows([window.kept_ms for window in counted], resolution=resolution_ms),
        resolution_ms=resolution_ms,
        tier=graded.tier,
        tier_evidence=(*graded.evidence, *remarks(counted, quantity)),
        kernels=_kernels(messages),
        flops=case.flops,
        bytes_moved=case.bytes_moved,
        windows=windows,
        fold_version=FOLD_VERSION,
        renamed_from=case.renamed_from,
    )


def _window(message: Mapping[str, Any], band: ClockBand) -> Window:
    return Window(
        pass_index=message["pass_index"],
        position=message["position"],
        pid=message["pid"],
        started_at=datetime.fromisoformat(message["started_at"]),
        samples_ms=tuple(message["samples_ms"]),
        exclusions=tuple(
            band.exclusion(clock, reasons)
            for clock, reasons in zip(message["sm_clock_mhz"], message["throttle_reasons"], strict=True)
        ),
        latency_ms=tuple(message["latency_ms"]),
        sum_ms=tuple(message["sum_ms"]),
        copy_ms=tuple(message["copy_ms"]),
        n_kernels=tuple(message["n_kernels"]),
        pause_ms=tuple(message["pause_ms"]),
        sm_clock_mhz=tuple(message["sm_clock_mhz"]),
        throttle_reasons=tuple(message["throttle_reasons"]),
        warmup_calls=message["warmup_calls"],
        warmup_ms=message["warmup_ms"],
        inner_reps=message["inner_reps"],
        attempts=message["attempts"],
        telemetry=readings(message["telemetry"]),
        invalid=message["invalid"],
    )


def readings(raw: Mapping[str, Mapping[str, Any]]) -> dict[str, Reading]:
    """Readings as the worker sent them, as records."""
    return {name: Reading(value=item.get("value"), error=item.get("error")) for name, item in raw.items()}


def _kernels(messages: Sequence[Mapping[str, Any]]) -> tuple[Kernel, ...]:
    """The kernels that most windows agree on, in launch order."""
    seen = Counter(
        tuple(
            Kernel(
                name=name,
                grid=_triple(grid),
                block=_triple(block),
                cluster=_triple(cluster),
                registers=registers,
                shared_bytes=shared_bytes,
                count=count,
            )
            for name, grid, block, cluster, registers, shared_bytes, count in message["launches"]
        )
        for message in messages
    )
    return seen.most_common(1)[0][0] if seen else ()


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z


def failure_of(message: Mapping[str, Any], cases: Mapping[str, CaseInfo]) -> Failure:
    """A failure as the session kept it, as a record."""
    case = cases.get(message["case"]) if message["case"] is not None else None
    return Failure(
        case=None if case is None else Case.of(case.benchmark, case.parameters),
        stage=Stage(message["stage"]),
        kind=message["kind"],
        message=message["message"],
        source=message["source"],
        log=message["log"],
        pass_index=message["pass_index"],
    )
