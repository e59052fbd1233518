"""Triage events with only the parts a test cares about."""

from __future__ import annotations

import uuid
from datetime import date, timedelta
from typing import Any

from builders import EPOCH, a_sha

from store.triage_events import Action, Scope, TriageEvent

REPOSITORY = "github.com/example/kernels"
ADA = "Ada Example <ada@example.org>"


def an_event(
    action: Action = Action.ACCEPT, *, commit: int = 10, number: int = 0, **changes: Any
) -> TriageEvent:
    """Event ``number``, made so many minutes after the first, about softmax at a commit."""
    fields: dict[str, Any] = {
        "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{action}-{commit}-{number}")),
        "repository": REPOSITORY,
        "action": action,
        "scope": Scope(benchmark="softmax"),
        "commit_sha": a_sha(commit),
        "decided_by": ADA,
        "decided_at": EPOCH + timedelta(days=2, minutes=number),
    }
    if action in (Action.MUTE, Action.NOTE):
        fields["body"] = "a known fault of the driver"
    if action is Action.MUTE:
        fields["muted_until"] = date(2026, 6, 30)
    if action is Action.ASSIGN:
        fields["assignee"] = "Grace Example"
    if action is Action.LINK:
        fields["url"] = "https://example.org/issues/7"
    return TriageEvent(**(fields | changes))


def a_revocation(event: TriageEvent, *, number: int = 50) -> TriageEvent:
    """What takes an event back."""
    return an_event(
        Action.REVOKE, number=number, scope=event.scope, commit_sha=event.commit_sha, revokes=event.event_id
    )
