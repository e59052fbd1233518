"""Confirmed changes and what became of them: what waits for a decision, what has one. Pure.

A level that moved is confirmed on the commit that moved it and on those after it, as long as
the pool reaches back to the old level. Those verdicts are one change, and are decided at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from store.commits import first_parent_line, positions
from store.older_names import NO_RENAMES
from store.records import Outcome, Reason
from store.triage_events import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    from alerts.triage import Decisions
    from store.older_names import Renames
    from store.places import Place
    from store.records import Commit, SeriesKey, Verdict
    from store.triage_events import TriageEvent

_REMARKS = (Action.NOTE, Action.LINK)
_NOT_OF_A_COMMIT = (Action.MUTE, Action.UNMUTE)
_MOSTLY_GONE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One repository, as far as deciding needs it.

    Attributes:
        commits: what is known of its commits.
        positions: their places on the line of first parents; see ``store.commits.positions``.
        places: runs of committed code, by id, of any repository.
        base: commits on the branch that others are judged against, and their first parents.
    """

    repository: str
    commits: Mapping[str, Commit]
    positions: Mapping[str, int]
    places: Mapping[str, Place]
    base: frozenset[str]

    @classmethod
    def of(cls, repository: str, commits: Mapping[str, Commit], places: Mapping[str, Place]) -> History:
        """From what the store knows. A branch that was fast-forwarded into the base belongs to it."""
        order = positions(commits)
        tips = {
            place.commit_sha for place in places.values() if place.repository == repository and place.on_base
        }
        base: set[str] = set()
        for tip in sorted(tips, key=lambda sha: -order.get(sha, -1)):  # the newest first: it holds the others
            if tip not in base:
                base |= {tip, *(commit.sha for commit in first_parent_line(commits, tip))}
        return cls(
            repository=repository, commits=commits, positions=order, places=places, base=frozenset(base)
        )

    def holds(self, tip: str, sha: str) -> bool:
        """Whether a commit is ``tip`` or one of its first parents."""
        return tip == sha or any(commit.sha == sha for commit in first_parent_line(self.commits, tip))

    def reaches_before(self, verdict: Verdict, sha: str) -> bool:
        """Whether a verdict was made against runs of commits before this one."""
        limit = self.positions.get(sha)
        known = [
            self.positions.get(self.places[run_id].commit_sha)
            for run_id in verdict.baseline_run_ids
            if run_id in self.places
        ]
        return limit is not None and any(place is not None and place < limit for place in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A confirmed change of one series.

    Attributes:
        verdict: the newest one on the first commit that shows it.
        repository, commit_sha: that commit.
        seen_at: later commits on which it was confirmed as well, oldest first.
        on_base: the commit lies on the branch that others are judged against.
        recovered_at: the newest commit after it, where that is nearer to the old level than to the new.
        accepted, muted, assigned: the decisions that hold, or None.
        remarks: notes and links on any of its commits, oldest first.
        earlier: the series under the names that its benchmark had before.
    """

    verdict: Verdict
    repository: str
    commit_sha: str
    seen_at: tuple[str, ...]
    on_base: bool
    recovered_at: str | None = None
    accepted: TriageEvent | None = None
    muted: TriageEvent | None = None
    assigned: TriageEvent | None = None
    remarks: tuple[TriageEvent, ...] = ()
    earlier: tuple[SeriesKey, ...] = ()

    @property
    def series(self) -> SeriesKey:
        """The series that changed."""
        return self.verdict.series

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision. An assignment, a note or a link is none."""
        return self.accepted is None and self.muted is None and self.recovered_at is None

    @property
    def shas(self) -> tuple[str, ...]:
        """All commits that show it."""
        return self.commit_sha, *self.seen_at

    def concerns(self, event: TriageEvent) -> bool:
        """Whether an event, taken back or not, belongs to the story of this change."""
        anywhere = event.action in _NOT_OF_A_COMMIT or event == self.accepted
        covered = any(event.scope.covers(key) for key in (self.series, *self.earlier))
        return covered and (anywhere or event.commit_sha in self.shas)


def confirmed_changes(verdicts: Iterable[Verdict], history: History) -> list[Change]:
    """Put confirmed verdicts of one repository together to changes, worst first.

    Args:
        verdicts: confirmed ones, of any repository and in any order.
        history: the repository.
    """
    by_series: dict[tuple[str, Outcome], list[Verdict]] = {}
    for verdict in verdicts:
        place = history.places.get(verdict.run_id)
        if place is not None and place.repository == history.repository:
            by_series.setdefault((verdict.series.id, verdict.outcome), []).append(verdict)
    changes = [change for group in by_series.values() for change in _changes_of_series(group, history)]
    return sorted(changes, key=_worst_first)


def decide(
    changes: Iterable[Change],
    decisions: Decisions,
    history: History,
    centers: Mapping[str, Mapping[str, float]],
    *,
    on: date,
    renames: Mapping[str, Renames] | None = None,
) -> list[Change]:
    """Say of each change what became of it.

    Args:
        changes: as ``confirmed_changes`` gives them.
        decisions: about the same repository.
        history: the repository.
        centers: of the changes' series, by series id and commit; see ``store.places.load_centers``.
        on: the day for which mutes are asked, in UTC.
        renames: by run id, the older names of its benchmarks, whose decisions hold as well.
    """
    known = renames or {}
    return [
        replace(
            change,
            recovered_at=_recovered_at(change, history, centers.get(change.series.id, {})),
            accepted=_accepted(change, about, history),
            muted=about.mute(change.series, on=on),
            assigned=next(iter(reversed(_events(change, about, (Action.ASSIGN,)))), None),
            remarks=tuple(_events(change, about, _REMARKS)),
            earlier=tuple(about.renames.earlier(change.series)),
        )
        for change in changes
        for about in (decisions.following(known.get(change.verdict.run_id, NO_RENAMES)),)
    ]


def _changes_of_series(verdicts: Sequence[Verdict], history: History) -> list[Change]:
    """One series, one direction. What lies on a branch is a change for each commit."""
    found: list[Change] = []
    for verdict in sorted(verdicts, key=lambda v: (_position(v, history), v.judged_at, v.run_id)):
        place = history.places[verdict.run_id]
        same = next((change for change in reversed(found) if _same(change, verdict, place, history)), None)
        if same is None:
            found.append(
                Change(
                    verdict=verdict,
                    repository=place.repository,
                    commit_sha=place.commit_sha,
                    seen_at=(),
                    on_base=place.commit_sha in history.base,
                )
            )
        elif place.commit_sha == same.commit_sha:
            found[found.index(same)] = replace(same, verdict=verdict)
        elif place.commit_sha not in same.seen_at:
            found[found.index(same)] = replace(same, seen_at=(*same.seen_at, place.commit_sha))
    return found


def _same(change: Change, verdict: Verdict, place: Place, history: History) -> bool:
    """Whether a verdict shows a change that an earlier one began: it looks back to the level before.

    A drift is one change on however many commits it is seen, and a step that nobody took back goes
    on as one. A step after a drift is another change, whatever its pool reaches back to.
    """
    if place.commit_sha in change.shas:
        return True
    drifted = change.verdict.reason is Reason.DRIFTED
    return (
        change.on_base
        and (not drifted or verdict.reason is Reason.DRIFTED)
        and place.commit_sha in history.base
        and history.reaches_before(verdict, change.commit_sha)
        and history.holds(place.commit_sha, change.commit_sha)
    )


def _position(verdict: Verdict, history: History) -> int:
    return history.positions.get(history.places[verdict.run_id].commit_sha, -1)


def _worst_first(change: Change) -> tuple[bool, float, str, str]:
    verdict = change.verdict
    improved = verdict.outcome is not Outcome.REGRESSED
    return improved, -abs(verdict.effect or 0.0), verdict.series.case.label, verdict.series.id


def _accepted(change: Change, decisions: Decisions, history: History) -> TriageEvent | None:
    """The acceptance of one of its commits, or of an earlier one that it still looks back behind."""
    accepted = decisions.accepted(change.series)
    for sha in change.shas:
        if sha in accepted:
            return accepted[sha]
    return next(
        (
            event
            for sha, event in accepted.items()
            if history.reaches_before(change.verdict, sha) and history.holds(change.commit_sha, sha)
        ),
        None,
    )


def _recovered_at(change: Change, history: History, centers: Mapping[str, float]) -> str | None:
    """The newest judged commit after the change, where less than half of the change is left.

    Its verdict would not do: by then the pool has learnt the new level, and calls that unchanged.
    """
    before, after = change.verdict.baseline, change.verdict.candidate.center
    if before is None or not before.center or not after or after == before.center:
        return None
    first = history.positions.get(change.commit_sha, -1)
    later = [sha for sha in centers if history.positions.get(sha, -1) > first]
    newest_first = sorted(later, key=lambda sha: -history.positions[sha])
    newest = next((sha for sha in newest_first if history.holds(sha, change.commit_sha)), None)
    if newest is None:
        return None
    left = math.log(centers[newest] / before.center) / math.log(after / before.center)
    return newest if left < _MOSTLY_GONE else None


def _events(change: Change, decisions: Decisions, actions: Sequence[Action]) -> list[TriageEvent]:
    return [
        event
        for event in decisions.about(change.series)
        if event.action in actions and event.commit_sha in change.shas
    ]
