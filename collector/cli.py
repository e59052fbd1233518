"""The command ``collect``: parse, measure, remember, have it judged, print."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from collector.doctor import doctor
from collector.errors import CollectorError
from collector.keeping import Kept, keep
from collector.listing import list_cases
from collector.report import run_json, run_text
from collector.run import PASSES, PASSES_QUICK, Plan, Watcher, collect_run
from collector.session import SENTINEL_TAG
from store.database import DEFAULT_URL
from store.errors import StoreError
from store.records import ClockRegime, Standing, Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from click._termui_impl import ProgressBar

    from collector.session import CaseInfo
    from store.records import Run

EXIT_REGRESSION = 1
EXIT_NOTHING = 3
EXIT_INTERRUPTED = 130


class NothingMeasured(click.ClickException):
    """Ends the command with the exit code for a run that gave nothing."""

    exit_code = EXIT_NOTHING


class Interrupts:
    """Ctrl-C and a request to terminate: the first ends the measuring, and none the keeping."""

    def __init__(self) -> None:
        self._measuring = True
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def end_of_measuring(self) -> None:
        """From here on an interrupt would only lose what was measured."""
        self._measuring = False

    def _receive(self, number: int, frame: object) -> None:
        del number, frame
        if self._measuring:
            self._measuring = False
            raise KeyboardInterrupt
        click.echo("keeping what was measured; this takes a moment", err=True)


class Bar(Watcher):
    """Draws the progress of a run on standard error, with the time left."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
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

    def measured(self) -> None:
        """What was measured is to be kept, whoever interrupts now."""
        self._interrupts.end_of_measuring()

    def note(self, text: str) -> None:
        """Say it at once."""
        click.echo(text, err=True)

    def close(self) -> None:
        """End the line of the bar."""
        self._stack.close()


_CHOOSING = (  # options of every command that looks at a suite
    click.option(
        "--commit",
        "revision",
        default="HEAD",
        show_default=True,
        help="Revision to measure. HEAD is this checkout, changes included.",
    ),
    click.option(
        "--repo",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        help="Checkout of the code to measure.  [default: .]",
    ),
    click.option(
        "--suite",
        "suites",
        multiple=True,
        help="Suite file, or folder of them; may be repeated.  [default: the built-in suite]",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="GLOB",
        help="Measure benchmarks whose name or label matches; may be repeated.",
    ),
    click.option(
        "--timer",
        type=click.Choice([t.value for t in Timer]),
        default=None,
        help="[default: cupti on a GPU, wall without one]",
    ),
    click.option(
        "--python", default=sys.executable, help="Interpreter of the code under test.  [default: this one]"
    ),
    click.option(
        "--gpu",
        default=None,
        metavar="INDEX-OR-UUID",
        help="GPU to measure on.  [default: the first visible]",
    ),
    click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="What stdout holds: a table, or JSON for programs.",
    ),
)


def _choosing(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_CHOOSING):
        command = option(command)
    return command


@click.group(invoke_without_command=True, context_settings={"auto_envvar_prefix": "KERNELWATCH_COLLECT"})
@_choosing
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
@_choosing
@click.pass_context
def list_command(context: click.Context, /, **own: Any) -> None:
    """Show the benchmark cases that would be measured, and what cannot be.

    Exit codes: 0 fine, 2 usage, 3 something could not be loaded.
    """
    given = {
        name: value
        for name, value in own.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    options = context.obj | given  # an option may stand before `list` or after it
    try:
        text, failed = list_cases(_plan(options), as_json=options["output_format"] == "json")
    except (CollectorError, StoreError) as error:
        _give_up(error)
    click.echo(text)
    if failed:
        sys.exit(EXIT_NOTHING)


collect.add_command(doctor)


def _collect(options: dict[str, Any]) -> None:
    plan = _plan(options)
    if options["fail_on"] is not None and options["output"] is not None and options["url"] is None:
        raise click.UsageError(
            "--fail-on needs a store to judge by: add --store, or judge where it is imported"
        )
    bar = Bar(Interrupts())
    try:
        run = collect_run(plan, bar)
    except (CollectorError, StoreError) as error:
        _give_up(error)
    except KeyboardInterrupt:
        click.echo("interrupted before the first window was finished: nothing was kept", err=True)
        sys.exit(EXIT_INTERRUPTED)
    finally:
        bar.close()
    try:
        kept = keep(run, output=options["output"], url=options["url"], say=bar.note)
    except StoreError as error:
        kept = Kept(problem=f"{error}\nThe run could be kept nowhere: what is printed is all there is of it.")
    if options["output_format"] == "json":
        click.echo(json.dumps(run_json(run, kept.verdicts), indent=2, allow_nan=False))
    else:
        click.echo(run_text(run, kept.verdicts))
    if kept.problem is not None:
        click.echo(f"Error: {kept.problem}", err=True)
    _exit_by(run, kept, options)


def _exit_by(run: Run, kept: Kept, options: dict[str, Any]) -> None:
    """Leave with the exit code that tells what happened."""
    if run.header.interrupted:
        click.echo(
            "interrupted: the windows measured so far are kept, and the run is marked as interrupted",
            err=True,
        )
        sys.exit(EXIT_INTERRUPTED)
    if kept.problem is not None:
        sys.exit(EXIT_NOTHING)
    if all(SENTINEL_TAG in measurement.tags for measurement in run.measurements):
        click.echo("Error: no benchmark of the suite gave a number", err=True)
        sys.exit(EXIT_NOTHING)
    confirmed = any(v.standing is Standing.CONFIRMED and (v.effect or 0) > 0 for v in kept.verdicts or ())
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


def _give_up(error: Exception) -> NoReturn:
    raise NothingMeasured(str(error)) from error


def main() -> None:
    """The console command."""
    collect(prog_name="collect")
