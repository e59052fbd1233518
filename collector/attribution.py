"""From activity records to one sample per iteration: pure, and it fails closed.

Which iteration a kernel belongs to is written in its record: the correlation id of its
launch, to which the external id pushed at the time is attached. Timestamps decide nothing,
except where a benchmark says that other threads launch for it: then the API call that
launched a kernel must lie between the two drains of its iteration, which is exact because
the device is empty at both ends.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING, Any

from collector.errors import (
    AttributionError,
    CorruptRecordError,
    DisturbedIterationError,
    ForeignDeviceError,
    OffThreadLaunchError,
    RecordsLostError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.records import CopyRecord, KernelRecord, Trace

PREPARE_ID = 1 << 32  # preparation runs under its own id; no iteration count comes near it
NS_PER_MS = 1e6
_TIMESTAMP_MAX = 1 << 62  # sentinel values such as 0x8000... lie above

# Calls and overheads that may happen once, in warm-up, but never inside a timed iteration.
# Stream-ordered allocation (…Async) is part of a call's work and is left alone.
_DISTURBING_API = re.compile(
    r"cudaMalloc(?!Async|FromPoolAsync)|cudaFree(?!Async)|cuMemAlloc(?!Async|FromPoolAsync)"
    r"|cuMemFree(?!Async)|cuMemCreate|cu(da)?(Module|Library)Load"
)
_DISTURBING_OVERHEAD = frozenset(
    {
        "DRIVER_COMPILER",
        "RUNTIME_TRIGGERED_MODULE_LOADING",
        "LAZY_FUNCTION_LOADING",
        "COMMAND_BUFFER_FULL",
        "JIT",
    }
)


@dataclass(frozen=True)
class IterationSample:
    """What the device did for one call. Times in milliseconds.

    Attributes:
        busy_ms: union of kernel execution intervals; gaps are not counted, overlap counts once.
        busy_and_copies_ms: the same with copies and memsets in the union.
        copy_ms: union of copies and memsets alone.
        latency_ms: last kernel end minus first kernel start (of copies where there is no kernel).
        sum_ms: sum of kernel durations.
    """

    busy_ms: float
    busy_and_copies_ms: float
    copy_ms: float
    latency_ms: float
    sum_ms: float
    n_kernels: int


@dataclass(frozen=True)
class LaunchShape:
    """What tells one kernel launch from another, whatever its duration."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    registers: int
    shared_bytes: int


@dataclass(frozen=True)
class Attributed:
    """A window's samples and the kernels that made them."""

    samples: tuple[IterationSample, ...]
    launches: tuple[tuple[LaunchShape, int], ...]  # with launches per call, median over iterations


def attribute(
    trace: Trace, *, iterations: int, device_id: int, any_thread: bool = False, count_copies: bool = False
) -> Attributed:
    """Give every kernel to the iteration that launched it and measure each iteration.

    Args:
        trace: the records of a whole window.
        iterations: how many calls were timed, numbered from 0.
        device_id: the measured device as CUDA numbers it; records of others are refused.
        any_thread: attribute by the API call between the drains, for kernels that other
            threads launch.
        count_copies: copies and memsets are part of the measured work.

    Raises:
        RecordsLostError: records were dropped: measure the window again.
        CorruptRecordError: a record's times cannot be.
        ForeignDeviceError: a kernel ran on another device.
        OffThreadLaunchError: a kernel carries no iteration number.
        AttributionError: an iteration has no work on the device, records without a number came
            while losses could not be counted, or the call pushed numbers of its own.
        DisturbedIterationError: compilation, module loading or allocation inside an iteration.
    """
    if trace.dropped:
        raise RecordsLostError(f"CUPTI dropped {trace.dropped} records of this window")
    records: list[KernelRecord | CopyRecord] = [*trace.kernels, *trace.copies]
    for record in records:
        _check_times(record)
        if record.device_id != device_id:
            raise ForeignDeviceError(
                f"{record.name} ran on device {record.device_id}, but device {device_id} is measured: "
                "let the benchmark use the current device"
            )
    if any_thread:
        owner = _owners_by_api(trace)
    else:
        owner = trace.external_ids
        _check_ids_are_ours(trace, iterations)
    kernels = _claim(_distinct(trace.kernels), owner, iterations, trace.dropped)
    copies = _claim(_distinct(trace.copies), owner, iterations, trace.dropped)
    _check_none_empty(kernels, copies, count_copies=count_copies)
    _check_undisturbed(trace, owner, iterations)
    return Attributed(
        samples=tuple(_measure(k, c) for k, c in zip(kernels, copies, strict=True)),
        launches=_launches(kernels),
    )


def _check_times(record: KernelRecord | CopyRecord) -> None:
    if not 0 < record.start < record.end < _TIMESTAMP_MAX:
        raise CorruptRecordError(
            f"{record.name} has start {record.start} and end {record.end} ns, which cannot be: "
            "the timestamp was not collected"
        )


def _distinct(records: Iterable[Any]) -> list[Any]:
    """Drop records that CUPTI delivered twice; two launches never share all of these fields."""
    return list({(r.correlation_id, r.graph_node_id, r.start, r.end, r.name): r for r in records}.values())


