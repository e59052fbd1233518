"""A suite of four calls, each beside itself with about one percent more work.

Measured on a GPU with ``collect aa --suite tests/bench/planted_suite.py``; ``bench_planted.py`` then
asks in how many pairs of runs the extra work is seen. Sizes are multiples of the 64-wide steps of the
matmul kernels, so that one percent more work is one percent more steps and no new wave of thread blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[], object]

PARAMS = {"more": [0, 1]}


def normal(*shape: int) -> torch.Tensor:
    """Random values from a fixed seed; zeros would draw less power."""
    generator = torch.Generator("cuda").manual_seed(1)
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=generator)


def bench_planted_matmul(more: int) -> Run:
    """100 or 101 steps along the inner dimension."""
    k = 6400 + 64 * more
    a, b, out = normal(2048, k), normal(k, 4096), torch.empty(2048, 4096, device="cuda", dtype=torch.bfloat16)
    return lambda: torch.mm(a, b, out=out)


def bench_planted_attention(more: int) -> Run:
    """400 or 404 heads."""
    q, k, v = (normal(1, 400 + 4 * more, 1024, 64) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def bench_planted_softmax(more: int) -> Run:
    """6400 or 6464 rows."""
    x = normal(6400 + 64 * more, 16384)
    out = torch.empty_like(x)
    return lambda: torch.softmax(x, -1, out=out)


def bench_planted_mlp(more: int) -> Run:
    """Two percent more steps in the first of two products of about equal time."""
    k = 6400 + 128 * more
    x, up, down = normal(1024, k), normal(k, 4096), normal(4096, 6400)
    return lambda: F.gelu(x @ up, approximate="tanh") @ down
