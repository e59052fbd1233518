"""``collect --confirm-run``: a second session for a run that was measured, and judged, earlier."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from collector.checkout import top_folder
from collector.confirmation import Chosen, choose
from collector.errors import NothingMeasuredError
from collector.loaded import SENTINEL_TAG
from store.bundle import read_bundle
from store.database import DEFAULT_URL, Database
from store.records import PairedRole, Quantity, Run, Verdict
from store.runs import load_run
from store.sessions import short_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.run import Plan

_TAKEN_FROM_THE_RUN = (
    "revision", "suites", "passes", "quick", "timer", "clocks", "clock_mhz", "gpu", "traces",
)  # fmt: skip
_CLOCK_READING = "clocks.sm_mhz"
_BUILTIN = ("builtin",)


@dataclass(frozen=True)
class Stored:
    """A run that was measured earlier.

    Attributes:
        verdicts: on it; none where it lies in a bundle.
        against: the commit of its pair's baseline, or None where it is no pair.
    """

    run: Run
    verdicts: Sequence[Verdict]
    against: str | None


def refuse_what_the_run_says(context: click.Context) -> None:
    """A second session repeats the first, so its conditions cannot be chosen.

    Raises:
        UsageError: one of them was given.
    """
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is not ParameterSource.DEFAULT
        if parameter.name in _TAKEN_FROM_THE_RUN and given:
            raise click.UsageError(
                f"{parameter.opts[0]} has no meaning with --confirm-run: the second session repeats the first"
            )


def load_first(options: dict[str, Any]) -> Stored:
    """The run that ``--confirm-run`` names: a bundle, or a run of the store with its verdicts.

    Raises:
        StoreError: there is no such run, or it cannot be read.
        NothingMeasuredError: the baseline of its pair is not known.
    """
    named = options["confirm_run"]
    if Path(named).is_file():
        run = read_bundle(Path(named))
        beside = Path(named).with_name(f"baseline-{Path(named).name}")
        baseline = read_bundle(beside) if _is_pair(run) and beside.is_file() else None
        return Stored(run, (), _against(run, baseline, options["against"]))
    database = Database(options["url"] or DEFAULT_URL)
    run = load_run(database, named)
    baseline = load_run(database, run.header.paired_with or "") if _is_pair(run) else None
    verdicts = load_verdicts(database, run_ids=[run.header.run_id])
    return Stored(run, verdicts, _against(run, baseline, options["against"]))


def choose_stored(stored: Stored, only: Sequence[str], *, limit: int) -> Chosen:
    """The cases to measure again: what is flagged, or what ``--only`` names of the run.

    Raises:
        NothingMeasuredError: that is nothing.
    """
    run_id = short_run(stored.run.header.run_id)
    if only:
        cases = [
            m.case
            for m in stored.run.measurements
            if m.quantity is not Quantity.RATIO
            and SENTINEL_TAG not in m.tags
            and any(fnmatchcase(name, word) for name in (m.case.benchmark, m.case.label) for word in only)
        ]
        if not cases:
            raise NothingMeasuredError(f"run {run_id} has no benchmark that matches {', '.join(only)}")
        return Chosen(again=tuple(cases[:limit]), beyond=tuple(cases[limit:]))
    if not stored.verdicts:
        raise NothingMeasuredError(
            f"nobody has judged run {run_id} here: `alerts judge --run {run_id}` does, or name the flagged "
            "benchmarks with --only"
        )
    chosen = choose(stored.run, stored.verdicts, limit=limit)
    if not chosen.again:
        raise NothingMeasuredError(f"run {run_id} has no flag that waits for a second session")
    return chosen


def plan_of_first(plan: Plan, first: Run) -> Plan:
    """How the run was measured, as its header says it; interpreter and repository are the user's."""
    header = first.header
    clock = header.context.get(_CLOCK_READING)
    return replace(
        plan,
        revision="HEAD",  # as far as it still is the run's commit
        suites=() if header.suites == _BUILTIN else _from_here(header.suites, plan.repository),
        passes=header.passes,
        timer=header.timer.value,
        clocks=header.clock_regime,
        clock_mhz=clock.value if clock is not None and isinstance(clock.value, int) else None,
        gpu=None if header.gpu_uuid.startswith("cpu:") else header.gpu_uuid,
    )


def _from_here(suites: tuple[str, ...], repository: Path) -> tuple[str, ...]:
    """Paths from the top folder of the checkout, as one writes them in the current folder."""
    top = top_folder(repository)
    return tuple(os.path.relpath(top / suite) for suite in suites)


def _is_pair(run: Run) -> bool:
    return run.header.paired_role is PairedRole.CANDIDATE


def _against(run: Run, baseline: Run | None, asked: str | None) -> str | None:
    if not _is_pair(run):
        if asked is not None:
            raise NothingMeasuredError(
                f"run {short_run(run.header.run_id)} was measured by itself: --against has no meaning for it"
            )
        return None
    against = asked or (None if baseline is None else baseline.header.commit_sha)
    if against is None:
        raise NothingMeasuredError(
            f"run {short_run(run.header.run_id)} was one of a pair, and the other run is not here: name its "
            "commit with --against"
        )
    return against
