"""Two half windows of one case, taken before and after other implementations, as one window: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.errors import TimingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.protocol import JsonReading

_PER_SAMPLE = (
    "samples_ms",
    "latency_ms",
    "sum_ms",
    "copy_ms",
    "n_kernels",
    "pause_ms",
    "sm_clock_mhz",
    "throttle_reasons",
)
_ADDED = ("warmup_calls", "warmup_ms")
_SAME = ("pid", "quantity", "cold", "inner_reps", "resolution_ms")
_AMOUNTS = ("throttle.", "phase.")  # readings that count something up; the others are states


def pooled(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """One window message made of two.

    Samples stand in the order they were taken; counts and times are added, states such as the
    temperature and what pacing learnt are those of the second half, the kernels those of the first.

    Raises:
        TimingError: the halves were not timed alike.
    """
    for name in _SAME:
        if first[name] != second[name]:
            raise TimingError(
                f"the halves of this window differ in {name}: {first[name]} and {second[name]}; "
                "measure the implementations one by one, with --only"
            )
    return {
        **second,
        **{name: [*first[name], *second[name]] for name in _PER_SAMPLE},
        **{name: first[name] + second[name] for name in _ADDED},
        "started_at": first["started_at"],
        "launches": first["launches"],
        "attempts": max(first["attempts"], second["attempts"]),
        "invalid": first["invalid"] or second["invalid"],
        "telemetry": _telemetry(first["telemetry"], second["telemetry"]),
    }


def _telemetry(first: Mapping[str, JsonReading], second: Mapping[str, JsonReading]) -> dict[str, JsonReading]:
    return {name: _together(name, first.get(name), reading) for name, reading in second.items()}


def _together(name: str, first: JsonReading | None, second: JsonReading) -> JsonReading:
    if first is None or not name.startswith(_AMOUNTS):
        return second
    for reading in (first, second):
        if "error" in reading:
            return reading
    total: Any = first["value"]
    return {"value": total + second["value"]}
