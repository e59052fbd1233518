"""Change points for a reader: as lines of text, and as JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from alerts.terminal import aligned
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.change_points import History
    from store.change_points import ChangePoint

_LABEL_LIMIT = 60


def render_steps(histories: Sequence[History]) -> str:
    """What was searched, then a table of the steps, the largest first."""
    changes = sorted(
        (change for history in histories for change in history.changes),
        key=lambda change: (-abs(change.size), change.series.case.label, change.series.id),
    )
    blocks = [_summary(histories, len(changes))]
    if changes:
        heads = ("benchmark", "change (95 %)", "p", "after", "first seen at", "GPU")
        blocks.append("\n".join(aligned([heads, *(_cells(change) for change in changes)])))
    if any(change.within_a_commit for change in changes):
        blocks.append(
            "Where both commits are the same, the code did not change: the machine did. "
            "Look at its clocks, its driver and what else ran."
        )
    return "\n\n".join(blocks)


def steps_json(histories: Iterable[History]) -> str:
    """A list with one object per series. Fields are added, never renamed or taken away."""
    return json.dumps([_history_object(history) for history in histories], indent=2)


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
    return said


def _cells(change: ChangePoint) -> tuple[str, ...]:
    between = f"{shown.change(change.size_low)} to {shown.change(change.size_high)}"
    return (
        shown.visible(change.series.case.label, limit=_LABEL_LIMIT),
        f"{shown.change(change.size)} ({between})",
        shown.probability(change.p_value),
        shown.short(change.commit_before),
        shown.short(change.commit_sha),
        shown.visible(change.series.gpu_uuid),
    )


def _history_object(history: History) -> dict[str, Any]:
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
        "changes": [
            {
                "commit_before": change.commit_before,
                "commit": change.commit_sha,
                "run_id": change.run_id,
                "within_a_commit": change.within_a_commit,
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