def _owners_by_api(trace: Trace) -> dict[int, int]:
    """Correlation id -> iteration, for API calls made between the drains of an iteration."""
    owners: dict[int, int] = {}
    bounds = trace.bounds
    for api in trace.apis:
        # Few iterations and few calls: a scan is quick enough and plainly right.
        inside = next((i for i, (begin, end) in enumerate(bounds) if begin <= api.start <= end), PREPARE_ID)
        owners[api.correlation_id] = inside
    return owners


def _check_ids_are_ours(trace: Trace, iterations: int) -> None:
    """Refuse numbers that somebody else pushed: they may look like an iteration's, or like preparation's.

    A launch between the drains of an iteration must carry that iteration's number, and no other may.
    """
    bounds = trace.bounds[:iterations]
    begins = [begin for begin, _ in bounds]
    for api in trace.apis if bounds else ():
        number = trace.external_ids.get(api.correlation_id)
        place = bisect_right(begins, api.start) - 1
        inside = place if place >= 0 and api.start <= bounds[place][1] else None
        if number is None or number == inside or (inside is None and not 0 <= number < iterations):
            continue
        where = "outside of every iteration" if inside is None else f"in iteration {inside}"
        raise AttributionError(
            f"{api.name} was called {where}, under the external id {number}: the call, or another user of "
            "CUPTI in this process, pushes ids of kind CUSTOM0, which the timer needs; use CUSTOM1 or CUSTOM2"
        )


def _claim(
    records: list[Any], owner: dict[int, int], iterations: int, dropped: int | None
) -> list[list[Any]]:
    claimed: list[list[Any]] = [[] for _ in range(iterations)]
    orphans = []
    for record in records:
        iteration = owner.get(record.correlation_id)
        if iteration == PREPARE_ID:
            continue
        if iteration is None or not 0 <= iteration < iterations:
            orphans.append(record)
        else:
            claimed[iteration].append(record)
    if orphans:
        names = ", ".join(sorted({record.name for record in orphans})[:3])
        if dropped is None:
            raise AttributionError(
                f"{len(orphans)} device records carry no iteration number ({names}), and this CUPTI "
                "cannot say whether records were lost"
            )
        raise OffThreadLaunchError(
            f"{len(orphans)} device records carry no iteration number ({names}): a thread of its own "
            "launched them. Launch from the calling thread (for a backward pass: backward_of(), or "
            "torch.autograd.set_multithreading_enabled(False)), or mark the benchmark with "
            "launches_from_any_thread=True"
        )
    return claimed


def _check_none_empty(
    kernels: list[list[KernelRecord]], copies: list[list[CopyRecord]], *, count_copies: bool
) -> None:
    for index, (launched, copied) in enumerate(zip(kernels, copies, strict=True)):
        if launched or (copied and count_copies):
            continue
        if copied:
            raise AttributionError(
                f"iteration {index} launched no kernel, only copies: mark the benchmark with "
                "count_copies=True to measure them"
            )
        raise AttributionError(
            f"iteration {index} of {len(kernels)} left no trace on the device: the call did no GPU "
            "work, or its work was not recorded"
        )


def _check_undisturbed(trace: Trace, owner: dict[int, int], iterations: int) -> None:
    for api in trace.apis:
        iteration = owner.get(api.correlation_id)
        if iteration is None or not 0 <= iteration < iterations or not _DISTURBING_API.match(api.name):
            continue
        raise DisturbedIterationError(
            f"{api.name} was called inside iteration {iteration}: set up memory and modules before the "
            "call is returned, or warm it up longer with warmup_calls"
        )
    for overhead in trace.overheads:
        if overhead.name not in _DISTURBING_OVERHEAD:
            continue
        for index, (begin, end) in enumerate(trace.bounds[:iterations]):
            if overhead.start < end and overhead.end > begin:
                raise DisturbedIterationError(
                    f"{overhead.name} took {(overhead.end - overhead.start) / NS_PER_MS:.3f} ms inside "
                    f"iteration {index}: warm the call up longer with warmup_calls"
                )


def union_ns(spans: Sequence[tuple[int, int]]) -> int:
    """Length of the union of (start, end) spans, in nanoseconds."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _measure(kernels: Sequence[KernelRecord], copies: Sequence[CopyRecord]) -> IterationSample:
    kernel_spans = [(k.start, k.end) for k in kernels]
    copy_spans = [(c.start, c.end) for c in copies]
    spans = kernel_spans or copy_spans  # a call of copies alone is measured only where they count
    return IterationSample(
        busy_ms=union_ns(kernel_spans) / NS_PER_MS,
        busy_and_copies_ms=union_ns(kernel_spans + copy_spans) / NS_PER_MS,
        copy_ms=union_ns(copy_spans) / NS_PER_MS,
        latency_ms=(max(end for _, end in spans) - min(start for start, _ in spans)) / NS_PER_MS,
        sum_ms=sum(end - start for start, end in kernel_spans) / NS_PER_MS,
        n_kernels=len(kernels),
    )


def _launches(kernels: Sequence[Sequence[KernelRecord]]) -> tuple[tuple[LaunchShape, int], ...]:
    """Distinct launches in order of first appearance, with their median count per call."""
    counts = [
        Counter(
            LaunchShape(k.name, k.grid, k.block, k.cluster, k.registers, k.shared_bytes)
            for k in sorted(claimed, key=lambda k: k.start)
        )
        for claimed in kernels
    ]
    shapes = list(dict.fromkeys(shape for count in counts for shape in count))
    medians = ((shape, median_low(count[shape] for count in counts)) for shape in shapes)
    return tuple((shape, count) for shape, count in medians if count > 0)
