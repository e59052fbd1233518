"""Decisions in words. What a person typed is made visible: it drives no terminal and leaves no line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store import shown
from store.triage_events import Action

if TYPE_CHECKING:
    from alerts.inbox import Change
    from store.triage_events import TriageEvent

SHORT_ID = 8
LABEL_LIMIT = 60
_PERSON_LIMIT = 60
_BODY_LIMIT = 200
_VERBS = {
    Action.ACCEPT: "accepted",
    Action.MUTE: "muted",
    Action.UNMUTE: "unmuted",
    Action.ASSIGN: "assigned",
    Action.NOTE: "noted on",
    Action.LINK: "linked",
    Action.REVOKE: "took back",
}


def person(name: str) -> str:
    """A person on one line, without the mail address where there is a name."""
    without_address = name.partition("<")[0].strip()
    return shown.one_line(without_address or name, limit=_PERSON_LIMIT)


def mute_words(event: TriageEvent) -> str:
    """``muted until 2027-01-31 by Ada: known fault``."""
    return f"muted until {event.muted_until} by {person(event.decided_by)}: {body_words(event)}"


def acceptance_words(event: TriageEvent) -> str:
    """``accepted at 1a2b3c4d5 by Ada on 2026-11-30: wanted``."""
    why = f": {body_words(event)}" if event.body else ""
    return f"accepted at {shown.short(event.commit_sha)} by {person(event.decided_by)} on {event.day}{why}"


def event_words(event: TriageEvent) -> str:
    """One event as a sentence without its time."""
    words = f"{person(event.decided_by)} {_VERBS[event.action]} "
    if event.action is Action.REVOKE:
        words += f"{(event.revokes or '')[:SHORT_ID]}, about "
    words += f"{shown.visible(event.scope.label, limit=LABEL_LIMIT)} at {shown.short(event.commit_sha)}"
    if event.muted_until is not None:
        words += f" until {event.muted_until}"
    if event.assignee is not None:
        words += f" to {person(event.assignee)}"
    if event.url is not None:
        words += f" with {shown.visible(event.url)}"
    return f"{words}: {body_words(event)}" if event.body else words


def body_words(event: TriageEvent) -> str:
    """Why, or the note, on one line; empty where nothing was said."""
    return shown.one_line(event.body or "", limit=_BODY_LIMIT)


def states(change: Change) -> list[str]:
    """What became of a change, a sentence each; nothing where nobody said anything."""
    said = []
    if change.accepted is not None:
        said.append(acceptance_words(change.accepted))
    if change.muted is not None:
        said.append(mute_words(change.muted))
    if change.recovered_at is not None:
        said.append(f"recovered at {shown.short(change.recovered_at)}")
    if change.assigned is not None:
        said.append(f"assigned to {person(change.assigned.assignee or '')}")
    return said
