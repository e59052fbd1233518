"""How far from the library: implementations of one workload against its subject. Pure.

The ratio is subject over other, so that it rises when the subject becomes slower, as every
other quantity does. Both were measured in turn in the same processes, so what drifts between
passes cancels: each pass gives one ratio, and the ratios are folded like windows.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from collector.implementations import PARAMETER
from collector.intervals import FOLD_VERSION, fold_windows
from store.records import Case, Measurement, Quantity, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.loaded import CaseInfo


def ratios(cases: Sequence[CaseInfo], measurements: Sequence[Measurement]) -> list[Measurement]:
    """One measurement for each implementation that was measured in the same passes as its subject.

    Args:
        cases: those of the run.
        measurements: of these cases; what was not measured has no ratio.
    """
    known = {info.key: _case(info) for info in cases}
    by_case: dict[Case, list[Measurement]] = {}
    for measurement in measurements:
        by_case.setdefault(measurement.case, []).append(measurement)
    found = []
    for info in cases:
        if info.key == info.subject or info.subject not in known:
            continue
        case, subject = known[info.key], known[info.subject]
        for other in by_case.get(case, ()):
            for ours in by_case.get(subject, ()):
                if (ours.quantity, ours.cache_state) == (other.quantity, other.cache_state):
                    found += _ratio(ours, other)
    return found


def _case(info: CaseInfo) -> Case:
    return Case.of(info.benchmark, info.parameters)


def _ratio(ours: Measurement, other: Measurement) -> list[Measurement]:
    """The ratio, or nothing where no pass gave both a window."""
    pairs = list(_pairs(ours, other))
    if not pairs:
        return []
    windows = tuple(_window(mine, value) for mine, value in pairs)
    names = [str(dict(m.case.parameters)[PARAMETER]) for m in (ours, other)]
    # Two readings, each within half a quantum of its own: relative errors add up.
    relative = sum(m.resolution_ms / m.interval.center for m in (ours, other) if m.interval.center)
    resolution = relative * statistics.median(value for _, value in pairs)
    tier = max(ours.tier, other.tier)  # A < B < C: the lesser of the two
    return [
        Measurement(
            case=Case.of(ours.case.benchmark, dict(ours.case.parameters) | {PARAMETER: " / ".join(names)}),
            quantity=Quantity.RATIO,
            cache_state=ours.cache_state,
            tags=ours.tags,
            source=ours.source,
            interval=fold_windows([window.samples_ms for window in windows], resolution=resolution),
            resolution_ms=resolution,
            tier=tier,
            tier_evidence=(
                f"the lesser tier of {names[0]} ({ours.tier}) and {names[1]} ({other.tier})",
                f"{len(windows)} passes in which both were measured in turn",
            ),
            windows=windows,
            fold_version=FOLD_VERSION,
            renamed_from=ours.renamed_from,
        )
    ]


def _pairs(ours: Measurement, other: Measurement) -> Iterator[tuple[Window, float]]:
    """For each pass in which both count, the subject's window and the ratio of the medians."""
    theirs = {window.pass_index: window for window in other.counted_windows}
    for window in ours.counted_windows:
        match = theirs.get(window.pass_index)
        if match is None or match.pid != window.pid:
            continue  # not measured in turn: one of them needed a process of its own
        if window.median_ms is not None and match.median_ms is not None:
            yield window, window.median_ms / match.median_ms


def _window(mine: Window, value: float) -> Window:
    return Window(
        pass_index=mine.pass_index,
        position=mine.position,
        pid=mine.pid,
        started_at=mine.started_at,
        samples_ms=(value,),
        exclusions=(None,),
        warmup_calls=0,
        warmup_ms=0.0,
    )
