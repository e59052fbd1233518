"""The command ``collect``: parse, measure, remember, have it judged, print."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from collector.errors import CollectorError
from collector.listing import list_cases
from collector.report import run_json, run_text
from collector.run import PASSES, PASSES_QUICK, Plan, Watcher, collect_run
from store.bundle import write_bundle
from store.database import DEFAULT_URL, Database
from store.errors import StoreError
from store.records import ClockRegime, Run, Standing, Timer, Verdict
from store.runs import save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from collector.session import CaseInfo

EXIT_REGRESSION = 1
EXIT_NOTHING = 3
EXIT_INTERRUPTED = 130
_JUDGE_LIMIT_S = 300


class NothingMeasured(click.ClickException):
    """Ends the command with the exit code for a run that gave nothing."""

    exit_code = EXIT_NOTHING


class Bar(Watcher):
    """Draws the progress of a run on standard error, with the time left."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bar: ProgressBar[int] | None = None

    def started(self, cases: int, passes: int) -> None:
        """Begin the bar."""
        click.echo(f"measuring {cases} benchmark cases in {passes} passes", err=True)
        bar: ProgressBar[int] = click.progressbar(
            length=cases * passes, label="windows", file=sys.stderr, show_eta=True, show_pos=True
        )
        self._bar = self._stack.enter_context(bar)

    def window_done(self, case: CaseInfo) -> None:
        """One step further; a case that failed takes no further part, so its steps come at the end."""
        del case
        if self._bar is not None:
            self._bar.update(1)

    def note(self, text: str) -> None:
        """Say it at once."""
        click.echo(text, err=True)

    def close(self) -> None:
        """End the line of the bar."""
        self._stack.close()


@click.group(invoke_without_command=True, context_settings={"auto_envvar_prefix": "KERNELWATCH_COLLECT"})
@click.option(
    "--commit",
    "revision",
    default="HEAD",
    show_default=True,
    help="Revision to measure. HEAD is this checkout, changes included.",
)
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Checkout of the code to measure.  [default: .]",
)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    help="Suite file, or folder of them; may be repeated.  [default: the built-in suite]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Measure benchmarks whose name or label matches; may be repeated.",
)
@click.option(
    "--store",
    "url",
    default=None,
    envvar="KERNELWATCH_STORE",
    help=f"Store to write to.  [default: {DEFAULT_URL}]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the run as a bundle; then the store is written only if --store is given too.",
)
@click.option(
    "--passes",
    type=click.IntRange(1, 1000),
    default=None,
    help=f"Fresh processes, one window a benchmark in each.  [default: {PASSES}]",
)
@click.option("--quick", is_flag=True, help=f"{PASSES_QUICK} passes: provisional intervals.")
@click.option(
    "--timer",
    type=click.Choice([t.value for t in Timer]),
    default=None,
    help="[default: cupti on a GPU, wall without one]",
)
@click.option(
    "--clocks",
    type=click.Choice([c.value for c in ClockRegime]),
    default="held",
    show_default=True,
    help="What to do about the clocks.",
)
@click.option(
    "--clock-mhz",
    type=click.IntRange(min=1),
    default=None,
    metavar="MHZ",
    help="SM clock to lock (needed with --clocks locked) or to find locked (with --clocks verify).",
)
@click.option(
    "--power-limit",
    "power_limit_w",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    metavar="WATTS",
    help="Power limit while the clock is locked.  [default: as it is]",
)
@click.option(
    "--python", default=sys.executable, help="Interpreter of the code under test.  [default: this one]"
)
@click.option(
    "--gpu", default=None, metavar="INDEX-OR-UUID", help="GPU to measure on.  [default: the first visible]"
)
@click.option(
    "--base",
    "base_ref",
    default=None,
    metavar="REF",
    help="Branch to be judged against.  [default: the default branch]",
)
@click.option(
    "--seed", type=int, default=None, help="Seed of the shuffled order.  [default: drawn and recorded]"
)
@click.option(
    "--traces",
    type=click.Path(file_okay=False),
    default=None,
    metavar="DIR",
    help="Keep the raw CUPTI records of the first pass.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What stdout holds: a table, or JSON for programs.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    default=None,
    help="Exit with 1 on a confirmed regression.",
)
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
@click.pass_obj
def list_command(options: dict[str, Any]) -> None:
    """Show the benchmark cases that would be measured, and what cannot be."""
    try:
        text, failed = list_cases(_plan(options), as_json=options["output_format"] == "json")
    except (CollectorError, StoreError) as error:
        _give_up(error)
    click.echo(text)
    if failed:
        sys.exit(EXIT_NOTHING)


