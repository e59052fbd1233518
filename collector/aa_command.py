"""The command ``collect aa``: let the tool measure itself."""

from __future__ import annotations

import json
import sys
import time
import uuid
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import click

from collector.aa import Start, measure_study, named_runs, starts, stored_runs, study_id_of
from collector.aa_analysis import RUNS_MIN, analyse
from collector.aa_report import study_json, study_text
from collector.errors import CollectorError
from collector.exits import EXIT_INTERRUPTED, EXIT_NOTHING, give_up
from collector.keeping import keep_whatever
from collector.options import choosing, measuring, merged, plan_of, refuse_run_only
from collector.progress import Bar, Interrupts
from collector.run import collect_run
from store.database import DEFAULT_URL, Database
from store.errors import StoreError
from store.studies import save_study

if TYPE_CHECKING:
    from store.records import Run

RUNS = 5
REST_S = 20.0


@click.command("aa")
@choosing
@measuring
@click.option(
    "--runs",
    "run_count",
    type=click.IntRange(RUNS_MIN, 1000),
    default=RUNS,
    show_default=True,
    help="How often to measure.",
)
@click.option(
    "--rest",
    "rest_s",
    type=click.FloatRange(min=0),
    default=REST_S,
    show_default=True,
    metavar="SECONDS",
    help="Idle time before every second run; the others start at once.",
)
@click.option("--stored", is_flag=True, help="Measure nothing; analyse all runs of the commit in the store.")
@click.option(
    "--from-runs",
    "named",
    multiple=True,
    metavar="RUN",
    help="Measure nothing; analyse these runs of the store, by their ids or their beginnings.",
)
@click.argument("more", nargs=-1, metavar="[RUN]...")
@click.pass_context
def aa(context: click.Context, /, **own: Any) -> None:
    """Measure one commit several times, and report how far the runs lie apart.

    Per benchmark: the spread from run to run, how many pairs of runs would have been a false
    alarm, and the smallest slowdown that 95 % of the pairs would have shown; from seven runs on
    the same against the pool of the other runs. The runs are kept as any others, and the study
    beside them. Exit codes: 0 fine, 2 usage, 3 nothing to compare,
    130 interrupted (the runs measured so far are kept and compared).
    """
    options = merged(context, own)
    _check(options)
    database = Database(options["url"] or DEFAULT_URL)
    try:
        runs, study_id = _runs(options, database)
        study = analyse(
            runs,
            study_id=study_id,
            analysed_at=datetime.now(UTC),
            tool_version=metadata.version("kernelwatch"),
        )
    except (CollectorError, StoreError) as error:
        give_up(error)
    try:
        save_study(database, study)
        problem = None
    except StoreError as error:
        problem = f"the study could not be stored: {error}"
    if options["output_format"] == "json":
        click.echo(json.dumps(study_json(study), indent=2, allow_nan=False))
    else:
        click.echo(study_text(study))
    if problem is not None:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(EXIT_NOTHING)
    if not _is_stored(options) and len(runs) < options["run_count"]:
        click.echo(f"interrupted: {len(runs)} runs of {options['run_count']} were compared", err=True)
        sys.exit(EXIT_INTERRUPTED)


def _check(options: dict[str, Any]) -> None:
    """Refuse what contradicts itself, before anything is measured."""
    if options["more"] and not options["named"]:
        raise click.UsageError(f"unexpected argument {options['more'][0]!r}: ids of runs follow --from-runs")
    if options["named"] and options["stored"]:
        raise click.UsageError(
            "--stored takes all runs of a commit and --from-runs some: give one of the two"
        )
    refuse_run_only(options, "collect aa")


def _is_stored(options: dict[str, Any]) -> bool:
    return bool(options["stored"] or options["named"])


def _runs(options: dict[str, Any], database: Database) -> tuple[list[Run], str]:
    """The runs to compare, and the id of their study."""
    if options["named"]:
        runs = named_runs(database, [*options["named"], *options["more"]])
        return runs, study_id_of(runs)
    plan = plan_of(options)
    if options["stored"]:
        runs = stored_runs(database, plan)
        return runs, study_id_of(runs)
    study_id = str(uuid.uuid4())
    planned = starts(plan, runs=options["run_count"], rest_s=options["rest_s"])
    runs = measure_study(planned, study_id, _Measuring(), lambda run: _keep(run, database.url))
    if len(runs) < RUNS_MIN:
        click.echo("interrupted before two runs were finished: there is nothing to compare", err=True)
        sys.exit(EXIT_INTERRUPTED)
    return runs, study_id


class _Measuring:
    """Measures runs with a progress bar, and none after somebody asked to end between two."""

    def __init__(self) -> None:
        self._interrupts = Interrupts()

    def __call__(self, start: Start) -> Run:
        if self._interrupts.asked:
            raise KeyboardInterrupt
        self._interrupts = Interrupts()
        bar = Bar(self._interrupts)
        try:
            if start.rest_s:
                bar.note(f"resting for {start.rest_s:g} s")
                time.sleep(start.rest_s)
            return collect_run(start.plan, bar)
        finally:
            self._interrupts.end_of_measuring()  # what was measured is kept, whoever interrupts now
            bar.close()


def _keep(run: Run, url: str) -> None:
    kept = keep_whatever(run, output=None, url=url, say=_say)
    if kept.problem is not None:
        _say(f"Error: {kept.problem}")


def _say(text: str) -> None:
    click.echo(text, err=True)
