"""What should be known beside a number, though it takes nothing from its tier: pure."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from store.records import CacheState, Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Measurement, Reading, Window

COPY_SHARE_MAX = 0.01  # copies of more than this share of the busy time are pointed out
GAP_SHARE_MAX = 0.5  # a device that waits for longer than this share of a call's span is pointed out


def remarks(counted: Sequence[Window], quantity: Quantity) -> tuple[str, ...]:
    """Sentences about what the windows show and the headline does not.

    Args:
        counted: windows that count.
        quantity: what the headline is.
    """
    if quantity is Quantity.DEVICE_BUSY:
        return (*_copies(counted), *_gaps(counted))
    if quantity is Quantity.DEVICE_BUSY_AND_COPIES:
        return _gaps(counted)
    return ()


def _copies(counted: Sequence[Window]) -> tuple[str, ...]:
    """Point out copies that the headline does not contain."""
    copied = sum(sum(window.copy_ms) for window in counted)
    busy = sum(sum(window.samples_ms) for window in counted)
    if copied <= COPY_SHARE_MAX * busy:
        return ()
    remark = (
        f"copies and memsets take {copied / busy:.0%} on top of the kernels and are not counted: "
        "count_copies=True makes them part of the number"
    )
    return (remark,)


def _gaps(counted: Sequence[Window]) -> tuple[str, ...]:
    """Point out calls in which the device mostly waits for the next launch."""
    shares = [
        1 - busy / span
        for window in counted
        for busy, span in zip(window.samples_ms, window.latency_ms, strict=False)
        if span > 0
    ]
    share = statistics.median(shares) if shares else 0.0
    if share <= GAP_SHARE_MAX:
        return ()
    remark = (
        f"between its first and its last kernel the device waits {share:.0%} of the time for the next "
        "launch, which is not counted: a CUDA graph would take less"
    )
    return (remark,)


def with_roofline(measurement: Measurement, context: Mapping[str, Reading]) -> Measurement:
    """Add a remark where a cold call would have moved more bytes than the memory can.

    Args:
        measurement: of any quantity.
        context: of the run; where memory clock or bus width are unknown nothing is added.
    """
    peak = peak_bandwidth_tbs(context)
    bandwidth = measurement.bandwidth_tbs
    warm = measurement.cache_state is CacheState.WARM
    if peak is None or bandwidth is None or warm or bandwidth <= peak:
        return measurement
    remark = (
        f"{bandwidth:.3g} TB/s is more than the memory's {peak:.3g} TB/s: bytes_moved says too much, or the "
        "call finds its data in a cache that it has filled itself"
    )
    return replace(measurement, tier_evidence=(*measurement.tier_evidence, remark))


def peak_bandwidth_tbs(context: Mapping[str, Reading]) -> float | None:
    """What the memory can move at most, in 1e12 bytes a second: two transfers a clock over the bus.

    Source: the formula of CUDA's sample deviceQuery; 4.92 on an H200 (3201 MHz, 6144 bits).
    """
    readings = [context.get(name) for name in ("gpu.memory_clock_max_mhz", "gpu.memory_bus_bits")]
    clock, bits = (reading.value if reading is not None else None for reading in readings)
    if not isinstance(clock, int) or not isinstance(bits, int):
        return None
    return 2 * clock * 1e6 * bits / 8 / 1e12
