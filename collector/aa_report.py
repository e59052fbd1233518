"""An A/A study as a person reads it in a terminal, and as a program reads it: pure text."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collector.aa_analysis import POWER
from collector.tables import aligned
from store import shown
from store.comparing import POOL_RUNS_MIN
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.studies import AaResult, AaStudy

_COLUMNS = ("benchmark", "median", "run to run", "windows", "runs", "apart", "smallest seen")
_POOL_COLUMNS = ("pool", "pool sees")
_TIER = "tier"
_USABLE = 3.0  # a slowdown beyond this is no sensitivity worth a number


def study_text(study: AaStudy) -> str:
    """A table by benchmark, then what it means in sentences."""
    commits = ", ".join(map(shown.short, study.commit_shas)) or "code in no commit"
    title = (
        f"A/A: {shown.count(len(study.run_ids), 'run')} of {shown.one_line(study.repository)} at {commits} "
        f"on {', '.join(map(shown.one_line, study.gpu_uuids))}"
    )
    pools = study.pool_runs > 0
    columns = (*_COLUMNS, *(_POOL_COLUMNS if pools else ()), _TIER)
    rows = [_row(result, pools=pools) for result in study.results]
    table = aligned(columns, rows, right=frozenset(columns[1:-1]))
    return "\n".join([title, "", *table, "", *_sentences(study)])


def _row(result: AaResult, *, pools: bool) -> tuple[str, ...]:
    return (
        shown.one_line(result.series.case.label),
        shown.amount(result.center_ms, result.series.quantity),
        shown.size(result.run_sd),
        shown.size(result.window_sd),
        str(result.runs),
        f"{result.pairs_flagged} of {result.pairs}",
        _seen(result.smallest_seen),
        *(_pool_cells(result) if pools else ()),
        result.tier.value,
    )


def _pool_cells(result: AaResult) -> tuple[str, str]:
    if result.pool_smallest_seen is None:
        return "", ""
    return f"{result.pool_flagged} of {result.pool_runs}", _seen(result.pool_smallest_seen)


def _seen(slowdown: float) -> str:
    """The smallest slowdown seen; runs that lie apart by themselves would show any."""
    if slowdown <= 0:
        return "any"
    return shown.share(slowdown) if slowdown <= _USABLE else f"over {shown.share(_USABLE)}"


def _sentences(study: AaStudy) -> Iterator[str]:
    share = study.false_alarms
    yield (
        f"{study.pairs_flagged} of {study.pairs} pairs of runs lie apart"
        f"{'' if share is None else f' ({shown.size(share)})'}: how often a flag against a single run "
        "would have been a false alarm."
    )
    seen = [result.smallest_seen for result in study.results]
    half, every = _seen(statistics.median_high(seen)), _seen(max(seen))
    yield (
        f"{100 * POWER:.0f} % of the pairs would have shown a slowdown of {half} in half of the benchmarks, "
        f"and one of {every} in all of them."
    )
    if study.pool_runs:
        yield (
            f"Against the pool of the other runs {study.pool_flagged} of {study.pool_runs} would have been "
            f"flagged ({shown.size(study.pool_flagged / study.pool_runs)})."
        )
    else:
        yield f"Too few runs for a pool of the others: it takes {POOL_RUNS_MIN} beside the one judged."
    yield f"{study.seconds:.0f} s in all, {study.seconds_per_case:.2f} s a benchmark and run."
    yield from _time_sentence(study)
    if len(study.commit_shas) > 1:
        yield "The runs are of several commits: what differs may be the code."
    weak = sum(result.tier is Tier.C for result in study.results)
    if weak:
        yield f"{shown.count(weak, 'benchmark')} of tier C: a run of them gets no verdict."
    if study.left_out:
        named = ", ".join(map(shown.one_line, study.left_out))
        yield f"Left out, with an interval in fewer than two runs: {named}."


def _time_sentence(study: AaStudy) -> Iterator[str]:
    spent, idle = study.wall_time, study.idle_share
    if spent is None or idle is None:
        return
    outside = idle * study.seconds - spent.warm_up_s - spent.loop_s - spent.reading_s - spent.setup_s
    parts = (
        (spent.setup_s, "set-up"), (spent.warm_up_s, "warm-up"), (spent.loop_s, "loops beside the calls"),
        (spent.reading_s, "reading records"), (outside, "outside windows"),
    )  # fmt: skip
    shares = ", ".join(f"{words} {shown.size(seconds / study.seconds)}" for seconds, words in parts)
    calls, pauses = shown.size(spent.calls_s / study.seconds), shown.size(spent.pauses_s / study.seconds)
    yield (
        f"The device was at the calls for {calls} of that time, and at the pauses they need for {pauses}; "
        f"at neither for {shown.size(idle)}: {shares}."
    )


def study_json(study: AaStudy) -> dict[str, Any]:
    """The study as JSON values: times in milliseconds unless the name says seconds, spreads as shares."""
    return {
        "study_id": study.study_id,
        "repository": study.repository,
        "commits": list(study.commit_shas),
        "gpu_uuids": list(study.gpu_uuids),
        "run_ids": list(study.run_ids),
        "pairs": study.pairs,
        "pairs_flagged": study.pairs_flagged,
        "false_alarms": study.false_alarms,
        "pool_runs": study.pool_runs,
        "pool_flagged": study.pool_flagged,
        "seconds": study.seconds,
        "seconds_per_case": study.seconds_per_case,
        "idle_share": study.idle_share,
        "wall_time": None if study.wall_time is None else asdict(study.wall_time),
        "left_out": list(study.left_out),
        "tool_version": study.tool_version,
        "analysed_at": study.analysed_at.isoformat(),
        "results": [_result_json(result) for result in study.results],
    }


def _result_json(result: AaResult) -> dict[str, Any]:
    return {
        "series": result.series.id,
        "benchmark": result.series.case.label,
        "name": result.series.case.benchmark,
        "parameters": dict(result.series.case.parameters),
        "quantity": result.series.quantity.value,
        "tier": result.tier.value,
        "runs": result.runs,
        "center_ms": result.center_ms,
        "run_sd": result.run_sd,
        "window_sd": result.window_sd,
        "pairs": result.pairs,
        "pairs_flagged": result.pairs_flagged,
        "smallest_seen": result.smallest_seen,
        "pool_runs": result.pool_runs,
        "pool_flagged": result.pool_flagged,
        "pool_smallest_seen": result.pool_smallest_seen,
    }
