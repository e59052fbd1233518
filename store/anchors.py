"""Records of the comparison with a release: the tags that mark one, and how far a series went since."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GitTag:
    """A tag on a commit of a run's history, as git told it when the run was measured.

    Attributes:
        name: without ``refs/tags/``.
        commit_sha: the commit that it points at in the end.
    """

    name: str
    commit_sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far a measurement lies from the runs at an older point of its history.

    Attributes:
        since: that point: a release tag, or the beginning of a commit id where no release serves.
        effect: (measurement - runs) / runs; positive is slower.
        low, high: 95 % interval of the effect.
        apart: the intervals do not overlap, so that the change is more than noise.
        run_ids: those runs, nearest first.
    """

    since: str
    effect: float
    low: float
    high: float
    apart: bool
    run_ids: tuple[str, ...]
