"""How a change reads: by how much, and against what where it is no single commit's doing. Pure."""

from __future__ import annotations

import glob
import shlex
from typing import TYPE_CHECKING

from alerts.direction import comparative
from store import shown
from store.records import Reason

if TYPE_CHECKING:
    from store.records import Verdict

_SINCE_LIMIT = 40  # names of tags come from the repository


def drifted_since(verdict: Verdict) -> str | None:
    """The release or commit since which a series drifted; None where the verdict is about its own commit."""
    if verdict.reason is not Reason.DRIFTED or verdict.drift is None:
        return None
    return shown.visible(verdict.drift.since, limit=_SINCE_LIMIT)


def how_much(verdict: Verdict) -> str:
    """``8.10 % slower``, or of a drift ``2.40 % slower than v1.2.0``."""
    effect, since = verdict.effect or 0.0, drifted_since(verdict)
    said = f"{shown.size(effect)} {comparative(verdict.series, rose=effect > 0)}"
    return said if since is None else f"{said} than {since}"


def search_command(verdict: Verdict, commit_sha: str | None) -> str | None:
    """Looks between the ends of a drift for commits that contributed; None for anything else.

    Args:
        verdict: on the point that drifted.
        commit_sha: where it was measured.
    """
    since = drifted_since(verdict)
    if since is None or commit_sha is None:
        return None
    benchmark = shlex.quote(glob.escape(shown.visible(verdict.series.case.benchmark)))
    return f"collect bisect {shlex.quote(since)} {shown.short(commit_sha)} --benchmark {benchmark}"
