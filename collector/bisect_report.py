"""A bisection as a person reads it in a terminal, and as a program reads it: pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.bisect import Finding, Says
from collector.tables import aligned
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.bisect import Search, Step
    from store.records import Commit, SeriesKey, Verdict

_COLUMNS = ("commit", "beside", "passes", "change", "95 % interval", "says")
_RIGHT = frozenset({"passes", "change"})
_SUBJECT_LIMIT = 80
_REASON_LIMIT = 160


def bisect_text(search: Search, benchmark: str, *, study_id: str, into_merges: bool) -> str:
    """The answer first, then every comparison it rests on.

    Args:
        search: how it went.
        benchmark: label of what was followed; what was asked for where there is no change to follow.
        study_id: marks the runs in the store.
        into_merges: whether merged branches were to be searched too.
    """
    ends = f"from {shown.short(search.good.sha)} to {shown.short(search.line[-1].sha)}"
    parts = [
        f"{shown.one_line(benchmark)}, {ends} ({shown.count(len(search.line), 'commit')})",
        "",
        *_answer_lines(search),
        *_merge_lines(search, into_merges=into_merges),
        *_table(search),
    ]
    for inside in search.inside:
        named = (
            f"Inside the merge, from {shown.short(inside.good.sha)} to {shown.short(inside.line[-1].sha)}:"
        )
        parts += ["", named, "", *_answer_lines(inside), *_merge_lines(inside, into_merges=into_merges)]
        parts += _table(inside)
    return "\n".join([*parts, "", f"What was measured is kept; the study is {study_id}."])


def _table(search: Search) -> list[str]:
    rows = [_row(step) for step in search.steps]
    return ["", *aligned(_COLUMNS, rows, right=_RIGHT)] if rows else []


def _answer_lines(search: Search) -> Iterator[str]:
    whole = None if search.whole is None else search.whole.answer
    if search.finding is Finding.NO_CHANGE:
        yield "Good and bad do not differ here, so there is no commit to look for."
        yield _because(search.whole)
    elif search.finding is Finding.UNCLEAR:
        yield "Good and bad could not be compared, so no commit can be told."
        yield _because(search.whole)
    elif search.finding is Finding.INTERRUPTED:
        left = shown.count(len(search.candidates), "commit")
        yield f"Interrupted: if there is a change, it is one of {left}."
        yield "The same command goes on from here."
    elif search.finding is Finding.NARROWED:
        yield f"It is one of these {len(search.candidates)} commits; those between could not be measured:"
        yield from (f"  {_named(commit)}" for commit in search.candidates)
    else:
        yield f"First commit that shows it: {_named(search.candidates[0])}"
        yield f"  by {shown.one_line(search.candidates[0].author)}"
        yield f"  beside its parent: {_because(search.proof)}"
        yield f"  the whole range: {_because(search.whole)}"
    if search.finding is Finding.UNPROVEN:
        yield (
            "Beside its parent alone it does not show the change: there may be several small ones on the "
            "way, and this is where they became visible. More --passes see smaller ones."
        )
    if search.is_partial:
        commit, last = search.candidates[0], search.line[-1]
        yield "That is less than the whole: something else in the range did the rest. To look for it:"
        yield f"  collect bisect {shown.short(commit.sha)} {shown.short(last.sha)} ..."
        if commit.parents and commit.parents[0] != search.good.sha:
            yield f"  collect bisect {shown.short(search.good.sha)} {shown.short(commit.parents[0])} ..."
    if whole is not None and whole.others:
        named = ", ".join(map(shown.one_line, whole.others))
        yield f"It changed most and was followed; others changed too: {named}."


def _merge_lines(search: Search, *, into_merges: bool) -> Iterator[str]:
    commit = search.found
    if commit is None or len(commit.parents) < 2:  # noqa: PLR2004 - a merge
        return
    if not into_merges:
        yield "It is a merge: --into-merges goes on in the branch that it merged."
    elif not search.inside:
        yield "It is a merge, and what it merged is not known here."
    elif all(inside.finding is Finding.NO_CHANGE for inside in search.inside):
        yield "It is a merge, and the merged branch alone does not show the change: their combination does."


def _named(commit: Commit) -> str:
    return f"{shown.short(commit.sha)} {shown.one_line(commit.subject, limit=_SUBJECT_LIMIT)}"


def _because(step: Step | None) -> str:
    if step is None:
        return "it was not measured"
    verdict = step.answer.verdict
    if verdict is None:
        return shown.one_line(step.answer.reason or "it gave no number", limit=_REASON_LIMIT)
    return f"{verdict.outcome}, {shown.one_line(verdict.message)}"


def _row(step: Step) -> tuple[str, ...]:
    answer, verdict = step.answer, step.answer.verdict
    change = bounds = ""
    if verdict is not None and verdict.effect is not None:
        change = shown.change(verdict.effect)
    if verdict is not None and verdict.effect_low is not None and verdict.effect_high is not None:
        bounds = f"{shown.change(verdict.effect_low)} to {shown.change(verdict.effect_high)}"
    says = step.says.value
    if step.says in (Says.UNTESTABLE, Says.UNSURE):
        says += f": {_because(step)}"
    return (
        shown.short(answer.commit.sha),
        shown.short(answer.base.sha),
        str(answer.passes),
        change,
        bounds,
        says + (" (measured before)" if answer.reused else ""),
    )


def bisect_json(search: Search, series: SeriesKey | None, *, study_id: str) -> dict[str, Any]:
    """The search as JSON values; effects are shares, positive is slower."""
    return {
        "study_id": study_id,
        "series": None if series is None else series.id,
        "benchmark": None if series is None else series.case.label,
        **_search_json(search),
    }


def _search_json(search: Search) -> dict[str, Any]:
    found = search.found
    return {
        "finding": search.finding.value,
        "good": search.good.sha,
        "bad": search.line[-1].sha,
        "commit": None if found is None else _commit_json(found),
        "candidates": [commit.sha for commit in search.candidates],
        "partial": search.is_partial,
        "whole": None if search.whole is None else _step_json(search.whole),
        "beside_parent": None if search.proof is None else _step_json(search.proof),
        "steps": [_step_json(step) for step in search.steps],
        "skipped": sorted({step.answer.commit.sha for step in search.skipped}),
        "also_changed": [] if search.whole is None else list(search.whole.answer.others),
        "inside_merge": [_search_json(inside) for inside in search.inside],
    }


def _commit_json(commit: Commit) -> dict[str, Any]:
    return {
        "sha": commit.sha,
        "parents": list(commit.parents),
        "author": commit.author,
        "committed_at": commit.committed_at.isoformat(),
        "subject": commit.subject,
    }


def _step_json(step: Step) -> dict[str, Any]:
    answer = step.answer
    return {
        "commit": answer.commit.sha,
        "beside": answer.base.sha,
        "passes": answer.passes,
        "says": step.says.value,
        "reason": answer.reason,
        "run_ids": list(answer.run_ids),
        "measured_before": answer.reused,
        "verdict": None if answer.verdict is None else _verdict_json(answer.verdict),
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason.value,
        "message": verdict.message,
        "effect": verdict.effect,
        "effect_low": verdict.effect_low,
        "effect_high": verdict.effect_high,
        "smallest_seen": verdict.smallest_seen,
        "tier": verdict.tier.value,
    }
