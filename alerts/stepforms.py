"""Change points for a reader: as lines of text, and as JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from alerts.baseline import SENTINEL
from alerts.terminal import aligned
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.change_points import History
    from store.change_points import ChangePoint
    from store.records import SeriesKey

_LABEL_LIMIT = 60


def render_steps(histories: Sequence[History]) -> str:
    """What was searched, then a table of the steps, the largest first."""
    changes = sorted(
        ((history.series, change) for history in histories for change in history.changes),
        key=lambda found: (-abs(found[1].size), found[0].case.label, found[0].id),
    )
    blocks = [_summary(histories, len(changes))]
    if changes:
        heads = ("benchmark", "change (95 %)", "p", "after", "first seen at", "GPU")
        blocks.append("\n".join(aligned([heads, *(_cells(series, change) for series, change in changes)])))
    if any(change.within_a_commit for _, change in changes):
        blocks.append(
            "Where both commits are the same, the code did not change: the machine did. "
            "Look at its clocks, its driver and what else ran."
        )
    machine = sorted(_machine_steps(histories))
    if machine:
        blocks.append("\n".join(map(_machine_sentence, machine)))
    return "\n\n".join(blocks)


def steps_json(histories: Iterable[History]) -> str:
    """A list with one object per series. Fields are added, never renamed or taken away."""
    known = list(histories)
    machine = _machine_steps(known)
    return json.dumps([_history_object(history, machine) for history in known], indent=2)


def _machine_steps(histories: Iterable[History]) -> set[tuple[str, str]]:
    """The GPUs, and the commits at which a sentinel on them has a step: there the machine changed."""
    return {
        (change.series.gpu_uuid, change.commit_sha)
        for history in histories
        if any(SENTINEL in point.tags for point in history.points)
        for change in history.changes
    }


def _machine_sentence(place: tuple[str, str]) -> str:
    gpu_uuid, commit_sha = place
    return (
        f"Sentinels on {shown.visible(gpu_uuid)} changed at {shown.short(commit_sha)}: there the machine "
        "changed, and the steps of benchmarks at that commit may be its doing, not the code's."
    )


def _summary(histories: Sequence[History], changes: int) -> str:
    points = sum(len(history.points) for history in histories)
    left_out = sum(history.left_out for history in histories)
    said = (
        f"{shown.count(changes, 'change point')} in {len(histories)} series with "
        f"{shown.count(points, 'measurement')}"
    )
    if left_out:
        said += (
            f"; {shown.count(left_out, 'measurement')} left out: uncommitted changes, another line of "
            "history, or a tier that is too low"
        )
    renamed = sorted(
        {(old, history.series.case.benchmark) for history in histories for old in history.renamed_from}
    )
    if renamed:
        pairs = ", ".join(f"{shown.visible(old)} to {shown.visible(new)}" for old, new in renamed)
        said += f"; renamed, with their history: {pairs}"
    return said


def _cells(series: SeriesKey, change: ChangePoint) -> tuple[str, ...]:
    """A row, under the name that the benchmark has today."""
    between = f"{shown.change(change.size_low)} to {shown.change(change.size_high)}"
    return (
        shown.visible(series.case.label, limit=_LABEL_LIMIT),
        f"{shown.change(change.size)} ({between})",
        shown.probability(change.p_value),
        shown.short(change.commit_before),
        shown.short(change.commit_sha),
        shown.visible(change.series.gpu_uuid),
    )


def _history_object(history: History, machine: set[tuple[str, str]]) -> dict[str, Any]:
    case = history.series.case
    return {
        "series_id": history.series.id,
        "repository": history.repository,
        "benchmark": case.label,
        "name": case.benchmark,
        "parameters": dict(case.parameters),
        "gpu_uuid": history.series.gpu_uuid,
        "measurements": len(history.points),
        "left_out": history.left_out,
        "renamed_from": list(history.renamed_from),
        "changes": [
            {
                "commit_before": change.commit_before,
                "commit": change.commit_sha,
                "run_id": change.run_id,
                "within_a_commit": change.within_a_commit,
                "sentinels_changed": (change.series.gpu_uuid, change.commit_sha) in machine,
                "size": change.size,
                "size_low": change.size_low,
                "size_high": change.size_high,
                "p_value": change.p_value,
                "method_version": change.method_version,
                "found_at": change.found_at.isoformat(),
            }
            for change in history.changes
        ],
    }
