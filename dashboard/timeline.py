"""The commit axis: which commits have a place on it, and in which order. Pure.

Places follow the first-parent order that the store knows, never dates: a rebase or a wrong
clock on a laptop must not move a point. Only measured commits get a place, evenly spaced;
one that a series has no number for stays free, so that its gap can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.records import Commit, RunHeader


@dataclass(frozen=True, slots=True)
class Timeline:
    """The places on a commit axis, oldest first.

    Attributes:
        places: commit ids, or run ids where a run belongs to no commit.
        labels: what stands below each place.
        n_older: measured commits that were left out because they are older.
        n_without_order: places at the right end whose commit has no known first-parent order.
    """

    places: tuple[str, ...]
    labels: tuple[str, ...]
    n_older: int
    n_without_order: int

    def slots(self) -> dict[str, int]:
        """The number of each place, from 0 at the left."""
        return {place: slot for slot, place in enumerate(self.places)}


def place_of(header: RunHeader) -> str:
    """What a run is placed by: its commit, or itself where it has none."""
    return header.commit_sha or header.run_id


def lay_out(headers: Iterable[RunHeader], positions: Mapping[str, int], *, newest: int) -> Timeline:
    """Give each measured commit a place, keeping the ``newest`` ones.

    Args:
        headers: the runs to place, in any order.
        positions: ordinal of each commit on its first-parent line, oldest first.
        newest: how many places to keep, at least 1.
    """
    # Oldest run first: that is the order of places without a known position, and the tie-break.
    by_start = sorted(headers, key=lambda header: (header.started_at, header.run_id))
    shas = {place_of(header): header.commit_sha for header in by_start}
    known = sorted((place for place in shas if place in positions), key=lambda place: positions[place])
    unknown = [place for place in shas if place not in positions]
    kept = [*known, *unknown][-newest:]
    return Timeline(
        places=tuple(kept),
        labels=tuple(shown.short(shas[place]) for place in kept),
        n_older=len(shas) - len(kept),
        n_without_order=len(set(kept) & set(unknown)),
    )


def main_line(headers: Iterable[RunHeader], commits: Mapping[str, Commit]) -> frozenset[str]:
    """The commits that runs are judged against: first-parent ancestors of every merge-base.

    A run without a base branch counts as a run on the line itself.
    """
    line: set[str] = set()
    for header in headers:
        sha = header.merge_base or (header.commit_sha if header.base_ref is None else None)
        while sha is not None and sha not in line:
            line.add(sha)
            commit = commits.get(sha)
            sha = commit.parents[0] if commit is not None and commit.parents else None
    return frozenset(line)


def is_on_line(header: RunHeader, line: frozenset[str]) -> bool:
    """Whether a run measured exactly a commit of the line, without uncommitted changes."""
    if header.dirty:
        return False
    return header.commit_sha is None or header.commit_sha in line
