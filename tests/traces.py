"""Build CUPTI records by hand, with only the fields a test cares about."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from collector.records import ApiRecord, CopyRecord, KernelRecord, OverheadRecord, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ids = count(10_000)


def a_kernel_record(
    start: int,
    end: int,
    *,
    name: str = "kernel",
    correlation_id: int | None = None,
    device_id: int = 0,
    graph_node_id: int = 0,
) -> KernelRecord:
    """A kernel that ran from ``start`` to ``end`` nanoseconds."""
    return KernelRecord(
        start=start,
        end=end,
        correlation_id=next(_ids) if correlation_id is None else correlation_id,
        device_id=device_id,
        stream_id=7,
        graph_node_id=graph_node_id,
        name=name,
        grid=(132, 1, 1),
        block=(256, 1, 1),
        cluster=(0, 0, 0),
        registers=32,
        shared_bytes=1024,
    )


def a_copy(start: int, end: int, *, name: str = "memcpy", size_bytes: int = 4096) -> CopyRecord:
    """A copy that ran from ``start`` to ``end`` nanoseconds."""
    return CopyRecord(start, end, next(_ids), 0, 7, 0, name, size_bytes)


def an_api(
    start: int, correlation_id: int, *, name: str = "cudaLaunchKernel_v7000", thread_id: int = 1
) -> ApiRecord:
    """An API call that took 50 nanoseconds."""
    return ApiRecord(start, start + 50, correlation_id, thread_id, name)


def an_overhead(start: int, end: int, name: str) -> OverheadRecord:
    """Time that CUDA spent on itself."""
    return OverheadRecord(start, end, name)


def a_trace(
    kernels: Mapping[int, Sequence[KernelRecord]], *, copies: Mapping[int, Sequence[CopyRecord]] | None = None
) -> Trace:
    """A trace in which records carry the external id they are listed under."""
    trace = Trace()
    for external_id, records in kernels.items():
        trace.kernels.extend(records)
        trace.external_ids.update({record.correlation_id: external_id for record in records})
    for external_id, moved in (copies or {}).items():
        trace.copies.extend(moved)
        trace.external_ids.update({record.correlation_id: external_id for record in moved})
    return trace
