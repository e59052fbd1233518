"""Device time as kernelwatch reads it, against Nsight Compute's gpu__time_duration, kernel by kernel.

Needs an NVIDIA GPU with torch, cupti-python and nvidia-ml-py, and ``ncu`` on the PATH:

    python tests/bench/bench_ncu.py [--json FILE]

Ten calls of one kernel each, from about 1 us to 1 ms, are timed twice: by the CUPTI timer with held
clocks, and by ncu with ``--clock-control none --cache-control none``; both clear L2 in the same way
before each call. Printed are both medians, their ratio and their difference; nothing is asserted.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

sys.path.insert(0, str(Path(__file__).parents[2]))

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 15
METRIC = "gpu__time_duration.sum"


def calls() -> dict[str, Callable[[], object]]:
    """Ten calls of exactly one kernel each."""
    import torch

    def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", dtype=dtype)

    def add(n: int) -> Callable[[], object]:
        a, b, out = normal(n), normal(n), torch.empty(n, device="cuda", dtype=torch.bfloat16)
        return lambda: torch.add(a, b, out=out)

    def matmul(n: int) -> Callable[[], object]:
        a, b, out = normal(n, n), normal(n, n), torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
        return lambda: torch.mm(a, b, out=out)

    def softmax(rows: int) -> Callable[[], object]:
        x = normal(rows, 32768)
        return lambda: torch.softmax(x, -1)

    def row_sum(rows: int) -> Callable[[], object]:
        x = normal(rows, 16384, dtype=torch.float32)
        out = torch.empty(rows, device="cuda")
        return lambda: torch.sum(x, -1, out=out)

    return {
        "add 1 Ki": add(1 << 10),
        "add 1 Mi": add(1 << 20),
        "add 16 Mi": add(1 << 24),
        "add 256 Mi": add(1 << 28),
        "matmul 1024": matmul(1024),
        "matmul 2048": matmul(2048),
        "matmul 4096": matmul(4096),
        "softmax 256 x 32768": softmax(256),
        "softmax 4096 x 32768": softmax(4096),
        "sum 8192 x 16384": row_sum(8192),
    }


def with_kernelwatch() -> dict[str, list[float]]:
    """Samples of each call in milliseconds, by the collector's own window."""
    from collector.cupti_session import CuptiSession
    from collector.device import CudaDevice
    from collector.pacing import Pacer
    from collector.telemetry import NvmlTelemetry, find_gpu
    from collector.timers import CuptiTimer
    from collector.window import Budget, Rig, measure_window

    gpu = find_gpu(None, None)
    if gpu is None:
        raise SystemExit("there is no NVIDIA GPU")
    session = CuptiSession()
    session.start()
    try:
        device, telemetry = CudaDevice(), NvmlTelemetry(gpu.uuid)
        samples = {}
        for name, call in calls().items():
            timer = CuptiTimer(session, device, count_copies=False, any_thread=False, cold=True)
            rig = Rig(timer, device, telemetry, Pacer(hold=True), budget=Budget())
            samples[name] = measure_window(call, rig).timings.samples_ms
        return samples
    finally:
        session.stop()


def run_once_for_ncu() -> None:
    """What ncu profiles: each call, so many times, in the order of ``calls``."""
    import torch

    from collector.device import CudaDevice

    device, profiler = CudaDevice(), cast("Any", torch.cuda.profiler)
    made = calls()
    for call in made.values():
        call()
    device.drain()
    profiler.start()
    for call in made.values():
        for _ in range(REPEATS):
            device.clear_cache()  # one kernel, whose row is left out below
            device.drain()
            call()
            device.drain()
    profiler.stop()


def with_ncu() -> dict[str, list[float]]:
    """Samples of each call in milliseconds, by ncu."""
    command = ["ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"]
    command += ["--csv", "--page", "raw", "--metrics", METRIC, "--print-units", "base"]
    command += [sys.executable, __file__, "--as-ncu-target"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ncu failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    table = done.stdout[done.stdout.index('"ID"') :]
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["ID"]]
    names = list(calls())
    if len(rows) != 2 * REPEATS * len(names):
        raise SystemExit(f"ncu saw {len(rows)} kernels, expected {2 * REPEATS * len(names)}")
    values = [float(row[METRIC].replace(",", "")) / 1e6 for row in rows[1::2]]
    return {name: values[i * REPEATS : (i + 1) * REPEATS] for i, name in enumerate(names)}


def main() -> None:
    """Time, compare, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write all samples here")
    parser.add_argument("--as-ncu-target", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_ncu_target:
        run_once_for_ncu()
        return
    ours, theirs = with_kernelwatch(), with_ncu()
    differences = []
    print(f"{'call':22} {'kernelwatch us':>14} {'ncu us':>10} {'ratio':>7} {'difference ns':>14}")
    for name in ours:
        own, other = statistics.median(ours[name]), statistics.median(theirs[name])
        differences.append((own / other - 1) * 100)
        print(
            f"{name:22} {own * 1e3:14.3f} {other * 1e3:10.3f} {own / other:7.4f} {(own - other) * 1e6:14.0f}"
        )
    print(f"median difference {statistics.median(differences):+.2f} %")
    if arguments.json:
        document: dict[str, Any] = {"kernelwatch_ms": ours, "ncu_ms": theirs}
        arguments.json.write_text(json.dumps(document))


if __name__ == "__main__":
    main()