def _collect(options: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, _as_interrupt)
    bar = Bar()
    try:
        run = collect_run(_plan(options), bar)
    except (CollectorError, StoreError) as error:
        bar.close()
        _give_up(error)
    bar.close()
    verdicts = _remember(run, options)
    if options["output_format"] == "json":
        click.echo(json.dumps(run_json(run, verdicts), indent=2, allow_nan=False))
    else:
        click.echo(run_text(run, verdicts))
    if run.header.interrupted:
        click.echo(
            "interrupted: the windows measured so far are kept, and the run is marked as interrupted",
            err=True,
        )
        sys.exit(EXIT_INTERRUPTED)
    confirmed = any(v.standing is Standing.CONFIRMED and (v.effect or 0) > 0 for v in verdicts or ())
    if options["fail_on"] == "regression" and confirmed:
        sys.exit(EXIT_REGRESSION)


def _plan(options: dict[str, Any]) -> Plan:
    if options["quick"] and options["passes"] is not None:
        raise click.UsageError("--quick is --passes 3: give one of the two")
    _check_clock_options(options)
    return Plan(
        repository=options["repo"],
        revision=options["revision"],
        suites=tuple(options["suites"]),
        only=tuple(options["only"]),
        passes=PASSES_QUICK if options["quick"] else options["passes"] or PASSES,
        timer=options["timer"] or "auto",
        clocks=ClockRegime(options["clocks"]),
        clock_mhz=options["clock_mhz"],
        power_limit_w=options["power_limit_w"],
        python=options["python"],
        gpu=options["gpu"],
        base_ref=options["base_ref"],
        seed=options["seed"],
        traces=options["traces"],
    )


def _check_clock_options(options: dict[str, Any]) -> None:
    regime, mhz = ClockRegime(options["clocks"]), options["clock_mhz"]
    if regime is ClockRegime.LOCKED and mhz is None:
        raise click.UsageError(
            "--clocks locked needs to know the clock: add --clock-mhz MHZ "
            "(`nvidia-smi -q -d SUPPORTED_CLOCKS` lists those the GPU has)"
        )
    if mhz is not None and regime not in (ClockRegime.LOCKED, ClockRegime.VERIFY):
        raise click.UsageError(
            f"--clock-mhz has no meaning with --clocks {regime}: add --clocks locked or --clocks verify"
        )
    if options["power_limit_w"] is not None and regime is not ClockRegime.LOCKED:
        raise click.UsageError(
            f"--power-limit has no meaning with --clocks {regime}: add --clocks locked and --clock-mhz"
        )


def _remember(run: Run, options: dict[str, Any]) -> list[Verdict] | None:
    """Write the bundle and the store as asked; returns the verdicts, or None without a store."""
    output, url = options["output"], options["url"]
    if output is not None:
        write_bundle(run, output)
        click.echo(f"wrote {output}", err=True)
        if url is None:
            return None
    database = Database(url or DEFAULT_URL)
    try:
        save_run(database, run)
    except StoreError as error:
        rescue = Path(f"kernelwatch-{run.header.run_id}.kwrun")
        write_bundle(run, rescue)
        raise click.ClickException(
            f"{error}\nThe run is not lost: it lies in {rescue}; `store import {rescue}` takes it in."
        ) from error
    click.echo(f"stored run {run.header.run_id} in {database.url}", err=True)
    _judge(run.header.run_id, database.url)
    return load_verdicts(database, run_ids=[run.header.run_id])


def _judge(run_id: str, url: str) -> None:
    """Have the run judged. Rooms meet in the store: alerts is asked by its command, not imported."""
    command = [sys.executable, "-m", "alerts", "judge", "--run", run_id, "--store", url, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_JUDGE_LIMIT_S, check=False)
    if done.returncode not in (0, EXIT_NOTHING):
        click.echo(f"the run is stored but could not be judged: {done.stderr.strip()}", err=True)


def _as_interrupt(signal_number: int, frame: object) -> NoReturn:
    del signal_number, frame
    raise KeyboardInterrupt


def _give_up(error: Exception) -> NoReturn:
    raise NothingMeasured(str(error)) from error


def main() -> None:
    """The console command."""
    collect(prog_name="collect")
