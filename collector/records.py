"""What CUPTI records say, copied into plain tuples.

CUPTI's own objects point into buffers that are reused, so every field that counts is
copied out at once. The tuples survive JSON, which is how real traces become test data.
Times are nanoseconds on CUPTI's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class KernelRecord(NamedTuple):
    """One kernel execution on the device."""

    start: int
    end: int
    correlation_id: int
    device_id: int
    stream_id: int
    graph_node_id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    registers: int
    shared_bytes: int  # static plus dynamic, of one block


class CopyRecord(NamedTuple):
    """One memory copy or memset on the device."""

    start: int
    end: int
    correlation_id: int
    device_id: int
    stream_id: int
    graph_node_id: int
    name: str  # "memcpy" or "memset"
    size_bytes: int


class ApiRecord(NamedTuple):
    """One call into the CUDA runtime or driver."""

    start: int
    end: int
    correlation_id: int
    thread_id: int
    name: str


class OverheadRecord(NamedTuple):
    """Time in which CUDA compiled, loaded or waited instead of launching."""

    start: int
    end: int
    name: str


@dataclass(slots=True)
class Trace:
    """Everything recorded while the iterations of one window ran.

    Attributes:
        external_ids: correlation id -> the id this collector had pushed when the call was made.
        bounds: for each iteration (begin, end) on CUPTI's clock, both with an empty device.
        dropped: records lost, or None where the counter could not be proven to count.
    """

    kernels: list[KernelRecord] = field(default_factory=list)
    copies: list[CopyRecord] = field(default_factory=list)
    apis: list[ApiRecord] = field(default_factory=list)
    overheads: list[OverheadRecord] = field(default_factory=list)
    external_ids: dict[int, int] = field(default_factory=dict)
    bounds: list[tuple[int, int]] = field(default_factory=list)
    dropped: int | None = 0

    def to_json(self) -> dict[str, Any]:
        """The trace as JSON values."""
        return {
            "kernels": self.kernels,
            "copies": self.copies,
            "apis": self.apis,
            "overheads": self.overheads,
            "external_ids": sorted(self.external_ids.items()),
            "bounds": self.bounds,
            "dropped": self.dropped,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trace:
        """A trace from what ``to_json`` gave, after a round trip through a file."""
        return cls(
            kernels=[_kernel(row) for row in data["kernels"]],
            copies=[CopyRecord(*row) for row in data["copies"]],
            apis=[ApiRecord(*row) for row in data["apis"]],
            overheads=[OverheadRecord(*row) for row in data["overheads"]],
            external_ids={int(key): int(value) for key, value in data["external_ids"]},
            bounds=[(int(begin), int(end)) for begin, end in data["bounds"]],
            dropped=data["dropped"],
        )


def _kernel(row: list[Any]) -> KernelRecord:
    (
        start,
        end,
        correlation_id,
        device_id,
        stream_id,
        node_id,
        name,
        grid,
        block,
        cluster,
        registers,
        shared,
    ) = row
    return KernelRecord(
        start,
        end,
        correlation_id,
        device_id,
        stream_id,
        node_id,
        name,
        _triple(grid),
        _triple(block),
        _triple(cluster),
        registers,
        shared,
    )


def _triple(values: list[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z
