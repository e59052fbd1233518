"""The instrument on a real NVIDIA GPU: skipped where there is none."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from collector.claims import note_path
from collector.errors import ClocksError
from collector.instrument import (
    AttributionError,
    HeldClockPolicy,
    LockedClockPolicy,
    MeasurementTier,
    OffThreadLaunchError,
    Sample,
    backward_of,
    bench_kernel,
    compare,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def busy_ms(samples: list[Sample]) -> float:
    return median(sample.device_busy_ms for sample in samples)


def a_matmul() -> Callable[[], object]:
    a, b, out = normal(4096, 4096), normal(4096, 4096), normal(4096, 4096)
    return lambda: torch.mm(a, b, out=out)


def a_tiny_kernel() -> Callable[[], object]:
    x = normal(1024)
    return lambda: x.add_(1.0)


def test_a_matmul_is_measured_with_telemetry_and_at_a_plausible_rate() -> None:
    result = measure(a_matmul(), iters=50)

    assert result.n == 50
    assert result.inner_reps == 1
    assert result.clock_cv_pct is not None
    assert result.tier in (MeasurementTier.B, MeasurementTier.C)
    assert result.p10_ms <= result.median_ms <= result.p90_ms
    assert 2 * 4096**3 / (result.median_ms * 1e-3) < 1.2e15  # no card multiplies bfloat16 faster


def test_a_softmax_at_a_held_clock_is_measured() -> None:
    x = normal(1024, 8192)

    result = measure(lambda: torch.softmax(x, -1), policy=HeldClockPolicy())

    assert result.tier in (MeasurementTier.A, MeasurementTier.B)
    assert result.clock_range_mhz is not None
    assert result.median_ms > 2 * x.numel() * 2 / 1e13 * 1e3  # 10 TB/s would be needed to beat this


def test_the_records_and_the_events_of_a_long_kernel_agree() -> None:
    x = torch.zeros(
        1 << 29, device="cuda"
    )  # of a millisecond, for events count the launch as well: 45 us once
    call = partial(torch.exp, x, out=x)

    records = busy_ms(bench_kernel(call, policy=HeldClockPolicy()))
    events = measure(call, policy=HeldClockPolicy()).median_ms

    assert records < events < 1.15 * records


def test_events_read_more_than_a_tiny_kernel_takes() -> None:
    call = a_tiny_kernel()

    records = busy_ms(bench_kernel(call))
    events = measure(call).median_ms

    assert 0.0005 < records < events


@pytest.mark.parametrize(
    ("make", "kernels"),
    [
        (lambda x: lambda: torch.softmax(x, -1), 1),
        (lambda x: lambda: torch.exp(x), 1),
        (lambda x: lambda: x * 2 + 1, 2),
        (lambda x: lambda: F.gelu(x).mul(2).exp(), 3),
    ],
    ids=["softmax", "exp", "multiply and add", "gelu, multiply and exp"],
)
def test_kernels_are_counted_and_timed(make: Any, kernels: int) -> None:
    samples = bench_kernel(make(normal(512, 4096, dtype=torch.float32)))

    assert 10 <= len(samples) <= 200
    assert {sample.timing for sample in samples} == {"cupti"}
    for sample in samples:
        assert 0 < sample.device_busy_ms <= sample.latency_ms
        assert sample.n_kernels == kernels
        assert sample.sm_clock_mhz


def test_memsets_beside_many_kernels_are_pointed_out_or_counted() -> None:
    x = normal(512, 4096, dtype=torch.float32)

    with pytest.warns(UserWarning, match="copies and memsets take .* and are not counted"):
        kernels_alone = bench_kernel(lambda: torch.topk(x, 8))
    counted = bench_kernel(lambda: torch.topk(x, 8), count_copies=True)

    assert all((sample.n_kernels or 0) > 1 for sample in kernels_alone)
    assert busy_ms(counted) > busy_ms(kernels_alone)


def test_cold_calls_take_longer_than_warm_ones() -> None:
    x, out = normal(4 << 20, dtype=torch.float32), normal(4 << 20, dtype=torch.float32)

    cold = busy_ms(bench_kernel(lambda: torch.exp(x, out=out)))
    warm = busy_ms(bench_kernel(lambda: torch.exp(x, out=out), flush_l2=False))

    assert cold > warm


def test_three_implementations_are_compared() -> None:
    x = normal(1024, 8192, dtype=torch.float32)

    def by_hand() -> torch.Tensor:
        shifted = torch.exp(x - x.amax(-1, keepdim=True))
        return shifted / shifted.sum(-1, keepdim=True)

    comparison = compare(
        {
            "torch": lambda: torch.softmax(x, -1),
            "by hand": by_hand,
            "log": lambda: torch.log_softmax(x, -1).exp(),
        }
    )

    assert comparison["by hand"].ratio_lo > 1.5
    assert comparison["log"].ratio_lo > 1.1
    assert comparison["torch"].ratio == 1


def test_the_same_call_under_two_names_is_as_fast() -> None:
    x = normal(1024, 8192)

    comparison = compare({name: lambda: torch.softmax(x, -1) for name in ("once", "again")})

    assert comparison["again"].ratio == pytest.approx(1, abs=0.02)


def test_the_backward_of_a_node_is_timed_and_that_of_autograd_s_thread_is_not() -> None:
    x = normal(1024, 4096).requires_grad_()
    out = torch.softmax(x, -1)
    gradient = torch.ones_like(out)

    def by_autograd() -> object:
        return torch.autograd.grad(out, x, gradient, retain_graph=True)

    node = bench_kernel(backward_of(out), args=(gradient,))
    with pytest.raises(OffThreadLaunchError):
        bench_kernel(by_autograd)
    anywhere = bench_kernel(by_autograd, launches_from_any_thread=True)
    with torch.autograd.set_multithreading_enabled(False):
        here = bench_kernel(by_autograd)

    counts = [{sample.n_kernels for sample in samples} for samples in (node, anywhere, here)]
    assert counts[0] == counts[1] == counts[2]
    assert len(counts[0]) == 1
    assert busy_ms(anywhere) == pytest.approx(busy_ms(node), rel=0.1)
    assert busy_ms(here) == pytest.approx(busy_ms(node), rel=0.1)


def test_a_launch_from_another_thread_is_an_error() -> None:
    work = a_tiny_kernel()

    def call() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with pytest.raises(OffThreadLaunchError):
        bench_kernel(call)
    assert {s.n_kernels for s in bench_kernel(call, launches_from_any_thread=True)} == {1}


@pytest.mark.parametrize("pushed", [0, 7, 1 << 32, 123_456_789])
def test_a_call_that_uses_custom0_is_an_error(pushed: int) -> None:
    from cupti import cupti

    work, kind = a_tiny_kernel(), cupti.ExternalCorrelationKind.CUSTOM0

    def call() -> None:
        work()
        cupti.activity_push_external_correlation_id(kind, pushed)
        work()
        cupti.activity_pop_external_correlation_id(kind)

    with pytest.raises(AttributionError, match="CUSTOM1 or CUSTOM2"):
        bench_kernel(call)


def test_a_call_that_pops_the_timer_s_id_is_an_error() -> None:
    from cupti import cupti

    with pytest.raises(AttributionError):
        bench_kernel(
            lambda: cupti.activity_pop_external_correlation_id(cupti.ExternalCorrelationKind.CUSTOM0)
        )


def test_a_call_may_use_custom1() -> None:
    from cupti import cupti

    work, kind = a_tiny_kernel(), cupti.ExternalCorrelationKind.CUSTOM1

    def call() -> None:
        cupti.activity_push_external_correlation_id(kind, 3)
        work()
        cupti.activity_pop_external_correlation_id(kind)

    assert {sample.n_kernels for sample in bench_kernel(call)} == {1}


def test_copies_count_only_where_it_is_said() -> None:
    x, y = normal(8 << 20), normal(8 << 20)

    with pytest.raises(AttributionError, match="only copies"):
        bench_kernel(lambda: y.copy_(x))
    counted = bench_kernel(lambda: y.copy_(x), count_copies=True)

    assert {sample.n_kernels for sample in counted} == {0}
    assert all(sample.device_busy_ms == sample.copy_ms for sample in counted)


def test_a_call_without_gpu_work_is_an_error_and_the_next_call_is_measured() -> None:
    with pytest.raises(AttributionError, match="left no trace on the device"):
        bench_kernel(lambda: None)

    assert busy_ms(bench_kernel(a_tiny_kernel())) > 0


def test_a_graph_captured_under_the_session_is_measured_kernel_by_kernel() -> None:
    work = a_tiny_kernel()
    bench_kernel(work)  # the session is open from here on
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            work()

    assert {sample.n_kernels for sample in bench_kernel(graph.replay)} == {5}


def test_locking_either_gives_a_steady_clock_or_is_refused_and_leaves_nothing_behind() -> None:
    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    try:
        result = measure(a_matmul(), policy=LockedClockPolicy(1200))
    except ClocksError:
        pass
    else:
        assert result.clock_range_mhz is not None
        assert result.clock_range_mhz <= 30

    assert not note_path(uuid).exists()


def test_a_program_that_has_measured_ends_in_good_order() -> None:
    program = (
        "import torch\n"
        "from collector.instrument import bench_kernel, measure\n"
        "x = torch.randn(1024, device='cuda')\n"
        "print(len(bench_kernel(lambda: x.add_(1.0), iterations=10)), measure(lambda: x.add_(1.0)).n)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.split()) == (0, ["10", "30"]), done.stderr[-2000:]
