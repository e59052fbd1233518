"""A paired run as a person reads it in a terminal, and as a program reads it: pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.report import USABLE_RATIO, failure_lines, run_json, run_text
from collector.tables import aligned
from store import shown
from store.pairing import fold_pairs, pair_passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.paired import Pair
    from store.records import Interval, Measurement, Verdict

_LABEL_LIMIT = 60


def pair_text(pair: Pair, verdicts: Sequence[Verdict] | None) -> str:
    """The candidate as any run, then what the pairs of passes say.

    Args:
        pair: what was measured.
        verdicts: on the candidate; None where it was not judged.
    """
    against = shown.visible(pair.against, limit=_LABEL_LIMIT)
    header = pair.baseline.header
    parts = [
        run_text(pair.candidate, verdicts),
        "",
        f"Beside {against} ({shown.short(header.commit_sha)}), pass by pass:",
        "",
        *aligned(
            ("benchmark", "there", "here", "change", "95 % interval", "pairs"),
            [_row(here, there) for here, there in _both(pair)],
            right=("there", "here", "change", "pairs"),
        ),
    ]
    for title, cases in (
        (f"New, measured here alone ({len(pair.new)}):", pair.new),
        (f"Missing, measured at {against} alone ({len(pair.missing)}):", pair.missing),
    ):
        if cases:
            parts += ["", title, *(f"  {shown.one_line(case.label)}" for case in cases)]
    if pair.baseline.failures:
        parts += ["", f"Not measured at {against} ({len(pair.baseline.failures)}):"]
        parts += failure_lines(pair.baseline)
    return "\n".join(parts)


def pair_json(pair: Pair, verdicts: Sequence[Verdict] | None) -> dict[str, Any]:
    """The candidate as any run, with ``paired``: the baseline's run and what the pairs say."""
    return run_json(pair.candidate, verdicts) | {
        "paired": {
            "against": pair.against,
            "baseline": run_json(pair.baseline, None),
            "new": [case.label for case in pair.new],
            "missing": [case.label for case in pair.missing],
            "effects": [_effect_json(pair, here, there) for here, there in _both(pair)],
        }
    }


def _both(pair: Pair) -> list[tuple[Measurement, Measurement]]:
    """(candidate, baseline) measurements of one series."""
    there = {pair.baseline.series_key(m): m for m in pair.baseline.measurements}
    return [
        (here, there[series])
        for here in pair.candidate.measurements
        if (series := pair.candidate.series_key(here)) in there
    ]


def _ratio(here: Measurement, there: Measurement) -> Interval:
    quantum_ms = max(here.resolution_ms, there.resolution_ms)
    return fold_pairs(pair_passes(_by_pass(there), _by_pass(here)), quantum_ms=quantum_ms)


def _by_pass(measurement: Measurement) -> dict[int, float]:
    return {
        window.pass_index: window.median_ms
        for window in measurement.counted_windows
        if window.median_ms is not None
    }


def _row(here: Measurement, there: Measurement) -> tuple[str, ...]:
    ratio = _ratio(here, there)
    change, bounds = "none", "no interval"
    if ratio.center is not None:
        change = shown.change(ratio.center - 1)
    if ratio.bounds is not None and ratio.bounds[2] > USABLE_RATIO * ratio.bounds[0]:
        bounds = "too wide to use"
    elif ratio.bounds is not None:
        bounds = f"{shown.change(ratio.bounds[0] - 1)} to {shown.change(ratio.bounds[2] - 1)}"
    return (
        shown.one_line(here.case.label),
        *(
            "none" if m.interval.center is None else shown.amount(m.interval.center, m.quantity)
            for m in (there, here)
        ),
        change,
        bounds,
        str(ratio.windows),
    )


def _effect_json(pair: Pair, here: Measurement, there: Measurement) -> dict[str, Any]:
    ratio = _ratio(here, there)
    low, high = (None, None) if ratio.bounds is None else (ratio.bounds[0] - 1, ratio.bounds[2] - 1)
    return {
        "series": pair.candidate.series_key(here).id,
        "benchmark": here.case.label,
        "effect": None if ratio.center is None else ratio.center - 1,
        "effect_low": low,
        "effect_high": high,
        "pairs": ratio.windows,
    }
