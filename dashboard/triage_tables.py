"""Changes and decisions as tables. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.triage_words import deed_words, person, states
from dashboard.formatting import count_of, format_effect, format_effect_interval, format_moment
from dashboard.tables import (
    Column,
    Markup,
    effect_cell,
    facts,
    link,
    outside_link,
    plain,
    strong,
    table,
    two_lines,
    verdict_badge,
)
from store import shown
from store.triage_events import BODY_LENGTH_MAX, Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from alerts.inbox import Change
    from store.records import Commit
    from store.triage_events import TriageEvent

    Address = Callable[[str, Mapping[str, str]], str]

_LABEL_LIMIT = 80
_SUBJECT_LIMIT = 70
_WAITS = "waits for a decision"


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


def events_table(events: Iterable[TriageEvent], address: Address) -> Markup:
    """One row an event, newest first.

    Args:
        events: oldest first, those that were taken back included.
        address: the address of a page with parameters.
    """
    known = list(events)
    revoked = {event.revokes for event in known if event.action is Action.REVOKE}
    columns = [Column("When"), Column("Who"), Column("What"), Column("About")]
    rows = [
        [
            plain(format_moment(event.decided_at)),
            plain(person(event.decided_by), more=shown.one_line(event.decided_by)),
            _deed_cell(event, taken_back=event.event_id in revoked),
            _about_cell(event, address),
        ]
        for event in reversed(known)
    ]
    return table("Decisions, newest first", columns, rows)


def change_facts(
    change: Change, commits: Mapping[str, Commit], gpu_names: Mapping[str, str], address: Address
) -> Markup:
    """What one change is, with the ways to its commit and its trend."""
    series, verdict = change.series, change.verdict
    commit = {"sha": change.commit_sha, "benchmark": series.id}
    between = format_effect_interval(verdict.effect_low, verdict.effect_high)
    return facts(
        [
            verdict_badge(verdict),
            strong(format_effect(verdict.effect)),
            plain(f"({between}) since"),
            link(shown.short(change.commit_sha), address("commit", commit), more="Show the commit"),
            plain(subject_of(change, commits)),
        ],
        [
            plain(f"{_gpu(change, gpu_names)}, tier {verdict.tier}: {shown.one_line(verdict.message)}."),
            link("Show the trend", address("trends", {"series": series.id})),
        ],
        [plain(f"State: {'; '.join(states(change)) or _WAITS}.")],
    )


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
            _gpu(change, gpu_names),
        ),
        verdict_badge(change.verdict),
        effect_cell(change.verdict),
        two_lines(Markup(f"{since}{plain(later)}"), subject_of(change, commits)),
        _state_cell(change),
    ]


def _state_cell(change: Change) -> Markup:
    remarks = count_of(len(change.remarks), "note or link", "notes and links") if change.remarks else ""
    first, *others = states(change) or [_WAITS]
    below = "; ".join([*others, remarks] if remarks else others)
    return two_lines(plain(first), below) if below else plain(first)


def _gpu(change: Change, gpu_names: Mapping[str, str]) -> str:
    return gpu_names.get(change.series.gpu_uuid, shown.visible(change.series.gpu_uuid))


def _deed_cell(event: TriageEvent, *, taken_back: bool) -> Markup:
    """What was done and why; what no longer holds says so."""
    deed = plain(deed_words(event) + (" (taken back since)" if taken_back else ""))
    if event.url is not None:
        deed = Markup(f"{deed} {outside_link(shown.visible(event.url, limit=60), event.url)}")
    return two_lines(deed, shown.one_line(event.body, limit=BODY_LENGTH_MAX)) if event.body else deed


def _about_cell(event: TriageEvent, address: Address) -> Markup:
    label = shown.visible(event.scope.label, limit=_LABEL_LIMIT)
    commit = link(shown.short(event.commit_sha), address("commit", {"sha": event.commit_sha}))
    return two_lines(commit, label)
