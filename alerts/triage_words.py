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
    Action.NOTE: "noted",
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


def excuse_words(event: TriageEvent) -> str:
    """An acceptance or a mute, beginning with the word ``accepted`` or ``muted``."""
    return mute_words(event) if event.action is Action.MUTE else acceptance_words(event)


def deed_words(event: TriageEvent) -> str:
    """What was done, without who, about what and why: ``muted until 2027-01-31``."""
    words = _VERBS[event.action]
    if event.revokes is not None:
        words += f" {event.revokes[:SHORT_ID]}"
    if event.muted_until is not None:
        words += f" until {event.muted_until}"
    if event.assignee is not None:
        words += f" to {person(event.assignee)}"
    return words


def event_words(event: TriageEvent) -> str:
    """One event as a sentence without its time: ``Ada muted until 2027-01-31 softmax at 1a2b3c4d5: why``."""
    about = f"{shown.visible(event.scope.label, limit=LABEL_LIMIT)} at {shown.short(event.commit_sha)}"
    link = "" if event.url is None else f" {shown.visible(event.url)}"
    why = f": {body_words(event)}" if event.body else ""
    return f"{person(event.decided_by)} {deed_words(event)}{link}, {about}{why}"


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
