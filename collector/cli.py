"""The command ``collect``: parse, measure, remember, have it judged, print."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from collector.aa_command import aa
from collector.backfill_command import backfill
from collector.bisect_command import bisect
from collector.doctor import doctor
from collector.errors import CollectorError
from collector.exits import EXIT_INTERRUPTED, EXIT_NOTHING, EXIT_REGRESSION, give_up
from collector.keeping import keep_whatever
from collector.listing import list_cases
from collector.loaded import SENTINEL_TAG
from collector.options import choosing, measuring, merged, plan_of, run_only
from collector.pair_report import pair_json, pair_text
from collector.paired import Pair, collect_pair
from collector.progress import Bar, Interrupts
from collector.report import run_json, run_text
from collector.run import collect_run
from collector.telling import tell
from store.configuration import load_configuration
from store.database import DEFAULT_URL
from store.errors import StoreError
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.keeping import Kept
    from collector.run import Plan
    from store.records import Run

Measured = TypeVar("Measured")


@click.group(invoke_without_command=True, context_settings={"auto_envvar_prefix": "KERNELWATCH_COLLECT"})
@choosing
@measuring
@run_only
@click.pass_context
def collect(context: click.Context, /, **options: Any) -> None:
    """Measure a suite of GPU benchmarks on one commit, remember the run and judge it.

    Exit codes: 0 fine, 1 confirmed regression with --fail-on regression, 2 usage,
    3 nothing could be measured, 130 interrupted (what was measured is kept).
    """
    context.obj = options
    if context.invoked_subcommand is None:
        _collect(options)


@collect.command("list")
@choosing
@click.pass_context
def list_command(context: click.Context, /, **own: Any) -> None:
    """Show the benchmark cases that would be measured, and what cannot be.

    Exit codes: 0 fine, 2 usage, 3 something could not be loaded.
    """
    options = merged(context, own)
    try:
        text, failed = list_cases(plan_of(options), as_json=options["output_format"] == "json")
    except (CollectorError, StoreError) as error:
        give_up(error)
    click.echo(text)
    if failed:
        sys.exit(EXIT_NOTHING)


collect.add_command(aa)
collect.add_command(backfill)
collect.add_command(bisect)
collect.add_command(doctor)


def _collect(options: dict[str, Any]) -> None:
    plan = plan_of(options)
    if options["fail_on"] is not None and options["output"] is not None and options["url"] is None:
        raise click.UsageError(
            "--fail-on needs a store to judge by: add --store, or judge where it is imported"
        )
    if options["against"] is None:
        _collect_run(plan, options)
    else:
        _collect_pair(plan, options)


def _collect_run(plan: Plan, options: dict[str, Any]) -> None:
    run = _measured(lambda bar: collect_run(plan, bar))
    kept = keep_whatever(run, output=options["output"], url=options["url"], say=_say)
    if options["output_format"] == "json":
        click.echo(json.dumps(run_json(run, kept.verdicts), indent=2, allow_nan=False))
    else:
        click.echo(run_text(run, kept.verdicts))
    _tell(run, kept, options)
    _exit_by(run, [kept], options)


def _collect_pair(plan: Plan, options: dict[str, Any]) -> None:
    pair: Pair = _measured(lambda bar: collect_pair(plan, options["against"], bar))
    output = options["output"]
    beside = None if output is None else output.with_name(f"baseline-{output.name}")
    # The baseline first: the candidate is judged by it.
    baseline = keep_whatever(pair.baseline, output=beside, url=options["url"], say=_say)
    candidate = keep_whatever(pair.candidate, output=output, url=options["url"], say=_say)
    if options["output_format"] == "json":
        click.echo(json.dumps(pair_json(pair, candidate.verdicts), indent=2, allow_nan=False))
    else:
        click.echo(pair_text(pair, candidate.verdicts))
    _tell(pair.candidate, candidate, options)
    _exit_by(pair.candidate, [baseline, candidate], options)


def _measured(measure: Callable[[Bar], Measured]) -> Measured:
    """What was measured, with a progress bar; a reason not to have measured ends the command."""
    bar = Bar(Interrupts())
    try:
        return measure(bar)
    except (CollectorError, StoreError) as error:
        give_up(error)
    except KeyboardInterrupt:
        click.echo("interrupted before the first window was finished: nothing was kept", err=True)
        sys.exit(EXIT_INTERRUPTED)
    finally:
        bar.close()


def _say(text: str) -> None:
    click.echo(text, err=True)


def _tell(run: Run, kept: Kept, options: dict[str, Any]) -> None:
    """Have people told of what was judged, where the configuration asks for it."""
    if kept.verdicts is not None:
        configuration = load_configuration(options["config"], start=options["repo"])
        for line in tell(run.header.run_id, options["url"] or DEFAULT_URL, configuration):
            _say(line)


def _exit_by(run: Run, kept: list[Kept], options: dict[str, Any]) -> None:
    """Say what went wrong, and leave with the exit code that tells what happened."""
    problems = [each.problem for each in kept if each.problem is not None]
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if run.header.interrupted:
        click.echo(
            "interrupted: the windows measured so far are kept, and the run is marked as interrupted",
            err=True,
        )
        sys.exit(EXIT_INTERRUPTED)
    if problems:
        sys.exit(EXIT_NOTHING)
    if all(SENTINEL_TAG in measurement.tags for measurement in run.measurements):
        click.echo("Error: no benchmark of the suite gave a number", err=True)
        sys.exit(EXIT_NOTHING)
    verdicts = kept[-1].verdicts or ()
    confirmed = any(v.standing is Standing.CONFIRMED and v.outcome is Outcome.REGRESSED for v in verdicts)
    if options["fail_on"] == "regression" and confirmed:
        sys.exit(EXIT_REGRESSION)


def main() -> None:
    """The console command."""
    collect(prog_name="collect")
