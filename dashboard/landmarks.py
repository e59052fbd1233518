"""Marks on a commit axis: releases, steps, accepted changes, new software. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from dashboard.formatting import format_effect
from dashboard.timeline import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dashboard.timeline import Timeline
    from store.change_points import ChangePoint
    from store.records import RunHeader
    from store.triage_events import TriageEvent


class Landmark(StrEnum):
    """What kind of mark it is."""

    RELEASE = "release"
    STEP = "step"  # where a search over the whole history found another level
    ACCEPTED = "accepted"  # where a person accepted a change as the new level
    ENVIRONMENT = "environment"  # where driver, CUDA or a package changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One landmark at a place of the axis."""

    slot: int
    kind: Landmark
    short: str
    text: str


def releases_on(timeline: Timeline, releases: Mapping[str, str], positions: Mapping[str, int]) -> list[Mark]:
    """Each release at its commit; one that was not measured, at the first measured commit after it."""
    slots = timeline.slots()
    known = [(positions[place], slot) for place, slot in slots.items() if place in positions]
    marks = []
    for sha, name in releases.items():
        slot = slots.get(sha)
        if slot is None and sha in positions and known and positions[sha] >= min(known)[0]:
            slot = next((at for place, at in sorted(known) if place >= positions[sha]), None)
        if slot is not None:
            marks.append(Mark(slot=slot, kind=Landmark.RELEASE, short=name, text=f"release {name}"))
    return marks


def steps_on(timeline: Timeline, steps: Iterable[ChangePoint]) -> list[Mark]:
    """Each step of a series at the first commit measured after it."""
    slots = timeline.slots()
    return [
        Mark(
            slot=slots[step.commit_sha],
            kind=Landmark.STEP,
            short=f"step {format_effect(step.size)}",
            text=f"step {format_effect(step.size)}"
            + (", of the machine: one commit was measured on both sides" if step.within_a_commit else ""),
        )
        for step in steps
        if step.commit_sha in slots
    ]


def accepted_on(timeline: Timeline, accepted: Mapping[str, TriageEvent]) -> list[Mark]:
    """Each accepted change at its commit, with who accepted it."""
    slots = timeline.slots()
    return [
        Mark(
            slot=slots[sha],
            kind=Landmark.ACCEPTED,
            short="accepted",
            text=f"accepted by {event.decided_by}" + (f": {event.body}" if event.body else ""),
        )
        for sha, event in accepted.items()
        if sha in slots
    ]


def environments_on(timeline: Timeline, headers: Iterable[RunHeader]) -> list[Mark]:
    """Where the software of one GPU's runs differs from the run before, with what differs.

    Args:
        timeline: the axis.
        headers: runs of one GPU and timer, in any order.
    """
    slots = timeline.slots()
    placed = sorted(
        (header for header in headers if place_of(header) in slots),
        key=lambda header: (slots[place_of(header)], header.started_at),
    )
    marks = []
    for before, after in pairwise(placed):
        changed = _changed(before.environment, after.environment)
        if changed:
            marks.append(
                Mark(
                    slot=slots[place_of(after)],
                    kind=Landmark.ENVIRONMENT,
                    short=changed.partition(",")[0],
                    text=f"new software: {changed}",
                )
            )
    return marks


def _changed(before: str, after: str) -> str:
    """The parts of an environment that differ, such as ``driver 580.1 to 590.2``."""
    old, new = _parts(before), _parts(after)
    return ", ".join(
        f"{name} {old.get(name, 'none')} to {new.get(name, 'none')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _parts(environment: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in environment.split())
