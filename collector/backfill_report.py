"""A backfill as a person reads it in a terminal, and as a program reads it: pure text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from collector.attempts import has_number
from collector.loaded import SENTINEL_TAG
from collector.tables import aligned
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from collector.attempts import Machine
    from collector.backfill import Backfilled, Outlook
    from store.records import Commit, Run, Verdict

_SUBJECT_LIMIT = 60
_REASON_LIMIT = 200


def outlook_text(outlook: Outlook, machine: Machine, origins: Iterable[str]) -> str:
    """What would be measured, in that order.

    Args:
        outlook: what there is to do.
        machine: where.
        origins: where the suites come from, for each commit to measure.
    """
    rows = [
        (shown.short(commit.sha), origin, shown.one_line(commit.subject, limit=_SUBJECT_LIMIT))
        for commit, origin in zip(outlook.todo, origins, strict=True)
    ]
    table = ["", *aligned(("commit", "measured with", "subject"), rows)] if rows else []
    return "\n".join([summary(outlook, machine), *table])


def outlook_json(outlook: Outlook, machine: Machine, origins: Iterable[str]) -> dict[str, Any]:
    """The same for programs."""
    return {
        **_scope_json(outlook, machine),
        "to_measure": [
            {"commit": commit.sha, "measured_with": origin, "subject": commit.subject}
            for commit, origin in zip(outlook.todo, origins, strict=True)
        ],
    }


def summary(outlook: Outlook, machine: Machine) -> str:
    """How many commits there are, and what became of them so far."""
    return (
        f"{shown.count(len(outlook.commits), 'commit')} on {shown.one_line(machine.gpu_name)}, "
        f"timer {machine.timer}, {machine.clock_regime} clocks: {len(outlook.measured)} measured before, "
        f"{len(outlook.failed)} failed before, {len(outlook.todo)} to measure"
    )


def backfill_text(
    outlook: Outlook, machine: Machine, done: Backfilled, verdicts: Mapping[str, Sequence[Verdict]]
) -> str:
    """What was measured, oldest commit first, and what is left.

    Args:
        outlook: what there was to do.
        machine: where it was done.
        done: what was done.
        verdicts: by run.
    """
    rows = [
        (
            shown.short(commit.sha),
            shown.one_line(commit.subject, limit=_SUBJECT_LIMIT),
            _state(run, verdicts.get(run.header.run_id, ())),
        )
        for commit, run in _in_order(outlook, done)
    ]
    table = ["", *aligned(("commit", "subject", "verdicts"), rows), ""] if rows else []
    return "\n".join([summary(outlook, machine), *table, *_end_lines(outlook, done)])


def _end_lines(outlook: Outlook, done: Backfilled) -> Iterator[str]:
    if done.elsewhere:
        yield f"{shown.count(len(done.elsewhere), 'commit')} measured meanwhile by another call"
    tried = {commit.sha: has_number(run) for commit, run in done.runs}
    failed = sum(not tried.get(sha, False) for sha in {*tried, *outlook.failed})
    left = len(_left(outlook, done))
    if left:
        yield f"{left} left to measure, ended by {done.ended.value}: call again to go on"
    elif failed:
        yield f"nothing is left to measure; --retry-failed tries the {failed} that failed again"
    else:
        yield "nothing is left to measure"


def backfill_json(
    outlook: Outlook, machine: Machine, done: Backfilled, verdicts: Mapping[str, Sequence[Verdict]]
) -> dict[str, Any]:
    """What was done, as JSON values; commits oldest first, those left in the order they would be measured."""
    return {
        **_scope_json(outlook, machine),
        "runs": [
            {
                "commit": commit.sha,
                "run_id": run.header.run_id,
                "measured": has_number(run),
                "failures": [f"{failure.kind}: {failure.message}" for failure in run.failures],
                "verdicts": dict(_counts(run, verdicts.get(run.header.run_id, ()))),
            }
            for commit, run in _in_order(outlook, done)
        ],
        "measured_elsewhere": [commit.sha for commit in done.elsewhere],
        "left": _left(outlook, done),
        "ended": done.ended.name.lower(),
        "error": None if done.error is None else str(done.error),
    }


def _scope_json(outlook: Outlook, machine: Machine) -> dict[str, Any]:
    return {
        "gpu_uuid": machine.gpu_uuid,
        "timer": machine.timer.value,
        "clock_regime": machine.clock_regime.value,
        "environment": machine.environment,
        "commits": [commit.sha for commit in outlook.commits],
        "measured_before": [c.sha for c in outlook.commits if c.sha in outlook.measured],
        "failed_before": [c.sha for c in outlook.commits if c.sha in outlook.failed],
    }


def _left(outlook: Outlook, done: Backfilled) -> list[str]:
    """Ids of the commits that are still to be measured, in that order."""
    finished = {commit.sha for commit in (*(commit for commit, _ in done.runs), *done.elsewhere)}
    return [commit.sha for commit in outlook.todo if commit.sha not in finished]


def _in_order(outlook: Outlook, done: Backfilled) -> list[tuple[Commit, Run]]:
    place = {commit.sha: index for index, commit in enumerate(outlook.commits)}
    return sorted(done.runs, key=lambda item: place[item[0].sha])


def _state(run: Run, verdicts: Sequence[Verdict]) -> str:
    if not has_number(run):
        first = next(iter(run.failures), None)
        reason = "no benchmark gave a number" if first is None else f"{first.kind}: {first.message}"
        return f"failed: {shown.one_line(reason, limit=_REASON_LIMIT)}"
    counted = ", ".join(f"{number} {outcome}" for outcome, number in _counts(run, verdicts))
    return counted or "not judged"


def _counts(run: Run, verdicts: Sequence[Verdict]) -> list[tuple[str, int]]:
    """Outcomes on benchmarks, with their numbers; the tool's own calls are none."""
    own = {m.case for m in run.measurements if SENTINEL_TAG in m.tags}
    return sorted(Counter(v.outcome.value for v in verdicts if v.series.case not in own).items())
