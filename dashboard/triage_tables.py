"""Changes and decisions as tables. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.triage_words import event_words, person, states
from dashboard.formatting import count_of, format_moment
from dashboard.tables import (
    Column,
    Markup,
    effect_cell,
    link,
    outside_link,
    plain,
    table,
    two_lines,
    verdict_badge,
)
from store import shown
from store.triage_events import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from alerts.inbox import Change
    from store.records import Commit
    from store.triage_events import TriageEvent

    Address = Callable[[str, Mapping[str, str]], str]

_LABEL_LIMIT = 80
_SUBJECT_LIMIT = 70


def changes_table(
    changes: Sequence[Change],
    commits: Mapping[str, Commit],
    gpu_names: Mapping[str, str],
    address: Address,
    *,
    kept: Mapping[str, str],
) -> Markup:
    """One row a change: what moved, by how much, at which commit, and what became of it.

    Args:
        changes: worst first.
        commits: what is known of their commits.
        gpu_names: what to call each GPU.
        address: the address of a page with parameters.
        kept: parameters of this page that a click on a change leaves as they are.
    """
    columns = [
        Column("Benchmark"), Column("Verdict", wide_only=True), Column("Change"), Column("Since"),
        Column("State"),
    ]  # fmt: skip
    rows = [_change_cells(change, commits, gpu_names, address, kept) for change in changes]
    return table("Confirmed changes, worst first", columns, rows)


def events_table(events: Iterable[TriageEvent], *, about: bool = True) -> Markup:
    """One row an event, newest first.

    Args:
        events: oldest first, those that were taken back included.
        about: whether to name the benchmark; needless beside a single change.
    """
    known = list(events)
    revoked = {event.revokes for event in known if event.action is Action.REVOKE}
    columns = [Column("When"), Column("Who"), Column("What")]
    rows = [
        [
            plain(format_moment(event.decided_at)),
            plain(person(event.decided_by), more=shown.one_line(event.decided_by)),
            _event_cell(event, taken_back=event.event_id in revoked, about=about),
        ]
        for event in reversed(known)
    ]
    return table("Decisions, newest first", columns, rows)


def subject_of(change: Change, commits: Mapping[str, Commit]) -> str:
    """The subject of a change's commit, cut; empty where it is not known."""
    commit = commits.get(change.commit_sha)
    return "" if commit is None else shown.one_line(commit.subject, limit=_SUBJECT_LIMIT)


def _change_cells(
    change: Change,
    commits: Mapping[str, Commit],
    gpu_names: Mapping[str, str],
    address: Address,
    kept: Mapping[str, str],
) -> list[Markup]:
    series = change.series
    later = f", and {count_of(len(change.seen_at), 'later commit')}" if change.seen_at else ""
    since = link(shown.short(change.commit_sha), address("commit", {"sha": change.commit_sha}))
    return [
        two_lines(
            link(
                shown.visible(series.case.label, limit=_LABEL_LIMIT),
                address("triage", {**kept, "series": series.id, "sha": change.commit_sha}),
                more="Open this change",
            ),
            gpu_names.get(series.gpu_uuid, shown.visible(series.gpu_uuid)),
        ),
        verdict_badge(change.verdict),
        effect_cell(change.verdict),
        two_lines(Markup(f"{since}{plain(later)}"), subject_of(change, commits)),
        _state_cell(change),
    ]


def _state_cell(change: Change) -> Markup:
    said = states(change)
    remarks = f"{count_of(len(change.remarks), 'note or link', 'notes and links')}" if change.remarks else ""
    if not said:
        return two_lines(plain("waits for a decision"), remarks) if remarks else plain("waits for a decision")
    return two_lines(plain(said[0]), "; ".join([*said[1:], *([remarks] if remarks else [])]))


def _event_cell(event: TriageEvent, *, taken_back: bool, about: bool) -> Markup:
    words = event_words(event)
    below = " · ".join(
        part
        for part in (
            shown.visible(event.scope.label, limit=_LABEL_LIMIT) if about else "",
            "taken back since" if taken_back else "",
        )
        if part
    )
    first = plain(words)
    if event.url is not None:
        first = Markup(f"{first} {outside_link(shown.visible(event.url, limit=60), event.url)}")
    return two_lines(first, below) if below else first
