"""Verdicts as JSON. Other programs read this: fields are added, never renamed or taken away."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from alerts.triageforms import event_object

if TYPE_CHECKING:
    from alerts.judge import JudgedPoint, RunJudgement
    from store.records import Interval, Verdict


def verdicts_json(judgement: RunJudgement) -> str:
    """A list of verdict objects, by benchmark; times in milliseconds, effects as shares."""
    return json.dumps([_point_object(item) for item in judgement.judged], indent=2)


def comparison_json(judgement: RunJudgement) -> str:
    """An object: what was compared, the verdicts, and what has no number on the candidate's side."""
    return json.dumps(
        {
            "run_id": judgement.header.run_id,
            "commit": judgement.header.commit_sha,
            "gpu_uuid": judgement.header.gpu_uuid,
            "baseline": judgement.baseline,
            "verdicts": [_point_object(item) for item in judgement.judged],
            "failed": [
                {
                    "benchmark": None if failure.case is None else failure.case.label,
                    "message": failure.message,
                }
                for failure in judgement.failures
            ],
            "missing": [case.label for case in judgement.missing],
        },
        indent=2,
    )


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
