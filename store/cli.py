"""The console command ``store``: look into a store, check it, and carry runs in and out.

Exit codes: 0 fine, 2 wrong usage, 3 something is wrong or was refused.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from store import shown
from store.bundle import read_bundle, write_bundle
from store.database import DEFAULT_URL, STORE_VARIABLE, Database
from store.doctor import Level, examine
from store.errors import BundleInvalid, StoreError, StoreInvalid
from store.listing import list_runs, run_as_plain, run_as_text, runs_as_plain, runs_as_text
from store.runs import load_run, save_run

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_WRONG = 3
_NEWEST_SHOWN = 50
_P = ParamSpec("_P")


class _Failure(click.ClickException):
    exit_code = EXIT_WRONG


def _with_store(command: Callable[_P, None]) -> Callable[_P, None]:
    """Give a command the option --store, and turn store errors into messages."""

    @click.option(
        "--store",
        "url",
        metavar="FILE",
        envvar=STORE_VARIABLE,
        default=DEFAULT_URL,
        show_default=True,
        show_envvar=True,
        help="The DuckDB file to use.",
    )
    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except StoreError as error:
            raise _Failure(shown.one_line(str(error), limit=2000)) from error

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Look into a store of runs, check it, and carry runs in and out."""


@main.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What stdout holds: a table, or JSON for programs.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=_NEWEST_SHOWN, show_default=True, help="Runs to list."
)
@_with_store
def show(run_id: str | None, form: str, limit: int, url: str) -> None:
    """List the runs, newest first, or show one RUN by the beginning of its id."""
    database = Database(url)
    if run_id is not None:
        run = load_run(database, run_id)
        click.echo(run_as_text(run) if form == "text" else _json(run_as_plain(run)))
        return
    runs = list_runs(database, limit=limit)
    click.echo(runs_as_text(runs) if form == "text" else _json(runs_as_plain(runs)))


@main.command()
@_with_store
def doctor(url: str) -> None:
    """Check a store and say what to do about whatever is wrong; exits with 3 when something is."""
    findings = examine(Database(url, lock_deadline_s=3))
    for finding in findings:
        click.echo(f"{finding.level:<5}  {shown.one_line(finding.message, limit=1000)}")
        if finding.remedy:
            click.echo(f"{'':<5}  -> {shown.one_line(finding.remedy, limit=1000)}")
    if any(finding.level is Level.WRONG for finding in findings):
        sys.exit(EXIT_WRONG)


@main.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_with_store
def import_(files: tuple[Path, ...], url: str) -> None:
    """Take the runs in bundles into the store, each once; exits with 3 when one was refused."""
    database = Database(url)
    refused = 0
    for file in files:
        name = shown.visible(str(file))
        try:
            run = read_bundle(file)
            fresh = save_run(database, run)
        except BundleInvalid as error:  # names the file
            refused += 1
            click.echo(f"refused {shown.one_line(str(error), limit=1000)}", err=True)
        except StoreInvalid as error:
            refused += 1
            click.echo(f"refused {name}: {shown.one_line(str(error), limit=1000)}", err=True)
        else:
            click.echo(f"{'imported' if fresh else 'already there'} {name}: run {run.header.run_id}")
    if refused:
        sys.exit(EXIT_WRONG)


@main.command()
@click.argument("run_id", metavar="RUN")
@click.argument("file", type=click.Path(path_type=Path))
@_with_store
def export(run_id: str, file: Path, url: str) -> None:
    """Write a RUN, named by the beginning of its id, to FILE as a bundle."""
    run = load_run(Database(url), run_id)
    write_bundle(run, file)
    click.echo(f"wrote run {run.header.run_id} to {shown.visible(str(file))}")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False)
