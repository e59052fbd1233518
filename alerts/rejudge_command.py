"""What ``alerts judge --all`` understands and says."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from alerts.errors import RevisionUnknown
from alerts.exits import EXIT_NOTHING
from alerts.rejudge import rejudge
from store import shown
from store.commits import load_commits
from store.errors import GitError
from store.git import Repository
from store.records import Standing
from store.runs import find_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from alerts.policy import Rules
    from alerts.rejudge import Rejudged
    from store.database import Database
    from store.records import Outcome, RunHeader

all_option = click.option("--all", "every", is_flag=True, help="Judge every run of the store again.")
since_option = click.option(
    "--since",
    metavar="REV_OR_DATE",
    help="With --all: only runs on this commit and what came after it, or that began on this day or later.",
)
gpu_option = click.option(
    "--gpu", metavar="UUID", help="With --all: only runs on this GPU; the beginning of its UUID will do."
)
repo_option = click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Where a REV of --since is looked up that no run has.  [default: .]",
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_BEGINNING = re.compile(r"[0-9a-f]{4,64}")


def check_together(
    *, every: bool, since: str | None, gpu: str | None, run_id: str | None, fail_on: str | None, **_: object
) -> None:
    """Refuse options that contradict each other.

    Raises:
        UsageError: they do.
    """
    if not every and (since is not None or gpu is not None):
        raise click.UsageError("--since and --gpu narrow what --all judges: give --all as well")
    if every and run_id is not None:
        raise click.UsageError("--all judges every run, --run one: give one of the two")
    if every and fail_on is not None:
        raise click.UsageError(
            "--fail-on asks about one run, and among all there may well be a regression of long ago: "
            "judge that run with --run"
        )


def leave_rejudged(result: Rejudged) -> None:
    """End with the code for nothing that could be judged; else return."""
    if not result.is_conclusive:
        sys.exit(EXIT_NOTHING)


def judge_all(
    database: Database, rules: Rules, *, since: str | None, gpu: str | None, checkout: Path
) -> Rejudged:
    """Judge all runs again, or those that the words of the command choose.

    Args:
        database: the store.
        rules: the thresholds.
        since: a date such as ``2026-03-02``, or a commit; see ``chosen_since``.
        gpu: the beginning of a GPU's UUID; None for all.
        checkout: where a revision is looked up.

    Raises:
        AlertsError: the words choose nothing.
        StoreError: the store cannot be read or written.
    """
    if since is None:
        return rejudge(database, rules, gpu=gpu)
    return rejudge(database, rules, gpu=gpu, is_chosen=chosen_since(database, since, checkout=checkout))


def chosen_since(database: Database, word: str, *, checkout: Path) -> Callable[[RunHeader], bool]:
    """Which runs a date or a commit chooses.

    A date chooses the runs that began then or later (UTC where it names no zone), a commit
    the runs on it and on what came after it by first parents, branches included.

    Raises:
        RevisionUnknown: the word is neither, or names more than one commit.
    """
    if _DATE.fullmatch(word):
        try:
            moment = datetime.fromisoformat(word)
        except ValueError as error:
            raise RevisionUnknown(f"--since {shown.visible(word)}: {error}; write 2026-03-02") from error
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return lambda run: run.started_at >= moment
    sha = _commit_named(database, word, checkout)
    later = _after(database, sha)
    return lambda run: run.commit_sha in later


def render_rejudged(result: Rejudged) -> str:
    """Counts for a terminal: what was judged, and what says something else than before."""
    changed = sum(item.number for item in result.changed)
    judged = f"{shown.count(result.verdicts, 'verdict')} on {shown.count(result.runs, 'run')}"
    lines = [f"Judged {judged} again: {changed or 'none'} changed"]
    for item in result.changed:
        before = "not judged" if item.before is None else _said(*item.before)
        lines.append(f"  {item.number:>8}  {before} -> {_said(*item.after)}")
    return "\n".join(lines)


def rejudged_json(result: Rejudged) -> str:
    """The same for programs."""
    changed = [
        {
            "before": None if item.before is None else dict(zip(_NAMES, item.before, strict=True)),
            "after": dict(zip(_NAMES, item.after, strict=True)),
            "verdicts": item.number,
        }
        for item in result.changed
    ]
    return json.dumps({"runs": result.runs, "verdicts": result.verdicts, "changed": changed}, indent=2)


_NAMES = ("outcome", "standing")


def _said(outcome: Outcome, standing: Standing) -> str:
    return str(outcome) if standing is Standing.NONE else f"{outcome} ({standing})"


def _commit_named(database: Database, word: str, checkout: Path) -> str:
    """The commit with a run whose id begins like this, or else the one that git knows by the word."""
    measured = {run.commit_sha for run in find_runs(database) if run.commit_sha is not None}
    found = sorted(sha for sha in measured if sha.startswith(word)) if _BEGINNING.fullmatch(word) else []
    if len(found) > 1:
        raise RevisionUnknown(f"{word} is the beginning of {len(found)} commits: give more digits")
    if found:
        return found[0]
    try:
        return Repository(checkout).resolve(word)
    except GitError as error:
        raise RevisionUnknown(
            f"'{shown.visible(word)}' is no date such as 2026-03-02, no measured commit, and no commit of "
            f"the repository at {checkout} ({error})"
        ) from error


def _after(database: Database, first: str) -> set[str]:
    """A commit and all that come after it by first parents, as far as the store knows."""
    later = {first}
    for repository in {run.repository for run in find_runs(database)}:
        commits, earlier = load_commits(database, repository), set[str]()
        for tip in commits:
            path: dict[str, None] = {}
            sha: str | None = tip
            while sha in commits and sha not in later and sha not in earlier and sha not in path:
                path[sha] = None
                sha = next(iter(commits[sha].parents), None)
            (later if sha in later else earlier).update(path)
    return later
