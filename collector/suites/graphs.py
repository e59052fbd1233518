"""Capture a call in a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def captured(forward: Callable[[], torch.Tensor]) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """A graph of ``forward`` and the tensor that each replay fills."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it open
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries choose kernels and workspaces outside the capture
        for _ in range(3):
            forward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = forward()
    return graph, out
