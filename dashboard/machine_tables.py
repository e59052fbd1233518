"""The tables of the machine page, as markup. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.differences import Direction
from dashboard.formatting import NOTHING, format_amount, format_effect, format_moment, gpu_label
from dashboard.tables import Column, Markup, direction_badge, link, plain, table, tier_badge, two_lines
from dashboard.url_state import page_address
from store import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.machines import Drift
    from store.machines import MachineState
    from store.records import RunHeader
    from store.studies import AaStudy


def runs_table(runs: Sequence[tuple[RunHeader, MachineState]]) -> Markup:
    """What each run saw of its GPU, newest first."""
    columns = [
        Column("Run"), Column("Commit"), Column("Clock (MHz)", numeric=True),
        Column("Power (W)", numeric=True), Column("Temp. (°C)", numeric=True), Column("Throttled windows"),
        Column("Windows", numeric=True, wide_only=True), Column("Invalid", numeric=True, wide_only=True),
    ]  # fmt: skip
    rows = [
        [
            plain(format_moment(header.started_at)),
            link(shown.short(header.commit_sha), _commit(header)),
            plain(_range(state.clock_low_mhz, state.clock_high_mhz)),
            plain(_middle_and_high(state.power_w, state.power_high_w)),
            plain(_middle_and_high(state.temperature_c, state.temperature_high_c)),
            plain(_throttled(state)),
            plain(str(state.windows)),
            plain(str(state.windows_invalid)),
        ]
        for header, state in reversed(runs)
    ]
    return table("What each run saw of this GPU, newest first", columns, rows)


def drifts_table(drifts: Sequence[Drift]) -> Markup:
    """The sentinels of every machine, those that drift first."""
    columns = [
        Column("Machine"), Column("Sentinel"), Column("State"), Column("Newest run", numeric=True),
        Column("Spread before", numeric=True, wide_only=True), Column("Earlier runs", numeric=True),
        Column("Measured", wide_only=True),
    ]  # fmt: skip
    rows = [
        [
            two_lines(
                link(
                    gpu_label(drift.header.gpu_name, drift.header.gpu_uuid),
                    page_address("machine", {"gpu": drift.header.gpu_uuid}),
                ),
                f"{drift.host} · {drift.header.environment}",
            ),
            plain(drift.label),
            _state(drift),
            plain(format_effect(drift.change)),
            plain(format_effect(drift.spread).removeprefix("+")),
            plain(str(drift.earlier)),
            plain(format_moment(drift.header.started_at)),
        ]
        for drift in drifts
    ]
    return table("Sentinels of every machine, those that drift first", columns, rows)


def study_table(study: AaStudy) -> Markup:
    """What an A/A study found in each series."""
    columns = [
        Column("Benchmark"), Column("False alarms", numeric=True),
        Column("Smallest change seen", numeric=True),
        Column("Between runs", numeric=True), Column("Inside a run", numeric=True, wide_only=True),
        Column("Runs", numeric=True, wide_only=True), Column("Tier"),
        Column("Median", numeric=True, wide_only=True),
    ]  # fmt: skip
    rows = [
        [
            link(result.series.case.label, page_address("trends", {"series": result.series.id})),
            plain(f"{result.pairs_flagged} of {result.pairs}"),
            plain(shown.share(result.smallest_seen) if result.smallest_seen > 0 else NOTHING),
            plain(shown.size(result.run_sd)),
            plain(shown.size(result.window_sd)),
            plain(str(result.runs)),
            tier_badge(result.tier),
            plain(format_amount(result.center_ms, result.series.quantity)),
        ]
        for result in sorted(study.results, key=lambda r: r.smallest_seen, reverse=True)
    ]
    return table("False alarms and smallest change seen, the least sensitive first", columns, rows)


def _state(drift: Drift) -> Markup:
    if drift.drifts is None:
        return plain("too few runs to tell")
    if not drift.drifts:
        return plain("stands still")
    return direction_badge(Direction.SLOWER if drift.change > 0 else Direction.FASTER)


def _commit(header: RunHeader) -> str:
    return page_address("commit", {"sha": header.commit_sha or "", "run": header.run_id})


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NOTHING
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _middle_and_high(middle: float | None, high: float | None) -> str:
    return NOTHING if middle is None or high is None else f"{middle:.0f}, up to {high:.0f}"


def _throttled(state: MachineState) -> str:
    if not state.windows_counted:
        return "counters not read"
    moved = [f"{name.replace('_', ' ')} in {count}" for name, count in state.throttled.items() if count]
    return ", ".join(moved) if moved else "none"
