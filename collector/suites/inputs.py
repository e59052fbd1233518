"""Where the suites of the collector run, and the random data that they run on."""

from __future__ import annotations

import torch

# Where NVML answers, this creates no CUDA context, so that workers can still be forked.
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
DTYPE = "bfloat16" if GPU else "float32"  # processors are slow at bfloat16
SEED = 20260302


class Normal:
    """Draws normal tensors on the measured device, one after another from one seed."""

    def __init__(self, dtype: str) -> None:
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.generator = torch.Generator(DEVICE).manual_seed(SEED)

    def __call__(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """A tensor of this shape with the given standard deviation."""
        drawn = torch.randn(shape, generator=self.generator, device=DEVICE, dtype=self.dtype)
        return drawn.mul_(scale)

    def integers(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Whole numbers in [low, high), each equally likely."""
        return torch.randint(low, high, shape, generator=self.generator, device=DEVICE, dtype=dtype)

    def weight(self, inputs: int, outputs: int) -> torch.Tensor:
        """A (inputs, outputs) matrix that keeps the scale of what it is multiplied with."""
        return self(inputs, outputs, scale=inputs**-0.5)


def bytes_of(dtype: str) -> int:
    """Size of one value in bytes."""
    return int(getattr(torch, dtype).itemsize)
