"""What people's decisions mean for a series: pure, without a clock or a store.

The newest decision that covers a series counts. An event that was taken back counts nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from store.older_names import NO_RENAMES, Renames
from store.triage_events import Action, TriageEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date, datetime

    from store.records import SeriesKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where the baseline of a series begins.

    Attributes:
        commit_sha: the oldest commit on the line that may be part of a baseline.
        event: the accepted change.
    """

    commit_sha: str
    event: TriageEvent


def in_force(events: Iterable[TriageEvent]) -> tuple[TriageEvent, ...]:
    """The events that were not taken back, without the revocations, oldest first."""
    ordered = sorted(events, key=_age)
    revoked = {event.revokes for event in ordered if event.action is Action.REVOKE}
    return tuple(
        event for event in ordered if event.action is not Action.REVOKE and event.event_id not in revoked
    )


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions in force about one repository; made with ``Decisions.of``.

    Attributes:
        by_benchmark: under the names that people decided about.
        renames: the older names whose decisions hold for what the benchmark is called now.
    """

    by_benchmark: Mapping[str, tuple[TriageEvent, ...]]
    renames: Renames = NO_RENAMES

    @classmethod
    def of(cls, events: Iterable[TriageEvent]) -> Decisions:
        """From all events about a repository, in any order, those that were taken back included."""
        found: dict[str, list[TriageEvent]] = {}
        for event in in_force(events):
            found.setdefault(event.scope.benchmark, []).append(event)
        return cls({benchmark: tuple(about) for benchmark, about in found.items()})

    def following(self, renames: Renames) -> Decisions:
        """The same decisions, as they hold for a run with these renames."""
        return replace(self, renames=renames)

    def about(self, series: SeriesKey) -> list[TriageEvent]:
        """The events that cover a series, under this name or an older one, oldest first."""
        found = [
            event
            for key in (series, *self.renames.earlier(series))
            for event in self.by_benchmark.get(key.case.benchmark, ())
            if event.scope.covers(key)
        ]
        return sorted(found, key=_age)

    def accepted(self, series: SeriesKey) -> dict[str, TriageEvent]:
        """The accepted changes of a series, by commit; of several on one commit the newest decision."""
        return {event.commit_sha: event for event in self.about(series) if event.action is Action.ACCEPT}

    def cut(
        self, series: SeriesKey, line: Mapping[str, int], merges: Mapping[str, Sequence[str]]
    ) -> Cut | None:
        """The accepted change nearest to what is judged; None where the whole line may serve.

        Points on the line up to ``line[cut.commit_sha]`` have the new level, those behind it the old.

        Args:
            series: the series that is judged.
            line: first-parent distance of every commit that may serve as a baseline; 0 is the nearest.
            merges: as ``store.commits.merges_of`` gives them. A change that was accepted on a branch
                takes effect at the merge that brought it in.
        """
        effective = (
            (line[sha], sha != at, sha, event)
            for at, event in self.accepted(series).items()
            for sha in (at, *merges.get(at, ()))
            if sha in line
        )
        nearest = min(effective, key=lambda found: found[:2], default=None)
        return None if nearest is None else Cut(commit_sha=nearest[2], event=nearest[3])

    def mute(self, series: SeriesKey, *, on: date) -> TriageEvent | None:
        """The mute that holds on a day (UTC), its last day included; None where none does."""
        spoken = [event for event in self.about(series) if event.action in (Action.MUTE, Action.UNMUTE)]
        newest = spoken[-1] if spoken else None
        if newest is None or newest.muted_until is None or newest.muted_until < on:
            return None
        return newest


def _age(event: TriageEvent) -> tuple[datetime, str]:
    """What puts events in order; the id where two are of the same moment."""
    return event.decided_at, event.event_id
