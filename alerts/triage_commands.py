"""The commands ``alerts triage``: decide about changes, and see what was decided."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alerts.errors import DecisionInvalid
from alerts.options import format_option, store_option
from store import shown
from store.database import Database
from store.triage_events import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

_BENCHMARK = click.argument("benchmarks", nargs=-1, required=True, metavar="BENCHMARK...")
_ABOUT = (
    click.option(
        "--at", metavar="COMMIT", help="The commit or run that shows the change.  [default: the newest run]"
    ),
    click.option("--gpu", metavar="UUID", help="On this GPU alone; the beginning of its UUID will do."),
    click.option("--series", metavar="ID", help="In this series alone; the beginning of its id will do."),
    click.option(
        "--repo",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        help="Where names such as main or HEAD~3, and git's user, are looked up.  [default: .]",
    ),
)
_as_option = click.option(
    "--as", "person", metavar="PERSON", help="Who decides.  [default: git's user, else the login name]"
)
_why_option = click.option("-m", "--message", metavar="TEXT", help="Why.")
_text_option = click.option("-m", "--message", metavar="TEXT", required=True, help="What to say; needed.")


def _deciding(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments by which all decisions are addressed."""
    for option in reversed((_BENCHMARK, *_ABOUT, _as_option, format_option, store_option)):
        command = option(command)
    return command


@click.group()
def triage() -> None:
    """Decide about changes: accept, mute, assign, note, link; take it back with revoke.

    BENCHMARK is a benchmark with all its cases and GPUs, or one case such as 'softmax[rows=8]'.
    Every decision is kept with who made it and when; nothing is ever deleted.
    """


@triage.command(name="list")
@click.option("--all", "everything", is_flag=True, help="Decided and recovered changes, and branches, too.")
@click.option("--history", is_flag=True, help="Every event instead of the changes, with its id.")
@format_option
@store_option
def list_changes(url: str, form: str, *, everything: bool, history: bool) -> None:
    """List the confirmed changes that wait for a decision, worst first."""
    from alerts.deciding import load_changes
    from alerts.triageforms import changes_json, events_json, render_changes, render_history
    from store.triage import load_triage_events

    database = Database(url)
    if history:
        events = load_triage_events(database)
        click.echo(events_json(events) if form == "json" else render_history(events))
        return
    found = load_changes(database)
    kept = [change for change in found if everything or (change.is_open and change.on_base)]
    click.echo(changes_json(kept) if form == "json" else render_changes(kept, others=len(found) - len(kept)))


@triage.command()
@_deciding
@_why_option
def accept(**words: Any) -> None:
    """Accept a change: from its commit on, baselines are what came after it."""
    _decide(Action.ACCEPT, words)


@triage.command()
@_deciding
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    required=True,
    metavar="YYYY-MM-DD",
    help="The last day, in UTC; at most a year from now.",
)
@_text_option
def mute(**words: Any) -> None:
    """Keep regressions from failing checks and sending mail up to a day; they stay in sight."""
    until: date = words.pop("until").date()
    _decide(Action.MUTE, words, muted_until=until)


@triage.command()
@_deciding
@_why_option
def unmute(**words: Any) -> None:
    """End a mute before its day."""
    _decide(Action.UNMUTE, words)


@triage.command()
@_deciding
@click.option("--to", "assignee", required=True, metavar="PERSON", help="Who shall look at it.")
@_why_option
def assign(**words: Any) -> None:
    """Say who looks at a change. It stays open."""
    _decide(Action.ASSIGN, words, assignee=words.pop("assignee"))


@triage.command()
@_deciding
@_text_option
def note(**words: Any) -> None:
    """Write something down about a change."""
    _decide(Action.NOTE, words)


@triage.command()
@_deciding
@click.option("--to", "address", required=True, metavar="URL", help="Such as an issue.")
@_why_option
def link(**words: Any) -> None:
    """Link an issue, or another page, to a change."""
    _decide(Action.LINK, words, url=words.pop("address"))


@triage.command()
@click.argument("event", metavar="ID")
@_as_option
@_why_option
@format_option
@store_option
def revoke(*, url: str, event: str, person: str | None, message: str | None, form: str) -> None:
    """Take a decision back, by its id or the beginning of it."""
    from alerts.deciding import revoke as take_back
    from store.person import acting_person

    by = person or acting_person(Path())
    with _usage():
        taken_back = take_back(Database(url), event, by=by, body=message)
    _report([taken_back], form)


def _decide(action: Action, words: dict[str, Any], **fields: Any) -> None:
    from alerts.deciding import record, target, without_change
    from store.person import acting_person

    database = Database(words["url"])
    about = target(
        database,
        words["benchmarks"],
        at=words["at"],
        checkout=words["repo"],
        gpu=words["gpu"],
        series=words["series"],
    )
    by = words["person"] or acting_person(words["repo"])
    with _usage():
        events = record(database, action, about, by=by, body=words["message"], **fields)
    _report(events, words["form"])
    for label in without_change(database, about) if action is Action.ACCEPT else ():
        click.echo(
            f"Note: no verdict at {shown.short(about.commit_sha)} says that {shown.visible(label)} changed. "
            "Its baselines begin there all the same; `alerts triage revoke` takes that back, and --at "
            "names another commit.",
            err=True,
        )


@contextmanager
def _usage() -> Iterator[None]:
    """What can be no decision is a question of usage, like any other value of an option."""
    try:
        yield
    except DecisionInvalid as problem:
        raise click.UsageError(str(problem)) from problem


def _report(events: list[Any], form: str) -> None:
    from alerts.triage_words import SHORT_ID, event_words
    from alerts.triageforms import events_json

    if form == "json":
        click.echo(events_json(events))
        return
    for event in events:
        click.echo(f"{event.event_id[:SHORT_ID]}  {event_words(event)}")
