"""Three fixed calls that every run times beside its suite: if they moved, the machine moved.

They are part of the instrument. A change here ends every series of them, so their sizes are
parameters and show in their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from collector.suite import benchmark
from collector.suites.inputs import DTYPE, GPU, Normal

if TYPE_CHECKING:
    from collections.abc import Callable

TAGS = ["sentinel"]


@benchmark(
    params=[{"megabytes": 256 if GPU else 1}],
    bytes_moved=lambda megabytes: 2 * megabytes * 2**20,
    tags=TAGS,
    count_copies=True,  # a contiguous copy is a memcpy, not a kernel
)
def bench_sentinel_copy(megabytes: int) -> Callable[[], object]:
    """Memory bandwidth."""
    source = Normal("float32")(megabytes * 2**18)  # float32: 2**18 values are a mebibyte
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


@benchmark(
    params=[{"n": 2048 if GPU else 128, "dtype": DTYPE}],
    flops=lambda n: 2 * n**3,
    tags=TAGS,
)
def bench_sentinel_matmul(n: int, dtype: str) -> Callable[[], object]:
    """Tensor cores, and the power that they draw."""
    a = Normal(dtype)(n, n)
    b = a.t().contiguous()
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


@benchmark(params=[{"n": 1024}], bytes_moved=lambda n: 2 * 4 * n, tags=TAGS)
def bench_sentinel_tiny(n: int) -> Callable[[], object]:
    """The shortest kernel there is: clocks, and little else."""
    x = Normal("float32")(n)
    out = torch.empty_like(x)
    return lambda: torch.add(x, 1.0, out=out)
