"""From a word on the command line to stored runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from alerts.errors import NothingToJudge, RevisionUnknown
from store import shown
from store.errors import GitError, RunNotFound
from store.git import Repository
from store.runs import find_runs, load_run

if TYPE_CHECKING:
    from pathlib import Path

    from store.database import Database
    from store.records import RunHeader

_HEXADECIMAL = re.compile(r"[0-9a-f]{4,64}")


def newest_run(database: Database) -> str:
    """The id of the run that was started last and speaks for itself.

    One that is there for the sake of another is not what a person asks about, unless there is
    nothing else.

    Raises:
        NothingToJudge: the store holds no run.
    """
    runs = find_runs(database)
    if not runs:
        raise NothingToJudge(
            f"the store {database.url} holds no run yet: run `collect --commit HEAD`, or name another "
            "store with --store"
        )
    own = (run for run in runs if run.speaks_for_itself)
    return next(own, runs[0]).run_id


def runs_named(database: Database, word: str, *, checkout: Path) -> list[RunHeader]:
    """The runs that a word names, newest first: those of a commit, or one by its id.

    Args:
        database: the store.
        word: the beginning of a commit id, the beginning of a run id, or a revision such as
            ``main~3`` of the repository at ``checkout``; tried in this order.
        checkout: where a revision is looked up.

    Raises:
        RevisionUnknown: it names nothing, or more than one commit.
        NothingToJudge: it names a commit that was not measured.
    """
    if _HEXADECIMAL.fullmatch(word) and (runs := find_runs(database, commit_sha=word)):
        commits = {run.commit_sha for run in runs}
        if len(commits) > 1:
            raise RevisionUnknown(f"{word} is the beginning of {len(commits)} commits: give more digits")
        return runs
    try:
        return [load_run(database, word).header]
    except RunNotFound as no_run:
        return _runs_of_revision(database, word, checkout, no_run)


def _runs_of_revision(database: Database, word: str, checkout: Path, no_run: RunNotFound) -> list[RunHeader]:
    try:
        sha = Repository(checkout).resolve(word)
    except GitError as error:
        raise RevisionUnknown(
            f"'{shown.visible(word)}' names no run in {database.url} ({no_run}) and no commit of the "
            f"repository at {checkout} ({error}): give the beginning of a measured commit or of a run id"
        ) from error
    runs = find_runs(database, commit_sha=sha)
    if not runs:
        raise NothingToJudge(
            f"{shown.visible(word)} is {shown.short(sha)}, which was not measured: "
            f"run `collect --commit {shown.short(sha)}`"
        )
    return runs
