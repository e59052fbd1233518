"""Eleven calls of the built-in suite, each with the device left to settle before it and without.

Measured on a GPU with ``collect aa``; ``bench_settling.py`` then tells what settling changes. Both kinds
of a call are measured in each process and in shuffled order, so that whatever the card does over time
meets them alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import device
from collector.cases import OPTIONS_ATTRIBUTE
from collector.suites import builtin

if TYPE_CHECKING:
    from collections.abc import Callable

# Calls by name, each with a place in the list of its parameters. In ten runs on one card 23 of the 25
# pairs that lay apart were of these calls.
CALLS = {
    "matmul": ("matmul_prefill", 0),
    "matmul int8": ("matmul_int8", 0),
    "matmul fp8": ("matmul_fp8", 0),
    "attention 4 x 1024": ("attention_prefill", 0),
    "attention 1 x 4096": ("attention_prefill", -1),
    "attention decode": ("attention_decode", -1),
    "gelu mlp": ("gelu_mlp", 0),
    "silu mlp": ("silu_mlp", -1),
    "rms norm": ("rms_norm", -1),
    "softmax": ("softmax", 0),
    "add": ("add", 0),
}
SETTLE_S = device.SETTLE_S
PARAMS = {
    "call": [call for call, (name, _) in CALLS.items() if hasattr(builtin, f"bench_{name}")],
    "settled": [0, 1],
}


def bench_settling(call: str, settled: int) -> Callable[[], object]:
    """The call, and for its window in this process the wait before it."""
    device.SETTLE_S = SETTLE_S if settled else 0.0
    name, place = CALLS[call]
    function = getattr(builtin, f"bench_{name}")
    parameters = getattr(function, OPTIONS_ATTRIBUTE).params[place]
    made: Callable[[], object] = function(**parameters)
    return made
