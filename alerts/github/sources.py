"""Runs that came with a workflow run, in a copy of the store that is thrown away afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.errors import GitHubError
from alerts.github.artifacts import fetch_runs
from store import shown
from store.copying import copy_store
from store.records import PairedRole
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.github.client import Client
    from store.database import Database
    from store.records import RunHeader


def take_in(
    client: Client, workflow_run: int, name: str, *, head_sha: str, database: Database, folder: Path
) -> tuple[Database, list[str]]:
    """Take the runs of an artifact into a copy of the store.

    Args:
        client: who downloads.
        workflow_run: whose artifact it is.
        name: of the artifact.
        head_sha: the commit in question, in GitHub's word; runs of other commits are not judged.
        database: what they are judged by; not changed.
        folder: an empty one.

    Returns:
        The copy, and the ids of the runs to judge.

    Raises:
        GitHubError: the artifact holds no run of that commit, or is no artifact of ours.
        StoreError: the store could not be copied.
    """
    runs = fetch_runs(client, workflow_run, name, folder=folder)
    strangers = {run.header.repository for run in runs} - {client.place.slug}
    if strangers:
        raise GitHubError(
            f"the artifact {shown.visible(name)!r} holds runs of {shown.visible(min(strangers))!r} and "
            f"not of {client.place.slug!r}: measure in a checkout whose remote 'origin' is this repository"
        )
    wanted = [run.header.run_id for run in runs if _is_judged(run.header, head_sha)]
    if not wanted:
        measured = sorted({_named(run.header) for run in runs})
        raise GitHubError(
            f"the artifact {shown.visible(name)!r} holds no run of {shown.short(head_sha)} but of "
            f"{', '.join(measured) or 'nothing'}: measure the pull request's own commit, "
            "github.event.pull_request.head.sha, and not GitHub's merge of it"
        )
    copy = copy_store(database, folder)
    for run in runs:
        save_run(copy, run)
    return copy, wanted


def _named(header: RunHeader) -> str:
    return shown.short(header.commit_sha) + (" with uncommitted changes" if header.dirty else "")


def _is_judged(header: RunHeader, head_sha: str) -> bool:
    """Whether this is what the pull request is asked about: no partner, and no second look."""
    return (
        header.commit_sha == head_sha
        and not header.dirty
        and header.paired_role is not PairedRole.BASELINE
        and header.confirms_run_id is None
    )
