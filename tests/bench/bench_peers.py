"""False alarms and detection of other timers beside kernelwatch's, on the same card in the same session.

Needs an NVIDIA GPU with torch and triton; nvbench's package (``cuda-bench``) is used where it is there.
The second command prints what was measured on one card, and needs none:

    python tests/bench/bench_peers.py [--rounds N] [--json FILE]
    python tests/bench/bench_peers.py --from tests/data/h200/peers.json

Each round starts a fresh process for each peer and times the same calls once, the way the peer's own
documentation does, with the bootstrap interval of the median that its users would put around its
samples. Rounds alternate between starting at once and after two seconds of idleness. Printed is, for
each peer, the share of pairs of rounds whose 95 % intervals do not overlap though the code is the same,
and the share of pairs in which a matmul with 1.6 % more work is seen. kernelwatch's own figures come
from ``collect aa``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

RESAMPLES = 2000
MORE_WORK = "matmul +1.6 %"

Summary = dict[str, float]  # number of samples, their median and its interval, in milliseconds
Round = dict[str, Summary]  # by call


def calls() -> dict[str, Callable[[], object]]:
    """The same calls for every peer; the last is the second to last with 1.6 % more work."""
    import torch

    torch.manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    def matmul(k: int) -> Callable[[], object]:
        a, b, out = (
            normal(4096, k),
            normal(k, 4096),
            torch.empty(4096, 4096, device="cuda", dtype=torch.bfloat16),
        )
        return lambda: torch.mm(a, b, out=out)

    x, small = normal(1024, 32768), normal(1024)
    q, k, v = (normal(4, 32, 1024, 128) for _ in range(3))
    return {
        "add 1 Ki": lambda: small.add_(1.0),
        "softmax": lambda: torch.softmax(x, -1),
        "attention": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        "matmul": matmul(4096),
        MORE_WORK: matmul(4160),
    }


def with_do_bench() -> dict[str, list[float]]:
    """Samples in milliseconds by triton.testing.do_bench with its defaults."""
    from triton.testing import do_bench

    return {
        name: [float(sample) for sample in do_bench(call, return_mode="all")]
        for name, call in calls().items()
    }


def with_nvbench() -> dict[str, list[float]]:
    """Samples in milliseconds by nvbench's cold measurement with its defaults."""
    import cuda.bench as nvbench
    import torch

    def benchmark(name: str, call: Callable[[], object]) -> Callable[[Any], None]:
        def launch(on: Any) -> None:
            stream = cast("Any", torch.cuda.ExternalStream)(on.get_stream().addressof())
            with torch.cuda.stream(stream):
                call()

        def bench(state: Any) -> None:
            launch(state)  # what the first call allocates would wait for the device, which nvbench holds
            torch.cuda.synchronize()
            state.exec(launch, batched=False)

        bench.__name__ = name  # nvbench names a benchmark after its function
        return bench

    made = list(calls().items())
    for place, (_, call) in enumerate(made):
        nvbench.register(benchmark(f"call_{place}", call))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        nvbench.run_all_benchmarks(["bench", "--jsonbin", str(path), "--quiet"])
        found = {b["name"]: b["states"][0]["summaries"] for b in json.loads(path.read_text())["benchmarks"]}
        samples = {}
        for place, (name, _) in enumerate(made):
            summaries = found[f"call_{place}"]
            binary = next(s for s in summaries if s["tag"] == "nv/json/bin:nv/cold/sample_times")
            file = next(d["value"] for d in binary["data"] if d["name"] == "filename")
            samples[name] = [float(s) * 1e3 for s in np.fromfile(path.parent / file, dtype=np.float32)]
    return samples


def interval(samples: list[float]) -> tuple[float, float]:
    """95 % percentile bootstrap of the median.

    The middle of n draws from the samples lies where the middle of n uniform draws points, whose law is
    known: nothing is resampled, for nvbench gives a hundred thousand samples.
    """
    rng, n = np.random.default_rng(0xC0FFEE), len(samples)
    lower_rank = (n + 1) // 2
    lower = rng.beta(lower_rank, n - lower_rank + 1, RESAMPLES)
    upper = lower if n % 2 else lower + (1 - lower) * rng.beta(1, n - lower_rank, RESAMPLES)
    ordered = np.sort(samples)
    medians = np.sort(
        [(ordered[int(n * a)] + ordered[int(n * b)]) / 2 for a, b in zip(lower, upper, strict=True)]
    )
    return float(medians[int(0.025 * RESAMPLES)]), float(medians[int(0.975 * RESAMPLES)])


PEERS = {"do_bench": with_do_bench, "nvbench": with_nvbench}


def summed_up(samples: list[float]) -> Summary:
    """What is kept of one call in one round."""
    low, high = interval(samples)
    return {
        "samples": len(samples),
        "median_ms": float(np.median(samples)),
        "low_ms": low,
        "high_ms": high,
    }


def is_above(one: Summary, other: Summary) -> bool:
    """Whether an interval lies wholly above another."""
    return one["low_ms"] > other["high_ms"]


def report(peer: str, rounds: list[Round], seconds: float) -> str:
    """One line: false alarms, detection, wrong direction, cost."""
    same = [(a[name], b[name]) for a, b in combinations(rounds, 2) for name in a if name != MORE_WORK]
    apart = sum(is_above(x, y) or is_above(y, x) for x, y in same)
    pairs = [(a["matmul"], b[MORE_WORK]) for a, b in product(rounds, rounds)]
    seen = sum(is_above(more, base) for base, more in pairs)
    wrong = sum(is_above(base, more) for base, more in pairs)
    cost = seconds / len(rounds) / len(rounds[0])
    return (
        f"{peer:10} false alarms {apart}/{len(same)} = {apart / len(same):.1%}; "
        f"+1.6 % seen {seen}/{len(pairs)}, wrong direction {wrong}; "
        f"{cost:.2f} s a call, process start included"
    )


def measured(peer: str, rounds: int) -> tuple[list[Round], float]:
    """So many rounds of a peer, each in a fresh process, and the seconds that they took."""
    kept: list[Round] = []
    seconds = 0.0
    for index in range(rounds):
        time.sleep(2 if index % 2 else 0)
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--one-round", peer], capture_output=True, text=True, check=False
        )
        seconds += time.perf_counter() - begin
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        taken = json.loads(done.stdout.splitlines()[-1])
        kept.append({name: summed_up(samples) for name, samples in taken.items()})
    return kept, seconds


def main() -> None:
    """Run the rounds of every peer that is installed, or read kept ones, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", type=Path, help="keep here what the lines are made of")
    parser.add_argument("--from", dest="kept", type=Path, help="measure nothing; read what --json kept")
    parser.add_argument("--one-round", choices=list(PEERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: two are the fewest that can be compared")
    if arguments.one_round:
        print(json.dumps(PEERS[arguments.one_round]()))
        return
    if arguments.kept:
        for peer, kept in json.loads(arguments.kept.read_text(encoding="utf-8")).items():
            print(report(peer, kept["rounds"], kept["seconds"]))
        return
    found = {}
    for peer in PEERS:
        try:
            rounds, seconds = measured(peer, arguments.rounds)
        except RuntimeError as error:
            print(f"{peer:10} not measured: {error}")
            continue
        found[peer] = {"seconds": seconds, "rounds": rounds}
        print(report(peer, rounds, seconds), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
