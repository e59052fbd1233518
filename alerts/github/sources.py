"""Runs that came with a workflow run, in a copy of the store that is thrown away afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from alerts.errors import ArtifactUnusable
from alerts.github.artifacts import fetch_content
from store import shown
from store.copying import copy_store
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.github.client import Client
    from store.database import Database
    from store.records import RunHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came with a workflow run.

    Attributes:
        database: the copy that holds it.
        run_ids: of the runs to judge.
        words: the end of what ``collect`` said, where it failed.
    """

    database: Database
    run_ids: list[str]
    words: str


def take_in(
    client: Client, workflow_run: int, name: str, *, head_sha: str, database: Database, folder: Path
) -> Taken:
    """Take the runs of an artifact into a copy of the store.

    Args:
        client: who downloads.
        workflow_run: whose artifact it is.
        name: of the artifact.
        head_sha: the commit in question, in GitHub's word; runs of other commits are not judged.
        database: what they are judged by; not changed.
        folder: an empty one.

    Raises:
        ArtifactUnusable: there is no artifact of ours, or none with runs of that commit alone.
        GitHubError: GitHub could not be asked.
        StoreError: the store could not be copied.
    """
    content = fetch_content(client, workflow_run, name, folder=folder)
    runs, slug = content.runs, client.place.slug
    strangers = {run.header.repository for run in runs} - {slug}
    if strangers:
        raise ArtifactUnusable(
            f"the artifact {shown.visible(name)!r} holds runs of {shown.visible(min(strangers))!r} and "
            f"not of {slug!r}: measure in a checkout whose remote 'origin' is this repository",
            words=content.words,
        )
    wanted = [run.header.run_id for run in runs if _is_judged(run.header, head_sha)]
    if not wanted:
        measured = sorted({_named(run.header) for run in runs})
        raise ArtifactUnusable(
            f"the artifact {shown.visible(name)!r} holds no run of {shown.short(head_sha)} but of "
            f"{', '.join(measured) or 'nothing'}: measure the pull request's own commit, "
            "github.event.pull_request.head.sha, and not GitHub's merge of it",
            words=content.words,
        )
    copy = copy_store(database, folder)
    for run in runs:
        save_run(copy, run)
    return Taken(database=copy, run_ids=wanted, words=content.words)


def _named(header: RunHeader) -> str:
    return shown.short(header.commit_sha) + (" with uncommitted changes" if header.dirty else "")


def _is_judged(header: RunHeader, head_sha: str) -> bool:
    """Whether this is what the pull request is asked about: no partner, and no second look."""
    return header.commit_sha == head_sha and not header.dirty and header.speaks_for_itself
