"""Verdicts as JSON. Other programs read this: fields are added, never renamed or taken away."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from alerts.triageforms import event_object
from store.records import Reason

if TYPE_CHECKING:
    from alerts.judge import JudgedPoint, RunJudgement
    from store.records import Failure, Interval, Verdict


def judgement_json(judgement: RunJudgement) -> str:
    """An object: what was compared, the verdicts by benchmark, and what the run gives no answer to.

    Times are in milliseconds, effects are shares.
    """
    return json.dumps(
        {
            "run_id": judgement.header.run_id,
            "commit": judgement.header.commit_sha,
            "gpu_uuid": judgement.header.gpu_uuid,
            "baseline": judgement.baseline,
            "unanswered": judgement.unanswered,
            "verdicts": [_point_object(item) for item in judgement.judged],
            "failed": [_failure_object(failure, judgement) for failure in judgement.failures],
            "missing": [case.label for case in judgement.missing],
            "last_measured": {case.label: sha for case, sha in judgement.last_measured.items()},
            "new": [
                item.point.series.case.label
                for item in judgement.judged
                if item.verdict.reason is Reason.NEW_BENCHMARK
            ],
            "renamed": [{"from": old, "benchmark": case.label} for old, case in judgement.renamed],
            "new_series": judgement.new_series,
        },
        indent=2,
    )


def _failure_object(failure: Failure, judgement: RunJudgement) -> dict[str, Any]:
    return {
        "benchmark": None if failure.case is None else failure.case.label,
        "source": failure.source,
        "stage": failure.stage,
        "message": failure.message,
        "never_measured": failure.case in judgement.never_measured,
    }


def _point_object(item: JudgedPoint) -> dict[str, Any]:
    """A verdict, by which thresholds other than the defaults it was decided, and what people decided."""
    return {
        **verdict_object(item.verdict),
        "policy": item.policy.differences,
        "muted": None if item.muted is None else event_object(item.muted),
        "accepted": None if item.accepted is None else event_object(item.accepted),
    }


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """One verdict with its evidence."""
    case = verdict.series.case
    return {
        "run_id": verdict.run_id,
        "series_id": verdict.series.id,
        "benchmark": case.label,
        "name": case.benchmark,
        "parameters": dict(case.parameters),
        "quantity": verdict.series.quantity,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "message": verdict.message,
        "standing": verdict.standing,
        "tier": verdict.tier,
        "windows": verdict.windows,
        "candidate_ms": _interval_object(verdict.candidate),
        "baseline_ms": None if verdict.baseline is None else _interval_object(verdict.baseline),
        "baseline_kind": verdict.baseline_kind,
        "baseline_run_ids": list(verdict.baseline_run_ids),
        "effect": verdict.effect,
        "effect_low": verdict.effect_low,
        "effect_high": verdict.effect_high,
        "p_value": verdict.p_value,
        "q_value": verdict.q_value,
        "smallest_seen": verdict.smallest_seen,
        "drift": None if verdict.drift is None else asdict(verdict.drift),
        "second": None if verdict.second is None else asdict(verdict.second),
        "judged_at": verdict.judged_at.isoformat(),
    }


def _interval_object(interval: Interval) -> dict[str, Any]:
    return {
        "low": interval.low,
        "center": interval.center,
        "high": interval.high,
        "windows": interval.windows,
        "status": interval.status,
    }
