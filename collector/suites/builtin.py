"""What an inference engineer looks at first, from decode to prefill.

On a GPU the sizes give calls of about 2 us to 1 ms on an H200; without one they are small
enough for a single processor core, and what only a GPU can do is not in the list. Inputs are
random with a fixed seed, never zeros, since power and so the clock depend on the data.
Memory is allocated in set-up; where PyTorch has no ``out=``, its caching allocator hands
back the same block each iteration.

``flops`` counts a multiplication and an addition as two. ``bytes_moved`` is the least that
the call must move: each input read once, each output written once, nothing in between.

A size that is no parameter does not show in the name of a series: whoever changes one gives
the benchmark another name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from collector.suite import NotApplicable, benchmark
from collector.suites.graphs import captured
from collector.suites.inputs import DEVICE, DTYPE, GPU, Normal, bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[], object]

# A decoder layer of about 8 billion parameters, and its vocabulary.
HIDDEN = 4096 if GPU else 64
INNER = 14336 if GPU else 128
VOCABULARY = 128256 if GPU else 2048
QUERY_HEADS = 32 if GPU else 4
KEY_HEADS = 8 if GPU else 2
HEAD_DIM = 128 if GPU else 16

PREFILL_SHAPES = [(4096, 4096, 4096), (2048, 28672, 4096)] if GPU else [(128, 128, 128)]
DECODE_SHAPES = [(1, 8192, 8192), (32, 8192, 8192)] if GPU else [(1, 256, 256)]


def matmul_flops(m: int, n: int, k: int) -> int:
    """Operations of an (m, k) by (k, n) product."""
    return 2 * m * n * k


def matmul_bytes(m: int, n: int, k: int, dtype: str) -> int:
    """Both factors read, the product written."""
    return (m * k + k * n + m * n) * bytes_of(dtype)


def matmul(m: int, n: int, k: int, dtype: str) -> Run:
    """A product of random matrices into memory of its own."""
    normal = Normal(dtype)
    a, b = normal(m, k), normal.weight(k, n)
    out = torch.empty(m, n, device=DEVICE, dtype=normal.dtype)
    return lambda: torch.matmul(a, b, out=out)


@benchmark(
    params=[{"m": m, "n": n, "k": k, "dtype": DTYPE} for m, n, k in PREFILL_SHAPES],
    flops=matmul_flops,
    bytes_moved=matmul_bytes,
    tags=["matmul", "prefill", "compute"],
)
def bench_matmul_prefill(m: int, n: int, k: int, dtype: str) -> Run:
    """Many rows against a weight: bound by the tensor cores."""
    return matmul(m, n, k, dtype)


@benchmark(
    params=[{"m": m, "n": n, "k": k, "dtype": DTYPE} for m, n, k in DECODE_SHAPES],
    flops=matmul_flops,
    bytes_moved=matmul_bytes,
    tags=["matmul", "decode", "memory"],
)
def bench_matmul_decode(m: int, n: int, k: int, dtype: str) -> Run:
    """Few rows against a weight: bound by reading the weight."""
    return matmul(m, n, k, dtype)


@benchmark(
    params={
        "batch": [128 if GPU else 4],
        "n": [1024 if GPU else 64],
        "k": [128 if GPU else 32],
        "dtype": [DTYPE],
    },
    flops=lambda batch, n, k: 2 * batch * n * n * k,
    bytes_moved=lambda batch, n, k, dtype: batch * (2 * n * k + n * n) * bytes_of(dtype),
    tags=["matmul", "prefill"],
)
def bench_matmul_batched(batch: int, n: int, k: int, dtype: str) -> Run:
    """A product for each head of a batch, as attention scores are."""
    normal = Normal(dtype)
    a, b = normal(batch, n, k), normal(batch, k, n)
    out = torch.empty(batch, n, n, device=DEVICE, dtype=normal.dtype)
    return lambda: torch.bmm(a, b, out=out)


@benchmark(
    params=[{"m": 4096, "n": 4096, "k": 4096} if GPU else {"m": 64, "n": 64, "k": 64}],
    flops=matmul_flops,
    bytes_moved=lambda m, n, k: m * k + k * n + 4 * m * n,
    tags=["matmul", "quantised"],
)
def bench_matmul_int8(m: int, n: int, k: int) -> Run:
    """8-bit integers, accumulated and returned in 32 bits."""
    normal = Normal(DTYPE)
    a = normal.integers(-127, 128, m, k, dtype=torch.int8)
    b = normal.integers(-127, 128, n, k, dtype=torch.int8).t()  # column-major, as the kernels want it
    out = torch.empty(m, n, device=DEVICE, dtype=torch.int32)
    return lambda: torch._int_mm(a, b, out=out)  # noqa: SLF001 - PyTorch has no public one


if GPU:

    @benchmark(
        params=[{"m": 4096, "n": 4096, "k": 4096}],
        flops=matmul_flops,
        bytes_moved=lambda m, n, k: m * k + k * n + 2 * m * n,
        tags=["matmul", "quantised", "prefill"],
    )
    def bench_matmul_fp8(m: int, n: int, k: int) -> Run:
        """E4M3 factors with one scale each, returned in bfloat16."""
        capability = torch.cuda.get_device_capability()
        if capability < (8, 9):
            raise NotApplicable(
                f"8-bit floats need compute capability 8.9, and this GPU has {capability[0]}.{capability[1]}"
            )
        normal = Normal("bfloat16")
        a = normal(m, k).to(torch.float8_e4m3fn)
        b = normal(n, k).to(torch.float8_e4m3fn).t()  # column-major, as the kernels want it
        one = torch.ones((), device=DEVICE)
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)  # noqa: SLF001 - as above


@benchmark(
    params=[{"batch": 4, "length": 1024, "dtype": DTYPE}, {"batch": 1, "length": 4096, "dtype": DTYPE}]
    if GPU
    else [{"batch": 1, "length": 64, "dtype": DTYPE}],
    # Two products over the lower triangle, which holds half of the scores and half a diagonal.
    flops=lambda batch, length: 2 * batch * QUERY_HEADS * length * (length + 1) * HEAD_DIM,
    bytes_moved=lambda batch, length, dtype: 4 * batch * QUERY_HEADS * length * HEAD_DIM * bytes_of(dtype),
    tags=["attention", "prefill", "compute"],
)
def bench_attention_prefill(batch: int, length: int, dtype: str) -> Run:
    """Causal attention of a whole prompt."""
    normal = Normal(dtype)
    query, key, value = (normal(batch, QUERY_HEADS, length, HEAD_DIM) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True)


@benchmark(
    params=[{"batch": 1, "context": 8192, "dtype": DTYPE}, {"batch": 32, "context": 4096, "dtype": DTYPE}]
    if GPU
    else [{"batch": 2, "context": 128, "dtype": DTYPE}],
    flops=lambda batch, context: 4 * batch * QUERY_HEADS * context * HEAD_DIM,
    bytes_moved=lambda batch, context, dtype: (
        2 * batch * (KEY_HEADS * context + QUERY_HEADS) * HEAD_DIM * bytes_of(dtype)
    ),
    tags=["attention", "decode", "memory"],
)
def bench_attention_decode(batch: int, context: int, dtype: str) -> Run:
    """One query a sequence against its cache, in which several query heads share a key head."""
    normal = Normal(dtype)
    query = normal(batch, QUERY_HEADS, 1, HEAD_DIM)
    key, value = (normal(batch, KEY_HEADS, context, HEAD_DIM) for _ in range(2))
    return lambda: F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


@benchmark(
    params=[{"tokens": 4096 if GPU else 32, "dtype": DTYPE}],
    bytes_moved=lambda tokens, dtype: 2 * tokens * (QUERY_HEADS + 1) * HEAD_DIM * bytes_of(dtype),
    tags=["attention", "elementwise", "memory"],
)
def bench_rotary_embedding(tokens: int, dtype: str) -> Run:
    """Positions turned into the queries, as eager code does it: several kernels."""
    normal = Normal(dtype)
    query = normal(tokens, QUERY_HEADS, HEAD_DIM)
    angles = rotary_angles(tokens)
    cos, sin = angles.cos().to(normal.dtype), angles.sin().to(normal.dtype)

    def call() -> torch.Tensor:
        first, second = query.chunk(2, dim=-1)
        return query * cos + torch.cat((-second, first), dim=-1) * sin

    return call


def rotary_angles(tokens: int, base: float = 10000.0) -> torch.Tensor:
    """Angles of shape (tokens, 1, HEAD_DIM); the two halves of a head turn alike."""
    exponents = torch.arange(0, HEAD_DIM, 2, device=DEVICE, dtype=torch.float32) / HEAD_DIM
    positions = torch.arange(tokens, device=DEVICE, dtype=torch.float32)
    angles = torch.outer(positions, base**-exponents)
    return torch.cat((angles, angles), dim=-1).unsqueeze(1)


@benchmark(
    params=[{"rows": rows, "dtype": DTYPE} for rows in ((32, 8192) if GPU else (32,))],
    bytes_moved=lambda rows, dtype: (2 * rows + 1) * HIDDEN * bytes_of(dtype),
    tags=["norm", "memory"],
)
def bench_rms_norm(rows: int, dtype: str) -> Run:
    """Root-mean-square norm of hidden states."""
    normal = Normal(dtype)
    x, weight = normal(rows, HIDDEN), normal(HIDDEN)
    return lambda: F.rms_norm(x, (HIDDEN,), weight, eps=1e-5)


@benchmark(
    params=[{"rows": 8192 if GPU else 32, "dtype": DTYPE}],
    bytes_moved=lambda rows, dtype: (2 * rows + 2) * HIDDEN * bytes_of(dtype),
    tags=["norm", "memory"],
)
def bench_layer_norm(rows: int, dtype: str) -> Run:
    """Layer norm of hidden states."""
    normal = Normal(dtype)
    x, weight, bias = normal(rows, HIDDEN), normal(HIDDEN), normal(HIDDEN)
    return lambda: F.layer_norm(x, (HIDDEN,), weight, bias, eps=1e-5)


@benchmark(
    params=[{"rows": 64 if GPU else 4, "dtype": "float32"}],
    bytes_moved=lambda rows, dtype: 2 * rows * VOCABULARY * bytes_of(dtype),
    tags=["sampling", "memory"],
)
def bench_softmax(rows: int, dtype: str) -> Run:
    """Probabilities over a vocabulary."""
    logits = Normal(dtype)(rows, VOCABULARY)
    out = torch.empty_like(logits)
    return lambda: torch.softmax(logits, -1, out=out)


@benchmark(
    params=[{"rows": 64 if GPU else 4, "k": 50, "dtype": "float32"}],
    bytes_moved=lambda rows, k, dtype: rows * (VOCABULARY * bytes_of(dtype) + k * (bytes_of(dtype) + 8)),
    tags=["sampling", "memory"],
)
def bench_top_k(rows: int, k: int, dtype: str) -> Run:
    """The k likeliest tokens of a vocabulary, sorted."""
    normal = Normal(dtype)
    logits = normal(rows, VOCABULARY)
    values = torch.empty(rows, k, device=DEVICE, dtype=normal.dtype)
    indices = torch.empty(rows, k, device=DEVICE, dtype=torch.int64)
    return lambda: torch.topk(logits, k, out=(values, indices))


@benchmark(
    params=[{"tokens": 8192 if GPU else 64, "dtype": DTYPE}],
    # Random tokens rarely meet in a large table, so each is counted as a row of its own.
    bytes_moved=lambda tokens, dtype: tokens * (2 * HIDDEN * bytes_of(dtype) + 8),
    tags=["indexing", "memory"],
)
def bench_gather(tokens: int, dtype: str) -> Run:
    """Rows of an embedding table, by token."""
    normal = Normal(dtype)
    table = normal(VOCABULARY, HIDDEN)
    ids = normal.integers(0, VOCABULARY, tokens)
    out = torch.empty(tokens, HIDDEN, device=DEVICE, dtype=normal.dtype)
    return lambda: torch.index_select(table, 0, ids, out=out)


@benchmark(
    params=[{"tokens": 4096 if GPU else 32, "experts": 2, "dtype": DTYPE}],
    bytes_moved=lambda tokens, experts, dtype: (
        tokens * ((experts + 2) * HIDDEN * bytes_of(dtype) + 8 * experts)
    ),
    tags=["indexing", "memory"],
)
def bench_scatter_add(tokens: int, experts: int, dtype: str) -> Run:
    """Outputs of experts added up by token, in the shuffled order that routing leaves."""
    normal = Normal(dtype)
    outputs = normal(tokens * experts, HIDDEN)
    token_of = torch.randperm(tokens * experts, generator=normal.generator, device=DEVICE) % tokens
    total = normal(tokens, HIDDEN)
    return lambda: total.index_add_(0, token_of, outputs)


@benchmark(
    params=[{"n": 2**26 if GPU else 2**16, "dtype": DTYPE}],
    flops=lambda n: n,
    bytes_moved=lambda n, dtype: 3 * n * bytes_of(dtype),
    tags=["elementwise", "memory"],
)
def bench_add(n: int, dtype: str) -> Run:
    """The sum of two vectors."""
    normal = Normal(dtype)
    x, y = normal(n), normal(n)
    out = torch.empty_like(x)
    return lambda: torch.add(x, y, out=out)


@benchmark(
    params=[{"n": 2**26 if GPU else 2**16, "dtype": DTYPE}],
    bytes_moved=lambda n, dtype: 2 * n * bytes_of(dtype),
    tags=["copy", "memory"],
    count_copies=True,  # a contiguous copy is a memcpy, not a kernel
)
def bench_copy(n: int, dtype: str) -> Run:
    """A contiguous copy within the device."""
    source = Normal(dtype)(n)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


@benchmark(
    params=[{"tokens": 1024 if GPU else 16, "dtype": DTYPE}],
    flops=lambda tokens: 4 * tokens * HIDDEN * INNER,
    bytes_moved=lambda tokens, dtype: 2 * HIDDEN * (tokens + INNER) * bytes_of(dtype),
    tags=["mlp", "prefill", "compute"],
)
def bench_gelu_mlp(tokens: int, dtype: str) -> Run:
    """Up, GELU, down."""
    normal = Normal(dtype)
    x, up, down = normal(tokens, HIDDEN), normal.weight(HIDDEN, INNER), normal.weight(INNER, HIDDEN)
    return lambda: F.gelu(x @ up, approximate="tanh") @ down


@benchmark(
    params=[{"tokens": tokens, "dtype": DTYPE} for tokens in ((16, 1024) if GPU else (4,))],
    flops=lambda tokens: 6 * tokens * HIDDEN * INNER,
    bytes_moved=lambda tokens, dtype: HIDDEN * (2 * tokens + 3 * INNER) * bytes_of(dtype),
    tags=["mlp"],
)
def bench_silu_mlp(tokens: int, dtype: str) -> Run:
    """Gate and up in one product, SiLU and multiply, down."""
    normal = Normal(dtype)
    x = normal(tokens, HIDDEN)
    gate_up, down = normal.weight(HIDDEN, 2 * INNER), normal.weight(INNER, HIDDEN)

    def call() -> torch.Tensor:
        gate, up = (x @ gate_up).chunk(2, dim=-1)
        return (F.silu(gate) * up) @ down

    return call


@benchmark(
    params=[{"tokens": 512 if GPU else 8, "dtype": DTYPE}],
    # Each of the two products has a gradient for its input and one for its weight.
    flops=lambda tokens: 8 * tokens * HIDDEN * INNER,
    # Read: the input, the gradient of the output, both weights and what the forward pass kept
    # (before and after GELU). Written: the gradients of the input and of both weights.
    bytes_moved=lambda tokens, dtype: (
        (3 * tokens * HIDDEN + 4 * HIDDEN * INNER + 2 * tokens * INNER) * bytes_of(dtype)
    ),
    tags=["mlp", "training", "compute"],
)
def bench_mlp_backward(tokens: int, dtype: str) -> Run:
    """The backward pass of a GELU MLP alone; the forward pass belongs to set-up."""
    normal = Normal(dtype)
    x, up, down = normal(tokens, HIDDEN), normal.weight(HIDDEN, INNER), normal.weight(INNER, HIDDEN)
    inputs = [tensor.requires_grad_() for tensor in (x, up, down)]
    out = F.gelu(x @ up, approximate="tanh") @ down
    gradient = normal(tokens, HIDDEN)

    def call() -> tuple[torch.Tensor, ...]:
        # Launched from this thread: kernels of the engine's own thread carry no iteration number.
        with torch.autograd.set_multithreading_enabled(False):
            return torch.autograd.grad(out, inputs, gradient, retain_graph=True)

    return call


if GPU:

    @benchmark(
        params=[{"tokens": 16, "layers": 8, "dtype": DTYPE}],
        flops=lambda tokens, layers: 2 * tokens * layers * HIDDEN**2,
        bytes_moved=lambda tokens, layers, dtype: (
            (2 * tokens * HIDDEN + layers * HIDDEN * (HIDDEN + 1)) * bytes_of(dtype)
        ),
        tags=["graph", "decode"],
    )
    def bench_graph_replay(tokens: int, layers: int, dtype: str) -> Run:
        """A CUDA graph of small kernels: norm, product and SiLU in every layer."""
        normal = Normal(dtype)
        x, norm = normal(tokens, HIDDEN), normal(layers, HIDDEN)
        weights = [normal.weight(HIDDEN, HIDDEN) for _ in range(layers)]

        def forward() -> torch.Tensor:
            hidden = x
            for scale, weight in zip(norm, weights, strict=True):
                hidden = F.silu(F.rms_norm(hidden, (HIDDEN,), scale, eps=1e-5) @ weight)
            return hidden

        graph, out = captured(forward)

        def call() -> torch.Tensor:
            graph.replay()
            return out

        return call
