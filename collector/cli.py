"""The command ``collect``: parse, measure, remember, have it judged, print."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from collector.aa_command import aa
from collector.backfill_command import backfill
from collector.bisect_command import bisect
from collector.confirm_stored import choose_stored, load_first, plan_of_first, refuse_what_the_run_says
from collector.confirmation import confirmation_json, confirmation_text
from collector.confirming import Request, confirm, second_session, unconfirmed
from collector.doctor import doctor
from collector.errors import CollectorError
from collector.exits import EXIT_INTERRUPTED, EXIT_NOTHING, EXIT_REGRESSION, give_up
from collector.keeping import Kept, keep_whatever
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
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from collector.confirmation import Confirmation
    from collector.run import Plan
    from store.records import Run, Verdict

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
        _collect(context, options)


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


def _collect(context: click.Context, options: dict[str, Any]) -> None:
    if options["fail_on"] is not None and options["output"] is not None and options["url"] is None:
        raise click.UsageError(
            "--fail-on needs a store to judge by: add --store, or judge where it is imported"
        )
    if options["confirm_run"] is not None:
        refuse_what_the_run_says(context)
        _confirm_stored(options)
        return
    plan = plan_of(options)
    if options["against"] is None:
        _collect_run(plan, options)
    else:
        _collect_pair(plan, options)


def _collect_run(plan: Plan, options: dict[str, Any]) -> None:
    interrupts = Interrupts()
    run = _measured(lambda bar: collect_run(plan, bar), interrupts)
    kept = keep_whatever(run, output=options["output"], url=options["url"], say=_say)
    confirmation = _confirmed(run, kept, plan, options, interrupts)
    verdicts = kept.verdicts if confirmation is None else confirmation.verdicts
    _show(run_text(run, verdicts), run_json(run, verdicts), confirmation, options)
    _tell(run.header.run_id, kept.verdicts, options)
    _exit_by(run, [kept], verdicts, confirmation, options)


def _collect_pair(plan: Plan, options: dict[str, Any]) -> None:
    interrupts = Interrupts()
    pair: Pair = _measured(lambda bar: collect_pair(plan, options["against"], bar), interrupts)
    output = options["output"]
    beside = None if output is None else output.with_name(f"baseline-{output.name}")
    # The baseline first: the candidate is judged by it.
    baseline = keep_whatever(pair.baseline, output=beside, url=options["url"], say=_say)
    kept = keep_whatever(pair.candidate, output=output, url=options["url"], say=_say)
    against = pair.baseline.header.commit_sha
    confirmation = _confirmed(pair.candidate, kept, plan, options, interrupts, against=against)
    verdicts = kept.verdicts if confirmation is None else confirmation.verdicts
    _show(pair_text(pair, verdicts), pair_json(pair, verdicts), confirmation, options)
    _tell(pair.candidate.header.run_id, kept.verdicts, options)
    _exit_by(pair.candidate, [baseline, kept], verdicts, confirmation, options)


def _confirmed(
    run: Run,
    kept: Kept,
    plan: Plan,
    options: dict[str, Any],
    interrupts: Interrupts,
    *,
    against: str | None = None,
) -> Confirmation | None:
    """A second session for what was flagged, where that is wanted and can be."""
    if run.header.interrupted or kept.problem is not None:
        return None
    if kept.verdicts is None:
        _say(
            "not judged: without a store nothing can be flagged or confirmed. Once it is judged where it is "
            f"imported, `collect --confirm-run {options['output']} --only BENCHMARK` measures a flag again"
        )
        return None
    output = options["output"]
    request = _request(
        options,
        output=None if output is None else output.with_name(f"confirming-{output.name}"),
        against=against,
    )
    if options["confirm"] and not interrupts.asked:
        return confirm(run, kept.verdicts, plan, request)
    return unconfirmed(run, kept.verdicts, request, interrupted=interrupts.asked)


def _confirm_stored(options: dict[str, Any]) -> None:
    """``--confirm-run``: the second session alone."""
    try:
        stored = load_first(options)
        chosen = choose_stored(stored, options["only"], limit=options["confirm_benchmarks"])
        plan = plan_of_first(plan_of(options), stored.run)
    except (CollectorError, StoreError) as error:
        give_up(error)
    request = _request(options, output=options["output"], against=stored.against)
    confirmation = second_session(stored.run, chosen, stored.verdicts, plan, request)
    again = confirmation.again or stored.run
    judged = confirmation.judged if confirmation.again is not None else confirmation.verdicts
    _show(run_text(again, judged), run_json(again, judged), confirmation, options)
    _tell(stored.run.header.run_id, confirmation.judged, options)
    _exit_by(again, [Kept()], confirmation.verdicts, confirmation, options)


def _request(options: dict[str, Any], *, output: Path | None, against: str | None) -> Request:
    return Request(
        benchmarks=options["confirm_benchmarks"],
        minutes=options["confirm_minutes"],
        against=against,
        output=output,
        url=options["url"],
        say=_say,
    )


def _show(
    text: str, document: dict[str, Any], confirmation: Confirmation | None, options: dict[str, Any]
) -> None:
    if options["output_format"] == "json":
        told = None if confirmation is None else confirmation_json(confirmation)
        click.echo(json.dumps(document | {"confirmation": told}, indent=2, allow_nan=False))
        return
    click.echo(text if confirmation is None else f"{text}\n\n{confirmation_text(confirmation)}")


def _measured(measure: Callable[[Bar], Measured], interrupts: Interrupts) -> Measured:
    """What was measured, with a progress bar; a reason not to have measured ends the command."""
    bar = Bar(interrupts)
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


def _tell(run_id: str, judged: Sequence[Verdict] | None, options: dict[str, Any]) -> None:
    """Have people told of what was judged, where the configuration asks for it."""
    if judged is not None:
        configuration = load_configuration(options["config"], start=options["repo"])
        for line in tell(run_id, options["url"] or DEFAULT_URL, configuration):
            _say(line)


def _exit_by(
    run: Run,
    kept: Sequence[Kept],
    verdicts: Sequence[Verdict] | None,
    confirmation: Confirmation | None,
    options: dict[str, Any],
) -> None:
    """Say what went wrong, and leave with the exit code that tells what happened."""
    again = () if confirmation is None else confirmation.kept
    problems = [each.problem for each in (*kept, *again) if each.problem is not None]
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if confirmation is not None and confirmation.interrupted:
        click.echo("interrupted: the first session is kept, the second is missing in part or whole", err=True)
        sys.exit(EXIT_INTERRUPTED)
    if run.header.interrupted and confirmation is None:
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
    confirmed = any(
        v.standing is Standing.CONFIRMED and v.outcome is Outcome.REGRESSED for v in verdicts or ()
    )
    if options["fail_on"] == "regression" and confirmed:
        sys.exit(EXIT_REGRESSION)
    if options["fail_on"] is not None and kept[-1].unanswered is not None:
        click.echo(f"No pass: {kept[-1].unanswered}. What was not judged has not passed.", err=True)
        sys.exit(EXIT_NOTHING)


def main() -> None:
    """The console command."""
    collect(prog_name="collect")
