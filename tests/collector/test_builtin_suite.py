"""The suites that come with the collector: all run, and their flops and bytes are what a hand counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from collector.suite import BUILTIN_SUITE, SENTINEL_SUITE, BenchmarkCase, load_suites, set_up

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
H200_FLOPS_PER_MS = 989e9  # dense bfloat16, from the data sheet
H200_BYTES_PER_MS = 4.8e9


def load(*suites: Path) -> dict[str, BenchmarkCase]:
    """The cases by label; the suites must be in order."""
    cases, errors = load_suites(suites, root=REPOSITORY)
    assert errors == []
    return {case.label: case for case in cases}


@pytest.fixture(autouse=True)
def _imports_restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    sys.modules.pop("collector.suites.inputs", None)  # it remembers which device it saw


def on_device(monkeypatch: pytest.MonkeyPatch, *, gpu: bool) -> None:
    """Have the suites see a GPU, or none, whatever this machine has."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    sys.modules.pop("collector.suites.inputs", None)


@pytest.fixture
def cpu_cases(monkeypatch: pytest.MonkeyPatch) -> dict[str, BenchmarkCase]:
    on_device(monkeypatch, gpu=False)
    return load(BUILTIN_SUITE, SENTINEL_SUITE)


@pytest.fixture
def gpu_cases(monkeypatch: pytest.MonkeyPatch) -> dict[str, BenchmarkCase]:
    on_device(monkeypatch, gpu=True)
    return load(BUILTIN_SUITE, SENTINEL_SUITE)


def tensors(output: object) -> list[torch.Tensor]:
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in tensors(part)]
    assert isinstance(output, torch.Tensor)
    return [output]


def test_every_case_gives_finite_output_that_is_not_all_zero(
    cpu_cases: dict[str, BenchmarkCase],
) -> None:
    for case in cpu_cases.values():
        call = set_up(case)
        outputs = [tensor for _ in range(3) for tensor in tensors(call())]

        assert all(bool(torch.isfinite(tensor).all()) for tensor in outputs), case.label
        assert all(bool(tensor.count_nonzero() > 0) for tensor in outputs), case.label


def test_every_set_up_draws_the_same_data(cpu_cases: dict[str, BenchmarkCase]) -> None:
    for case in cpu_cases.values():
        first, second = (tensors(set_up(case)()) for _ in range(2))

        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True)), case.label


def test_the_list_covers_what_an_inference_engineer_looks_at_first(
    gpu_cases: dict[str, BenchmarkCase],
) -> None:
    benchmarks = [case.name for case in gpu_cases.values() if "sentinel" not in case.options.tags]

    assert set(benchmarks) == {
        "matmul_prefill", "matmul_decode", "matmul_batched", "matmul_int8", "matmul_fp8",
        "attention_prefill", "attention_decode", "rotary_embedding", "rms_norm", "layer_norm", "softmax",
        "top_k", "gather", "scatter_add", "add", "copy", "gelu_mlp", "silu_mlp", "mlp_backward",
        "graph_replay",
    }  # fmt: skip
    assert len(benchmarks) <= 26


