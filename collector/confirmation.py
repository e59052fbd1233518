"""Which flags of a run are worth a second session, how to ask for it, and what came of it: pure."""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.implementations import workload
from collector.loaded import SENTINEL_TAG
from store import shown
from store.records import Outcome, Quantity, Standing
from store.sessions import both_sessions, short_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.keeping import Kept
    from collector.run import Plan
    from store.records import Case, Run, Verdict

BENCHMARKS_MAX = 10
MINUTES_MAX = 10.0


@dataclass(frozen=True)
class Chosen:
    """Flagged benchmark cases, the worst first.

    Attributes:
        again: those to measure again.
        beyond: those that stay flagged, because no more than so many are measured again.
    """

    again: tuple[Case, ...]
    beyond: tuple[Case, ...]


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What became of the flags of a run.

    Attributes:
        again: the second session's run; None where it gave nothing.
        verdicts: on the first run, as they stand now.
        kept: what became of the runs of the second session, that of a baseline first.
        judged: verdicts on the second session's run; None where it was not judged.
        missing: why there is no second session, or only a part of it; None where it is whole.
        interrupted: a person ended it.
        repeatable: a later session may settle it; none ever does for code that is in no commit.
    """

    first_run_id: str
    chosen: Chosen
    verdicts: Sequence[Verdict]
    again: Run | None = None
    kept: tuple[Kept, ...] = ()
    judged: Sequence[Verdict] | None = None
    missing: str | None = None
    interrupted: bool = False
    repeatable: bool = True


def choose(first: Run, verdicts: Iterable[Verdict], *, limit: int) -> Chosen:
    """The cases that a run flagged and no other session has settled.

    Regressions come before improvements, large ones before small ones.

    Args:
        first: the run; its sentinels are measured in any case, and are none of them.
        verdicts: on the run.
        limit: at most so many are measured again.
    """
    sentinels = {m.case for m in first.measurements if SENTINEL_TAG in m.tags}
    flagged = [
        verdict
        for verdict in verdicts
        if verdict.standing is Standing.FLAGGED and verdict.series.case not in sentinels
    ]
    flagged.sort(key=_worst_first)
    cases = tuple(dict.fromkeys(verdict.series.case for verdict in flagged))
    return Chosen(again=cases[:limit], beyond=cases[limit:])


def plan_again(plan: Plan, revision: str, first: Run, cases: Iterable[Case]) -> Plan:
    """The same measurement of some cases alone: same suites, same passes, another order.

    Args:
        plan: how the first session was measured.
        revision: what is its code now; a branch may have moved.
        first: its run.
        cases: those to measure again.
    """
    return replace(
        plan,
        revision=revision,
        only=tuple(glob.escape(case.label) for case in _measured_cases(first, cases)),
        seed=None if plan.seed is None else plan.seed + 1,
        traces=None,
    )


def confirmation_text(confirmation: Confirmation) -> str:
    """What a person reads below the table of the first run."""
    again = confirmation.again
    lines = []
    if again is not None:
        seconds = (again.header.ended_at - again.header.started_at).total_seconds()
        run = short_run(again.header.run_id)
        lines.append(f"Measured again in a fresh session (run {run}, {seconds:.0f} s):")
        lines += [f"  {line}" for line in _settled(confirmation)]
    if confirmation.missing is not None:
        lines.append(confirmation.missing)
        if confirmation.repeatable:
            run = short_run(confirmation.first_run_id)
            lines.append(f"`collect --confirm-run {run}` measures what is flagged again.")
        if again is None:
            lines += _names("Stay flagged", confirmation.chosen.again)
    lines += _names("Stay flagged, for there are more than --confirm-benchmarks", confirmation.chosen.beyond)
    return "\n".join(lines)


def confirmation_json(confirmation: Confirmation) -> dict[str, Any]:
    """The same for programs; both effects stand in each verdict of the first run."""
    again = confirmation.again
    return {
        "run_id": None if again is None else again.header.run_id,
        "confirms_run_id": confirmation.first_run_id,
        "measured_again": [case.label for case in confirmation.chosen.again],
        "beyond_the_limit": [case.label for case in confirmation.chosen.beyond],
        "missing": confirmation.missing,
        "interrupted": confirmation.interrupted,
    }


def _worst_first(verdict: Verdict) -> tuple[bool, float, str]:
    return verdict.outcome is not Outcome.REGRESSED, -abs(verdict.effect or 0.0), verdict.series.case.label


def _measured_cases(first: Run, cases: Iterable[Case]) -> list[Case]:
    """The cases to run. Implementations of one workload are measured in turn, so all or none of them."""
    asked = {_workload(case) for case in cases}
    return [
        m.case
        for m in first.measurements
        if m.quantity is not Quantity.RATIO and _workload(m.case) in asked and SENTINEL_TAG not in m.tags
    ]


def _workload(case: Case) -> object:
    key = f"{case.benchmark} {case.parameters_json}"
    return workload(case.benchmark, dict(case.parameters), key)


def _settled(confirmation: Confirmation) -> Iterable[str]:
    """A line for each flag, the worst first; where the first run was judged elsewhere, for each case."""
    asked = set(confirmation.chosen.again)
    flags = [
        verdict
        for verdict in sorted(confirmation.verdicts, key=_worst_first)
        if verdict.series.case in asked and verdict.outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
    ]
    for verdict in flags:
        said = both_sessions(verdict) or f"no number in the second session: {verdict.standing}"
        yield f"{shown.one_line(verdict.series.case.label)}: {said}"
    for case in sorted(asked - {verdict.series.case for verdict in flags}, key=lambda case: case.label):
        yield f"{shown.one_line(case.label)}: no flag of the first run is stored here to be settled"


def _names(title: str, cases: Sequence[Case]) -> list[str]:
    if not cases:
        return []
    return [f"{title} ({len(cases)}): {', '.join(shown.one_line(case.label) for case in cases)}"]
