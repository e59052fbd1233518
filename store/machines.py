"""Machines: what each run saw of its GPU, in numbers that a chart over time can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.filters import only
from store.rows import Row, fetch_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database

# Telemetry is JSON; a reading that holds an error has no value and gives NULL here, never 0.
_STATES = """
with telling as (
    select run_id, invalid, sm_clock_mhz, telemetry,
        try_cast(json_extract(telemetry, '$."power_w".value') as double) as power_w,
        try_cast(json_extract(telemetry, '$."temperature_c".value') as double) as temperature_c,
        try_cast(json_extract(telemetry, [{counters}]) as bigint[]) as counters
    from windows {where}
)
select run_id, count(*)::bigint as windows, count(invalid)::bigint as windows_invalid,
    min(list_min(sm_clock_mhz)) as clock_low_mhz, median(list_median(sm_clock_mhz)) as clock_mhz,
    max(list_max(sm_clock_mhz)) as clock_high_mhz,
    median(power_w) as power_w, max(power_w) as power_high_w,
    median(temperature_c) as temperature_c, max(temperature_c) as temperature_high_c,
    count(*) filter (where list_count(counters) > 0)::bigint as windows_counted,
    {moved}
from telling group by run_id
"""
_MOVED = "count(*) filter (where counters[{place}] > 0)::bigint as moved_{place}"
COUNTERS = ("power_cap", "thermal", "sync_boost", "hw_thermal", "hw_power_brake")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The windows of one run as a witness of its GPU; None where nothing of the kind could be read.

    Attributes:
        windows, windows_invalid: taken, and left out of every fold.
        clock_low_mhz, clock_mhz, clock_high_mhz: least, median and highest SM clock after a sample.
        power_w, power_high_w: median and highest draw at the end of a window.
        temperature_c, temperature_high_c: the same of the temperature.
        windows_counted: windows in which at least one throttle counter could be read.
        throttled: windows in which each throttle counter moved, by its name (see ``COUNTERS``).
    """

    run_id: str
    windows: int
    windows_invalid: int
    clock_low_mhz: float | None
    clock_mhz: float | None
    clock_high_mhz: float | None
    power_w: float | None
    power_high_w: float | None
    temperature_c: float | None
    temperature_high_c: float | None
    windows_counted: int
    throttled: dict[str, int]


def load_machine_states(database: Database, *, run_ids: Sequence[str]) -> dict[str, MachineState]:
    """What some runs saw of their GPUs, by run id; a run without a window is left out."""
    chosen = only({"run_id": run_ids})
    if chosen is None:
        return {}
    statement = _STATES.format(
        where=chosen.where,
        counters=", ".join(f"'$.\"throttle.{name}\".value'" for name in COUNTERS),
        moved=", ".join(_MOVED.format(place=place) for place in range(1, len(COUNTERS) + 1)),
    )
    with database.reading() as connection:
        rows = fetch_rows(connection, statement, chosen.parameters)
    return {row["run_id"]: _state_of(row) for row in rows}


def _state_of(row: Row) -> MachineState:
    moved = {name: row.pop(f"moved_{place}") for place, name in enumerate(COUNTERS, start=1)}
    return MachineState(**row, throttled=moved)
