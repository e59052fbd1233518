"""A comparison as a file: CSV and Markdown of its rows, PNG and SVG of its chart. No network."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from typing import TYPE_CHECKING, Literal

from alerts.markdown import code
from dashboard.formatting import NOTHING, format_amount, format_effect, format_effect_interval
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from altair import TopLevelMixin

    from dashboard.differences import Difference
    from store.records import SeriesPoint

_COLUMNS = (
    "benchmark", "parameters", "direction", "effect", "effect_low", "effect_high",
    "base_center_ms", "base_low_ms", "base_high_ms", "candidate_center_ms", "candidate_low_ms",
    "candidate_high_ms", "quantity", "base_tier", "candidate_tier", "base_commit", "candidate_commit",
    "base_gpu", "candidate_gpu", "base_environment", "candidate_environment", "base_run", "candidate_run",
)  # fmt: skip
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_PICTURE_SCALE = 2.0


def differences_csv(differences: Iterable[Difference]) -> str:
    """One line for each difference; effects are shares, empty cells are values that do not exist."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for item in differences:
        base, candidate = item.base, item.candidate
        case = candidate.series.case
        values: list[str | float | None] = [
            _harmless(case.benchmark), case.parameters_json, str(item.direction), item.effect, item.low,
            item.high, *_interval(base), *_interval(candidate), str(candidate.series.quantity),
            str(base.tier), str(candidate.tier), base.header.commit_sha, candidate.header.commit_sha,
            base.series.gpu_uuid, candidate.series.gpu_uuid, _harmless(base.series.environment),
            _harmless(candidate.series.environment), base.header.run_id, candidate.header.run_id,
        ]  # fmt: skip
        writer.writerow(["" if value is None else value for value in values])
    return buffer.getvalue()


def differences_markdown(differences: Iterable[Difference], *, title: str, mean: str) -> str:
    """A table for a comment or a page; names stand in code spans, where they do nothing."""
    lines = [
        f"**{title}**", "", mean, "",
        "| benchmark | change | 95 % | base | candidate | tiers |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for item in differences:
        base, candidate = item.base, item.candidate
        bounds = format_effect_interval(item.low, item.high)
        lines.append(
            f"| {code(candidate.series.case.label)} | {item.direction} {format_effect(item.effect)} "
            f"| {bounds} | {_amount(base)} | {_amount(candidate)} | {base.tier}, {candidate.tier} |"
        )
    return "\n".join(lines) + "\n"


def can_draw() -> bool:
    """Whether the package that draws pictures is installed (the extra ``alerts``)."""
    return importlib.util.find_spec("vl_convert") is not None


def picture(chart: TopLevelMixin, form: Literal["png", "svg"]) -> bytes:
    """Draw a chart of a fixed width as a picture on a white ground, without a browser.

    Raises:
        ImportError: vl-convert is not installed.
    """
    import vl_convert

    spec = chart.to_dict(validate=False)
    spec["background"] = "#ffffff"
    text = json.dumps(spec)
    if form == "svg":
        return vl_convert.vegalite_to_svg(text).encode()
    return bytes(vl_convert.vegalite_to_png(text, scale=_PICTURE_SCALE))


def _interval(point: SeriesPoint) -> tuple[float | None, float | None, float | None]:
    return point.interval.center, point.interval.low, point.interval.high


def _amount(point: SeriesPoint) -> str:
    center = point.interval.center
    amount = NOTHING if center is None else format_amount(center, point.series.quantity)
    return f"{amount} at {shown.short(point.header.commit_sha)}"


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
