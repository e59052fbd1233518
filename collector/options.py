"""The options of ``collect``, shared by its commands, and the plan they come to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from collector.configuration import PASSES_MAX, configured
from collector.confirmation import BENCHMARKS_MAX, MINUTES_MAX
from collector.run import PASSES, PASSES_QUICK, Plan
from store.configuration import CONFIG_VARIABLE
from store.database import DEFAULT_URL
from store.errors import ConfigurationInvalid
from store.records import ClockRegime, Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]

_CHOOSING = (
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
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        default=None,
        envvar=CONFIG_VARIABLE,
        show_envvar=True,
        help="Configuration file.  [default: kernelwatch.toml or pyproject.toml, the nearest from --repo up]",
    ),
    click.option(
        "--suite",
        "suites",
        multiple=True,
        help="Suite file, or folder of them; may be repeated.  [default: the built-in suite]",
    ),
    click.option(
        "--suite-from",
        default=None,
        metavar="REV",
        help="Take suites inside the repository from this revision.  [default: from the measured one]",
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
_MEASURING = (
    click.option(
        "--store",
        "url",
        default=None,
        envvar="KERNELWATCH_STORE",
        help=f"Store to write to.  [default: {DEFAULT_URL}]",
    ),
    click.option(
        "--passes",
        type=click.IntRange(1, PASSES_MAX),
        default=None,
        help=f"Fresh processes, one window a benchmark in each.  [default: {PASSES}]",
    ),
    click.option("--quick", is_flag=True, help=f"{PASSES_QUICK} passes: provisional intervals."),
    click.option(
        "--clocks",
        type=click.Choice([c.value for c in ClockRegime]),
        default="held",
        show_default=True,
        help="What to do about the clocks.",
    ),
    click.option(
        "--clock-mhz",
        type=click.IntRange(min=1),
        default=None,
        metavar="MHZ",
        help="SM clock to lock (needed with --clocks locked) or to find locked (with --clocks verify).",
    ),
    click.option(
        "--power-limit",
        "power_limit_w",
        type=click.FloatRange(min=0, min_open=True),
        default=None,
        metavar="WATTS",
        help="Power limit while the clock is locked.  [default: as it is]",
    ),
    click.option(
        "--base",
        "base_ref",
        default=None,
        metavar="REF",
        help="Branch to be judged against.  [default: the default branch]",
    ),
    click.option(
        "--deepen",
        is_flag=True,
        help="Fetch the commits that a shallow clone lacks, and the base branch.",
    ),
    click.option(
        "--seed", type=int, default=None, help="Seed of the shuffled order.  [default: drawn and recorded]"
    ),
)
_RUN_ONLY = (
    click.option(
        "--against",
        default=None,
        metavar="REV",
        help="Measure this revision too, in turn with the other, and judge by the pairs of passes.",
    ),
    click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the run as a bundle; then the store is written only if --store is given too.",
    ),
    click.option(
        "--traces",
        type=click.Path(file_okay=False),
        default=None,
        metavar="DIR",
        help="Keep the raw CUPTI records of the first pass.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["regression"]),
        default=None,
        help="Exit with 1 on a confirmed regression, and with 3 where something was not judged.",
    ),
    click.option(
        "--confirm/--no-confirm",
        default=True,
        show_default=True,
        help="Measure what was flagged again, in a fresh session, which confirms or withdraws it.",
    ),
    click.option(
        "--confirm-benchmarks",
        type=click.IntRange(min=1),
        default=BENCHMARKS_MAX,
        show_default=True,
        metavar="N",
        help="Measure at most so many again, the worst first; the others stay flagged.",
    ),
    click.option(
        "--confirm-minutes",
        type=click.FloatRange(min=0, min_open=True, max=24 * 60),
        default=MINUTES_MAX,
        show_default=True,
        metavar="MINUTES",
        help="End the second session after so many minutes.",
    ),
    click.option(
        "--confirm-run",
        default=None,
        metavar="RUN",
        help="Measure only what this run flagged: the beginning of its id, or its bundle with --only.",
    ),
)


def choosing(command: Command) -> Command:
    """Options of every command that looks at a suite."""
    return _with(_CHOOSING, command)


def measuring(command: Command) -> Command:
    """Options of every command that measures."""
    return _with(_MEASURING, command)


def run_only(command: Command) -> Command:
    """Options that have a meaning for a single run alone."""
    return _with(_RUN_ONLY, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def merged(context: click.Context, own: dict[str, Any]) -> dict[str, Any]:
    """The options of ``collect`` and those of one of its commands: either place will do.

    Args:
        context: of the command; its object holds the options of ``collect``.
        own: the command's options, defaults included.
    """
    given = {
        name: value
        for name, value in own.items()
        if name not in context.obj or context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    options: dict[str, Any] = context.obj | given
    return options


def refuse_run_only(options: dict[str, Any], command: str, *, measures_named_commits: bool = False) -> None:
    """Refuse the options that have a meaning for a single run alone.

    Args:
        options: as merged.
        command: whose options they are, as a person would type it.
        measures_named_commits: it takes its commits as arguments, so that ``--commit`` says nothing.

    Raises:
        UsageError: one of them was given.
    """
    for name in ("output", "against", "traces", "fail_on", "confirm_run"):
        if options[name] is not None:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} has no meaning for `{command}`: leave it out")
    if measures_named_commits and options["revision"] != "HEAD":
        raise click.UsageError(f"--commit has no meaning for `{command}`: its arguments name the commits")


def plan_of(options: dict[str, Any]) -> Plan:
    """What the options ask for, and the configuration file where they are silent.

    Raises:
        UsageError: two of them contradict each other, or the file says what it may not.
    """
    try:
        options, tiers = configured(click.get_current_context(), options)
    except ConfigurationInvalid as error:
        raise click.UsageError(str(error)) from error
    if options["quick"] and options["passes"] is not None:
        raise click.UsageError("--quick is --passes 3: give one of the two")
    _check_clock_options(options)
    return Plan(
        repository=options["repo"],
        revision=options["revision"],
        suites=tuple(options["suites"]),
        suite_from=options["suite_from"],
        only=tuple(options["only"]),
        passes=PASSES_QUICK if options["quick"] else options["passes"] or PASSES,
        timer=options["timer"] or "auto",
        clocks=ClockRegime(options["clocks"]),
        clock_mhz=options["clock_mhz"],
        power_limit_w=options["power_limit_w"],
        python=options["python"],
        gpu=options["gpu"],
        base_ref=options["base_ref"],
        deepen=options["deepen"],
        seed=options["seed"],
        traces=options["traces"],
        tiers=tiers,
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
