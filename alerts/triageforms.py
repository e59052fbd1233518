"""Changes and decisions for a reader: as lines of text, and as JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from alerts.terminal import aligned
from alerts.triage_words import LABEL_LIMIT, SHORT_ID, event_words, states
from store import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alerts.inbox import Change
    from store.triage_events import TriageEvent


def render_changes(changes: Sequence[Change], others: int) -> str:
    """The changes as a table, and how many are not in it."""
    waiting = sum(change.is_open for change in changes)
    blocks = [f"{shown.count(waiting, 'change')} to decide about"]
    if changes:
        heads = ("benchmark", "change", "commit", "GPU", "state")
        blocks.append("\n".join(aligned([heads, *map(_cells, changes)])))
        blocks += ["\n".join(lines) for change in changes if (lines := _remarks(change))]
    if others:
        blocks.append(f"{others} more: decided, recovered, or on branches (--all shows them)")
    return "\n\n".join(blocks)


def render_history(events: Sequence[TriageEvent]) -> str:
    """Every event, newest first, with the id by which it can be taken back."""
    if not events:
        return "nothing was decided yet"
    return "\n".join(
        f"{event.event_id[:SHORT_ID]}  {event.decided_at:%Y-%m-%d %H:%M}  {event_words(event)}"
        for event in reversed(events)
    )


def changes_json(changes: Sequence[Change]) -> str:
    """A list with one object per change. Fields are added, never renamed or taken away."""
    return json.dumps([_change_object(change) for change in changes], indent=2)


def events_json(events: Sequence[TriageEvent]) -> str:
    """A list with one object per event, oldest first."""
    return json.dumps([event_object(event) for event in events], indent=2)


def event_object(event: TriageEvent) -> dict[str, Any]:
    """One event, as it is stored."""
    return {
        "event_id": event.event_id,
        "repository": event.repository,
        "action": event.action,
        "scope": event.scope.label,
        "benchmark": event.scope.benchmark,
        "parameters": None if event.scope.parameters is None else json.loads(event.scope.parameters),
        "gpu_uuid": event.scope.gpu_uuid,
        "series_id": event.scope.series_id,
        "commit": event.commit_sha,
        "body": event.body,
        "assignee": event.assignee,
        "url": event.url,
        "muted_until": None if event.muted_until is None else event.muted_until.isoformat(),
        "revokes": event.revokes,
        "decided_by": event.decided_by,
        "decided_at": event.decided_at.isoformat(),
    }


def _cells(change: Change) -> tuple[str, ...]:
    effect = change.verdict.effect
    later = f" and {shown.count(len(change.seen_at), 'commit')} after it" if change.seen_at else ""
    branch = "" if change.on_base else " (on a branch)"
    return (
        shown.visible(change.series.case.label, limit=LABEL_LIMIT),
        "-" if effect is None else shown.change(effect),
        f"{shown.short(change.commit_sha)}{later}{branch}",
        shown.visible(change.series.gpu_uuid),
        "; ".join(states(change)) or "open",
    )


def _remarks(change: Change) -> list[str]:
    label = shown.visible(change.series.case.label, limit=LABEL_LIMIT)
    return [f"{label}: {event_words(event)}" for event in change.remarks]


def _change_object(change: Change) -> dict[str, Any]:
    series, verdict = change.series, change.verdict
    return {
        "repository": change.repository,
        "commit": change.commit_sha,
        "seen_at": list(change.seen_at),
        "on_base": change.on_base,
        "series_id": series.id,
        "benchmark": series.case.label,
        "name": series.case.benchmark,
        "parameters": dict(series.case.parameters),
        "gpu_uuid": series.gpu_uuid,
        "run_id": verdict.run_id,
        "outcome": verdict.outcome,
        "tier": verdict.tier,
        "effect": verdict.effect,
        "open": change.is_open,
        "recovered_at": change.recovered_at,
        "accepted": None if change.accepted is None else event_object(change.accepted),
        "muted": None if change.muted is None else event_object(change.muted),
        "assigned": None if change.assigned is None else event_object(change.assigned),
        "remarks": [event_object(event) for event in change.remarks],
    }
