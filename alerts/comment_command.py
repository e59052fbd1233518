"""The command ``alerts comment``: what a pull request is told about a run."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alerts.config_command import tell_unmatched
from alerts.configuration import policies_here
from alerts.errors import ArtifactUnusable, GitHubError
from alerts.exits import fail_option, leave
from alerts.mail_options import run_option
from alerts.markdown import Surroundings
from alerts.naming import newest_run
from alerts.options import config_option, store_option
from alerts.terminal import render_text
from store.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from alerts.github.client import Client
    from alerts.github.gaps import Gap
    from alerts.github.pictures import PictureBranch
    from alerts.github.place import Event
    from alerts.github.subject import Subject
    from alerts.github.telling import Told

DASHBOARD_VARIABLE = "KERNELWATCH_DASHBOARD"
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?")

repository_option = click.option(
    "--repository", metavar="OWNER/NAME", help="Where the pull request is.  [default: GITHUB_REPOSITORY]"
)


@click.command()
@run_option
@click.option(
    "--artifact",
    metavar="NAME",
    help="Take the runs from this artifact of the workflow run that the event workflow_run is about. "
    "They are judged in a copy of the store, which is thrown away. Where there is none, that is told.",
)
@click.option(
    "--pull", type=click.IntRange(min=1), metavar="N", help="The pull request.  [default: the event's]"
)
@repository_option
@click.option(
    "--dashboard", metavar="URL", envvar=DASHBOARD_VARIABLE, show_envvar=True, help="Link to the pages there."
)
@click.option(
    "--pictures",
    metavar="BRANCH",
    help="Put pictures of trends on this branch; needs contents: write. Else they are rows of characters.",
)
@click.option("--orders", is_flag=True, help="Say that orders such as '/kernelwatch accept' are taken.")
@click.option("--check", is_flag=True, help="Put a check on the commit as well; needs checks: write.")
@click.option("--dry-run", is_flag=True, help="Print the Markdown instead of posting it.")
@fail_option
@config_option
@store_option
def comment(*, url: str, **options: Any) -> None:
    """Comment on a pull request: one comment, updated in place, a section for each GPU and suite.

    The result is printed too, and added to GITHUB_STEP_SUMMARY where that is set. Where GitHub
    cannot be told, stderr says why and the exit code is 3, unless --fail-on makes it 1.
    """
    from alerts.github.sections import assemble
    from alerts.github.telling import prepare

    told: list[Told] = []
    problems: list[str] = []
    unmeasured = False
    with ExitStack() as stack:
        source = _source(Database(url), options, stack)
        around, pictures = _surroundings(source, options), _pictures(source, options)
        rules = policies_here(options["config"])
        tell_unmatched(source.database, rules)
        for run_id in source.run_ids:
            one, missing = prepare(source.database, run_id, rules, around, pictures=pictures)
            told.append(one)
            if missing is not None:
                _say(missing)
            click.echo(
                assemble([], one.section) if options["dry_run"] else render_text(one.message), nl=False
            )
            problems += _tell(source, one, options)
        if source.gap is not None:
            section = source.gap.section
            click.echo(assemble([], lambda _: section) if options["dry_run"] else source.gap.text, nl=False)
            problems += _tell_gap(source, source.gap, options)
            unmeasured = source.is_open
    for problem in problems:
        _say(f"Error: {problem}")
    leave([one.judgement for one in told], options["fail_on"], told=not (problems or unmeasured))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where the runs are that are told about, and whom to tell.

    Attributes:
        client, subject: None where nobody is told and nobody was asked.
        gap: what is missing of what a workflow was to measure, or None.
        gap_key: of sections about such a gap, which what was measured makes void; None without a workflow.
    """

    database: Database
    run_ids: Sequence[str]
    client: Client | None
    subject: Subject | None
    gap: Gap | None = None
    gap_key: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether anybody waits for an answer about this commit."""
        return self.subject is None or self.subject.number is not None


def _source(database: Database, options: dict[str, Any], stack: ExitStack) -> _Source:
    named = options["run_id"]
    if options["artifact"] is not None and named is not None:
        raise click.UsageError(
            "--run names a run of the store and --artifact brings its own: give one of them"
        )
    if options["dry_run"] and options["artifact"] is None:
        return _Source(database=database, run_ids=[named or newest_run(database)], client=None, subject=None)
    from alerts.github.subject import subject_of

    client, event = conversation(options["repository"], stack)
    subject = subject_of(client, event, options["pull"])
    if options["artifact"] is None:
        run_ids = [named or newest_run(database)]
        return _Source(database=database, run_ids=run_ids, client=client, subject=subject)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelwatch-")))
    return _from_artifact(client, event, subject, options, database=database, folder=folder)


def _from_artifact(
    client: Client,
    event: Event,
    subject: Subject,
    options: dict[str, Any],
    *,
    database: Database,
    folder: Path,
) -> _Source:
    """What a workflow run measured, and what it did not."""
    from alerts.github.gaps import gap_key, gap_of
    from alerts.github.sources import take_in
    from alerts.github.subject import measured_run_id

    name, run_ids, why, words = options["artifact"], [], None, ""
    try:
        taken = take_in(
            client,
            measured_run_id(event),
            name,
            head_sha=subject.head_sha,
            database=database,
            folder=folder,
        )
        database, run_ids, words = taken.database, taken.run_ids, taken.words
    except ArtifactUnusable as error:
        why, words = str(error), error.words
    gap = gap_of(
        client, event, name, head_sha=subject.head_sha, why=why, words=words, orders=options["orders"]
    )
    return _Source(
        database=database,
        run_ids=run_ids,
        client=client,
        subject=subject,
        gap=gap,
        gap_key=gap_key(client.place.slug, name),
    )


def conversation(repository: str | None, stack: ExitStack) -> tuple[Client, Event]:
    """A client for the place that the environment names, open while the stack is, and what has happened.

    Raises:
        GitHubError: the environment does not say where and as whom, or httpx is not installed.
    """
    if importlib.util.find_spec("httpx") is None:
        raise GitHubError("talking to GitHub needs httpx: install 'kernelwatch[alerts]'")
    from alerts.github.auth import credentials_of
    from alerts.github.client import Client
    from alerts.github.place import event_of, place_of

    place = place_of(os.environ, repository=repository)
    return stack.enter_context(Client(place, credentials_of(os.environ))), event_of(os.environ)


def _surroundings(source: _Source, options: dict[str, Any]) -> Surroundings:
    dashboard = options["dashboard"]
    if dashboard and not _ADDRESS.fullmatch(dashboard):
        raise click.BadParameter(f"{dashboard!r} is no address of pages", param_hint="--dashboard")
    return Surroundings(
        dashboard=dashboard.rstrip("/") if dashboard else None,
        workflow=None if source.client is None else source.client.place.run_url,
        orders=options["orders"],
    )


def _pictures(source: _Source, options: dict[str, Any]) -> PictureBranch | None:
    from alerts.github.pictures import PictureBranch

    if options["pictures"] is None or source.client is None or options["dry_run"]:
        return None
    return PictureBranch(source.client, options["pictures"])


def _tell(source: _Source, one: Told, options: dict[str, Any]) -> list[str]:
    """Tell everybody who is to be told; returns what went wrong with whom."""
    from alerts.github.gaps import close_gap
    from alerts.github.sections import first_key
    from alerts.github.telling import append_summary, check_on, comment_on

    client, subject = source.client, source.subject
    filled = source.gap_key if source.gap is None else None
    actions: list[Callable[[], None]] = []
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        actions.append(lambda: append_summary(Path(summary), one.section))
    if client is not None and subject is not None and not options["dry_run"]:
        replaces = [first_key(one.judgement.header), *([] if filled is None else [filled])]
        actions.append(lambda: comment_on(client, subject, one.section, _say, replaces=replaces))
        if options["check"]:
            actions.append(lambda: check_on(client, one, _say))
            if filled is not None:
                actions.append(lambda: close_gap(client, subject.head_sha, filled, _say))
    return _done(actions)


def _tell_gap(source: _Source, gap: Gap, options: dict[str, Any]) -> list[str]:
    """The same about what was not measured."""
    from alerts.github.checks import post_check
    from alerts.github.telling import append_summary, comment_on

    client, subject, section = source.client, source.subject, gap.section
    actions: list[Callable[[], None]] = []
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        actions.append(lambda: append_summary(Path(summary), lambda _: section))
    if client is not None and subject is not None and not options["dry_run"]:
        actions.append(lambda: comment_on(client, subject, lambda _: section, _say))
        if options["check"] and source.is_open:
            actions.append(lambda: _say(f"the check says neutral: {post_check(client, gap.check)}"))
    return _done(actions)


def _done(actions: Sequence[Callable[[], None]]) -> list[str]:
    """Do everything, whatever fails; returns what went wrong."""
    problems = []
    for action in actions:
        try:
            action()
        except GitHubError as error:
            problems.append(str(error))
    return problems


def _say(text: str) -> None:
    click.echo(text, err=True)
