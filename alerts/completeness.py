"""What a run says nothing about, or cannot be compared in: nothing missing is ever a pass. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from alerts.baseline import SENTINEL, conditions, distance, measured_before, on_line
from store import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alerts.judge import Evidence
    from store.records import Case, RunHeader, SeriesPoint


def missing_cases(evidence: Evidence, *, runs: int) -> dict[Case, str]:
    """Cases that earlier runs have a number for and this one has no word on, each with the commit.

    Those of the paired run, or else of the last runs on the line, on the same GPU and with a suite in
    common. A benchmark that was given up is named for so many runs. A run that confirms another was
    never meant to have the others.

    Args:
        evidence: what the run is judged by.
        runs: how many earlier runs are asked.
    """
    if evidence.header.confirms_run_id is not None:
        return {}
    answered = {point.series.case for point in evidence.candidates}
    answered |= {failure.case for failure in evidence.failures if failure.case is not None}
    last: dict[Case, str] = {}
    for point in evidence.paired or _latest(evidence, runs):
        if SENTINEL not in point.tags and point.series.case not in answered:
            last.setdefault(point.series.case, shown.short(point.header.commit_sha))
    return dict(sorted(last.items(), key=lambda item: item[0].label))


def never_measured(evidence: Evidence) -> tuple[Case, ...]:
    """Cases that failed in this run, and of which no earlier run on the line has a number either."""
    earlier = (point for point in evidence.history if on_line(evidence.header, point.header, evidence.line))
    known = {point.series.case for point in (*evidence.paired, *earlier)}
    failed = {failure.case for failure in evidence.failures if failure.case is not None}
    return tuple(sorted(failed - known, key=lambda case: case.label))


def renamed_cases(evidence: Evidence) -> tuple[tuple[str, Case], ...]:
    """The older names of the benchmarks of this run, each with the case that carries it on."""
    return tuple(
        (old, point.series.case)
        for point in evidence.candidates
        for old in evidence.renames.old_names(point.series.case.benchmark)
    )


def new_series(evidence: Evidence, *, runs: int) -> str | None:
    """What to say where another driver, CUDA or torch began new series; None where none did lately.

    Args:
        evidence: what the run is judged by.
        runs: how many runs a pool takes; a series that has as many is new no more.
    """
    alike: dict[tuple[object, ...], list[SeriesPoint]] = defaultdict(list)
    for point in evidence.history:
        alike[_but_environment(point)].append(point)
    said = Counter(
        sentence
        for point in evidence.candidates
        if (sentence := _new_series(point, alike[_but_environment(point)], evidence.line, runs)) is not None
    )
    return said.most_common(1)[0][0] if said else None


def _new_series(
    candidate: SeriesPoint, history: Sequence[SeriesPoint], line: Mapping[str, int], runs: int
) -> str | None:
    alike = measured_before(candidate, history, line)
    own = [point for point in alike if point.series == candidate.series]
    # Of another environment, and older than the first of its own: else two environments take turns.
    first = own[-1] if own else candidate
    oldest = line[first.header.commit_sha or ""] if own else -1
    before = [
        point
        for point in alike
        if point.series != candidate.series and line[point.header.commit_sha or ""] > oldest
    ]
    if not before or len(own) >= runs:
        return None
    left, began = before[0], shown.short(first.header.commit_sha)
    earlier = shown.count(sum(point.series == left.series for point in before), "run")
    changed = environment_change(left.series.environment, candidate.series.environment)
    so_far = shown.count(len(own), "earlier run") if own else "no earlier run"
    return (
        f"{changed} began a new series with {began}, which has {so_far}. What was measured before, "
        f"{earlier} up to {shown.short(left.header.commit_sha)}, is never compared with it"
    )


def environment_change(before: str, after: str) -> str:
    """What differs between two environments: ``driver 570.1 -> 580.159, torch 2.10.0 -> 2.11.0``."""
    old, new = (dict(word.partition("=")[::2] for word in text.split()) for text in (before, after))
    names = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    changes = [f"{name} {old.get(name) or 'unknown'} -> {new.get(name) or 'unknown'}" for name in names]
    return shown.one_line(", ".join(changes) or "another environment")


def _but_environment(point: SeriesPoint) -> tuple[object, ...]:
    series = point.series
    return (
        series.case, series.quantity, series.gpu_uuid, series.timer, series.cache_state, series.clock_regime,
    )  # fmt: skip


def _latest(evidence: Evidence, runs: int) -> Sequence[SeriesPoint]:
    """The points of the last runs that should have measured the same, nearest first."""
    comparable = [point for point in evidence.history if _comparable(point.header, evidence)]
    comparable.sort(key=lambda point: distance(point.header, evidence.line))
    chosen = set(list(dict.fromkeys(point.header.run_id for point in comparable))[:runs])
    return [point for point in comparable if point.header.run_id in chosen]


def _comparable(other: RunHeader, evidence: Evidence) -> bool:
    """Whether a run on the line had the same GPU and timer, and a suite in common."""
    header = evidence.header
    return (
        on_line(header, other, evidence.line)
        and conditions(other)[:2] == conditions(header)[:2]
        and bool(set(other.suites) & set(header.suites))
    )