def test_without_a_gpu_only_what_needs_one_is_missing(
    cpu_cases: dict[str, BenchmarkCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu = {case.name for case in cpu_cases.values()}
    on_device(monkeypatch, gpu=True)
    on_gpu = {case.name for case in load(BUILTIN_SUITE, SENTINEL_SUITE).values()}

    assert on_gpu - on_cpu == {"matmul_fp8", "graph_replay"}
    assert on_cpu <= on_gpu


def test_on_an_h200_no_call_can_take_more_than_a_millisecond_of_work(
    gpu_cases: dict[str, BenchmarkCase],
) -> None:
    for case in gpu_cases.values():
        least_ms = max((case.flops() or 0) / H200_FLOPS_PER_MS, (case.bytes_moved() or 0) / H200_BYTES_PER_MS)

        assert least_ms < 0.6, case.label


def test_there_are_three_sentinels_on_every_machine(
    cpu_cases: dict[str, BenchmarkCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_device(monkeypatch, gpu=True)
    for cases in (cpu_cases, load(BUILTIN_SUITE, SENTINEL_SUITE)):
        sentinels = [case.name for case in cases.values() if case.options.tags == ("sentinel",)]

        assert sentinels == ["sentinel_copy", "sentinel_matmul", "sentinel_tiny"]


def test_sources_are_shown_relative_to_the_tool_for_code_elsewhere(tmp_path: Path) -> None:
    cases, _ = load_suites([SENTINEL_SUITE], root=tmp_path)

    assert cases[0].source.startswith("collector/suites/sentinels.py:")


# Sizes without a GPU: hidden 64, inner 128, vocabulary 2048, 4 query heads and 2 key heads of 16.
@pytest.mark.parametrize(
    ("label", "flops", "bytes_moved"),
    [
        ("matmul_prefill[dtype=float32, k=128, m=128, n=128]", 2 * 128 * 128 * 128, 3 * 128 * 128 * 4),
        ("matmul_decode[dtype=float32, k=256, m=1, n=256]", 131072, (256 + 65536 + 256) * 4),
        ("matmul_batched[batch=4, dtype=float32, k=32, n=64]", 4 * 262144, 4 * (2048 + 2048 + 4096) * 4),
        ("matmul_int8[k=64, m=64, n=64]", 524288, 4096 + 4096 + 4096 * 4),
        # 64 queries see 1, 2, ... 64 keys: 2080 pairs of 16 values, multiplied and added twice, 4 heads.
        ("attention_prefill[batch=1, dtype=float32, length=64]", 2080 * 16 * 2 * 2 * 4, 4 * 4 * 64 * 16 * 4),
        (
            "attention_decode[batch=2, context=128, dtype=float32]",
            2 * 4 * 128 * 16 * 2 * 2,
            (2 * 2 * 2 * 128 * 16 + 2 * 2 * 4 * 16) * 4,  # both caches, then query and output
        ),
        ("rotary_embedding[dtype=float32, tokens=32]", None, (2 * 32 * 4 * 16 + 2 * 32 * 16) * 4),
        ("rms_norm[dtype=float32, rows=32]", None, (2048 + 2048 + 64) * 4),
        ("layer_norm[dtype=float32, rows=32]", None, (2048 + 2048 + 64 + 64) * 4),
        ("softmax[dtype=float32, rows=4]", None, 2 * 4 * 2048 * 4),
        ("top_k[dtype=float32, k=50, rows=4]", None, 4 * 2048 * 4 + 200 * 4 + 200 * 8),
        ("gather[dtype=float32, tokens=64]", None, 64 * 64 * 4 + 64 * 64 * 4 + 64 * 8),
        (
            "scatter_add[dtype=float32, experts=2, tokens=32]",
            None,
            64 * 64 * 4 + 2 * 32 * 64 * 4 + 64 * 8,  # what is added, the total read and written, tokens
        ),
        ("add[dtype=float32, n=65536]", 65536, 3 * 65536 * 4),
        ("copy[dtype=float32, n=65536]", None, 2 * 65536 * 4),
        ("gelu_mlp[dtype=float32, tokens=16]", 2 * 262144, (2 * 16 * 64 + 2 * 64 * 128) * 4),
        ("silu_mlp[dtype=float32, tokens=4]", 3 * 65536, (2 * 4 * 64 + 3 * 64 * 128) * 4),
        (
            "mlp_backward[dtype=float32, tokens=8]",
            4 * 2 * 8 * 64 * 128,
            # input, its gradient, the output's gradient; weights and their gradients; kept activations
            (3 * 8 * 64 + 4 * 64 * 128 + 2 * 8 * 128) * 4,
        ),
        ("sentinel_copy[megabytes=1]", None, 2 * 1048576),
        ("sentinel_matmul[dtype=float32, n=128]", 2 * 128**3, None),
        ("sentinel_tiny[n=1024]", None, 8192),
    ],
)
def test_flops_and_bytes_are_what_a_hand_counts(
    cpu_cases: dict[str, BenchmarkCase], label: str, flops: int | None, bytes_moved: int | None
) -> None:
    case = cpu_cases.pop(label)

    assert case.flops() == flops
    assert case.bytes_moved() == bytes_moved


def test_every_case_without_a_gpu_is_counted_by_hand_above(cpu_cases: dict[str, BenchmarkCase]) -> None:
    (counted,) = (
        mark.args[1]
        for mark in test_flops_and_bytes_are_what_a_hand_counts.pytestmark  # type: ignore[attr-defined]
    )

    assert set(cpu_cases) == {label for label, _, _ in counted}


@pytest.mark.parametrize(
    ("label", "flops", "bytes_moved"),
    [
        ("matmul_fp8[k=4096, m=4096, n=4096]", 137438953472, (2 * 4096 * 4096) + 4096 * 4096 * 2),
        (
            "graph_replay[dtype=bfloat16, layers=8, tokens=16]",
            8 * 2 * 16 * 4096 * 4096,
            (2 * 16 * 4096 + 8 * 4096 * 4096 + 8 * 4096) * 2,
        ),
        ("sentinel_copy[megabytes=256]", None, 536870912),
    ],
)
def test_flops_and_bytes_of_what_needs_a_gpu_are_what_a_hand_counts(
    gpu_cases: dict[str, BenchmarkCase], label: str, flops: int | None, bytes_moved: int
) -> None:
    assert gpu_cases[label].flops() == flops
    assert gpu_cases[label].bytes_moved() == bytes_moved


def test_rotary_embedding_turns_pairs_as_complex_numbers_do(cpu_cases: dict[str, BenchmarkCase]) -> None:
    (turned,) = tensors(set_up(cpu_cases["rotary_embedding[dtype=float32, tokens=32]"])())
    query = torch.randn(32, 4, 16, generator=torch.Generator().manual_seed(20260302))

    pairs = torch.complex(query[..., :8], query[..., 8:])
    angles = torch.arange(32)[:, None] * 10000.0 ** -(torch.arange(8) / 8)
    expected = pairs * torch.polar(torch.ones_like(angles), angles)[:, None, :]

    torch.testing.assert_close(torch.complex(turned[..., :8], turned[..., 8:]), expected)


def test_importing_the_suites_leaves_the_process_fit_to_be_forked() -> None:
    program = """
import os, sys
from pathlib import Path
import torch
from collector.suite import BUILTIN_SUITE, SENTINEL_SUITE, load_suites
before = len(os.listdir("/proc/self/task"))
cases, errors = load_suites([BUILTIN_SUITE, SENTINEL_SUITE], root=Path.cwd())
print(len(errors), len(os.listdir("/proc/self/task")) - before, torch.cuda.is_initialized())
"""

    worker = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120,
        env={"PATH": "/usr/bin:/bin", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"},
    )  # fmt: skip

    assert worker.stdout.split() == ["0", "0", "False"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_every_case_gives_finite_output_on_a_gpu() -> None:
    for case in load(BUILTIN_SUITE, SENTINEL_SUITE).values():
        call = set_up(case)
        outputs = [tensor for _ in range(3) for tensor in tensors(call())]

        assert all(bool(torch.isfinite(tensor.float()).all()) for tensor in outputs), case.label
        torch.cuda.empty_cache()
