"""A store as a team would have it: two GPUs, a line of commits, and everything that happens there.

A regression, an improvement, a drift, a benchmark that disappears for some commits, points of
tier B and C, runs on a branch, a run with uncommitted changes and benchmarks that fail.
``PYTHONPATH=.:tests python tests/dashboard/busy_store.py FILE`` writes one to look at.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders import (
    EPOCH,
    GPU_UUID,
    a_commit,
    a_failure,
    a_header,
    a_kernel,
    a_measurement,
    a_window,
)

from store.database import Database
from store.records import (
    BaselineKind,
    Case,
    Commit,
    Measurement,
    Outcome,
    Reason,
    Run,
    RunHeader,
    Stage,
    Standing,
    Tier,
    Verdict,
)
from store.runs import save_run
from store.verdicts import save_verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Interval

OTHER_GPU_UUID = "GPU-c94d1e70-77aa-4b0e-8d53-9f1e2d3c4b5a"
GPU_UUIDS = (GPU_UUID, OTHER_GPU_UUID)
BRANCH_COMMIT = 9001
_SUBJECTS = (
    "Fuse bias and activation in the MLP epilogue",
    "Cache rotary tables between layers",
    "Use cp.async for the key tiles",
    "Bump the kernel library to 2.11",
    "Split top-k by radix",
    "Avoid a copy before the scatter",
    "Tune block sizes for decode",
    "Reformat the attention launcher",
)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark of the store: its parameters, and how long it takes at first."""

    name: str
    parameters: dict[str, Any]
    median_ms: float
    kernel: str

    @property
    def case(self) -> Case:
        """The benchmark with its parameters."""
        return Case.of(self.name, self.parameters)


BENCHMARKS = (
    Benchmark("matmul_prefill", {"dtype": "bfloat16", "m": 4096}, 0.8123, "nvjet_tst_128x256_64x4"),
    Benchmark("matmul_decode", {"dtype": "bfloat16", "m": 16}, 0.02817, "nvjet_tst_64x16_64x12"),
    Benchmark("matmul_fp8", {"m": 4096}, 0.4391, "sm90_xmma_gemm_e4m3"),
    Benchmark("attention_prefill", {"causal": True, "tokens": 4096}, 1.2876, "flash_fwd_kernel"),
    Benchmark("attention_decode", {"batch": 32, "context": 8192}, 0.1434, "flash_fwd_splitkv_kernel"),
    Benchmark("rms_norm", {"rows": 8192}, 0.0561, "vectorized_layer_norm_kernel"),
    Benchmark("layer_norm", {"rows": 8192}, 0.0628, "vectorized_layer_norm_kernel"),
    Benchmark("softmax", {"dtype": "bfloat16", "rows": 8192}, 0.0836, "cunn_SoftMaxForward"),
    Benchmark("topk", {"k": 50, "vocabulary": 128256}, 0.2274, "radixSortKVInPlace"),
    Benchmark("scatter_add", {"rows": 65536}, 0.1187, "indexFuncLargeIndex"),
    Benchmark("gelu_mlp", {"hidden": 4096}, 1.6420, "nvjet_tst_256x128_64x4"),
    Benchmark("rotary", {"tokens": 4096}, 0.0387, "elementwise_kernel"),
)


@dataclass(frozen=True, slots=True)
class Story:
    """What happens on the line: at which commit number, out of ``n_commits``."""

    n_commits: int

    @property
    def regression(self) -> int:
        """From this commit on softmax is slower by 5.2 %."""
        return max(2, self.n_commits * 7 // 10)

    @property
    def improvement(self) -> int:
        """From this commit on attention_decode is faster by 6.6 %."""
        return max(2, self.n_commits // 2)

    @property
    def gap(self) -> range:
        """On these commits scatter_add does not exist."""
        return range(max(2, self.n_commits // 4), max(3, self.n_commits // 4 + self.n_commits // 10))

    def factor(self, benchmark: str, number: int) -> float:
        """How long a benchmark takes at a commit, against the first commit."""
        if benchmark == "softmax" and number >= self.regression:
            return 1.052
        if benchmark == "attention_decode" and number >= self.improvement:
            return 0.934
        if benchmark == "gelu_mlp":
            return 1 + 0.024 * number / self.n_commits
        if benchmark == "topk" and number == self.n_commits:
            return 1.017
        return 1.0


def fill_store(path: Path, *, n_commits: int = 60, samples: int = 30) -> Database:
    """Write the story into a store: a run on every commit and GPU, and one on a branch."""
    database = Database(path)
    story = Story(n_commits)
    for gpu in GPU_UUIDS:
        earlier: list[Run] = []
        verdicts: list[Verdict] = []
        for number in range(1, n_commits + 1):
            run = _run_on_line(story, number, gpu, samples)
            save_run(database, run)
            verdicts += [_judge(run, m, earlier) for m in run.measurements]
            earlier.append(run)
        save_verdicts(database, verdicts)
        if gpu == GPU_UUID:
            _add_branch_runs(database, story, earlier, samples)
    return database


def sha_of(number: int) -> str:
    """The id of a commit, as mixed as real ones."""
    return hashlib.sha1(f"commit {number}".encode(), usedforsecurity=False).hexdigest()


def _commit(number: int, **changes: Any) -> Commit:
    fields: dict[str, Any] = {
        "sha": sha_of(number),
        "parents": (sha_of(number - 1),) if number > 1 else (),
        "subject": _SUBJECTS[number % len(_SUBJECTS)],
    }
    return a_commit(number, **(fields | changes))


def _line(number: int) -> tuple[Commit, ...]:
    return tuple(_commit(n) for n in range(number, max(0, number - 200), -1))


def _header(number: int, run: int, **changes: Any) -> RunHeader:
    fields: dict[str, Any] = {"commit_sha": sha_of(number), "merge_base": sha_of(number)}
    return a_header(number, number=run, **(fields | changes))


def _run_on_line(story: Story, number: int, gpu: str, samples: int) -> Run:
    measurements, failures = [], []
    for benchmark in BENCHMARKS:
        if benchmark.name == "matmul_fp8" and gpu == OTHER_GPU_UUID:
            failures.append(
                a_failure(
                    benchmark.name,
                    case=benchmark.case,
                    stage=Stage.SETUP,
                    kind="OutOfMemoryError",
                    message="the benchmark asked for 6.0 GiB and 1.2 GiB were free: make 'm' smaller",
                )
            )
        elif not (benchmark.name == "scatter_add" and number in story.gap):
            measurements.append(_measurement(story, benchmark, number, gpu, samples))
    return Run(
        header=_header(number, GPU_UUIDS.index(gpu), gpu_uuid=gpu),
        measurements=tuple(measurements),
        failures=tuple(failures),
        history=_line(number),
    )


def _measurement(
    story: Story, benchmark: Benchmark, number: int, gpu: str, samples: int, *, factor: float = 1.0
) -> Measurement:
    rng = random.Random(f"{benchmark.name} {number} {gpu}")
    tier, evidence, passes = Tier.A, "held clocks; 8 windows, every kept sample at 1980 MHz", 8
    noise = rng.choice((0.0008, 0.0012, 0.0016))
    if benchmark.name in ("rotary", "matmul_decode") and number % 7 == 3:
        tier, evidence, passes = Tier.B, "5 windows where tier A asks for 6", 5
    if benchmark.name == "rms_norm" and number % 11 == 5:
        tier, evidence, noise = Tier.C, "throttled: the software power cap moved during 3 windows", 0.03
    machine = 1.0 if gpu == GPU_UUID else 1.013
    median = benchmark.median_ms * story.factor(benchmark.name, number) * machine * factor
    median *= math.exp(rng.gauss(0, 0.0006))
    return a_measurement(
        benchmark.name,
        parameters=benchmark.parameters,
        source=f"collector/builtin/{benchmark.name.split('_', maxsplit=1)[0]}.py:21",
        windows=tuple(
            a_window(i, median_ms=median * math.exp(rng.gauss(0, noise)), n=samples, seed=1000 * number + i)
            for i in range(passes)
        ),
        tier=tier,
        tier_evidence=(evidence,),
        kernels=(a_kernel(name=benchmark.kernel),),
        seed=number,
    )


def _add_branch_runs(database: Database, story: Story, earlier: Sequence[Run], samples: int) -> None:
    """A commit on a branch that slows the norms down, and somebody's uncommitted changes."""
    newest = story.n_commits
    moment = _commit(newest).authored_at
    tip = _commit(
        BRANCH_COMMIT,
        parents=(sha_of(newest),),
        subject="Try a two-pass layer norm",
        authored_at=moment,
        committed_at=moment,
    )
    norms = [benchmark for benchmark in BENCHMARKS if benchmark.name.endswith("norm")]
    for number, changes in ((7, {"commit_sha": tip.sha}), (8, {"dirty": True})):
        run = Run(
            header=_header(newest, number, **changes),
            measurements=tuple(
                _measurement(story, b, newest, GPU_UUID, samples, factor=1.031) for b in norms
            ),
            history=(tip, *_line(newest)) if number == 7 else _line(newest),
        )
        save_run(database, run)
        save_verdicts(database, [_judge(run, m, earlier) for m in run.measurements])


def _judge(run: Run, measurement: Measurement, earlier: Sequence[Run]) -> Verdict:
    """Compare with the newest earlier run before the last step: a plain stand-in for the judge."""
    series = run.series_key(measurement)
    before = [
        (r, m) for r in earlier[-6:] for m in r.measurements if r.series_key(m) == series and m.tier != Tier.C
    ]
    candidate, baseline = measurement.interval, before[0][1].interval if before else None
    outcome, reason = _outcome(measurement, candidate, baseline)
    moved = outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
    effect = low = high = None
    if baseline is not None and candidate.bounds and baseline.bounds:
        effect = candidate.bounds[1] / baseline.bounds[1] - 1
        low, high = (
            candidate.bounds[0] / baseline.bounds[1] - 1,
            candidate.bounds[2] / baseline.bounds[1] - 1,
        )
    confirmed = moved and effect is not None and abs(effect) >= 0.02
    return Verdict(
        run_id=run.header.run_id,
        series=series,
        outcome=outcome,
        reason=reason,
        message=f"{outcome.lower()}: {reason} against the run before the last five",
        standing=Standing.CONFIRMED if confirmed else Standing.FLAGGED if moved else Standing.NONE,
        tier=measurement.tier,
        windows=candidate.windows,
        candidate=candidate,
        baseline=baseline,
        baseline_kind=BaselineKind.NONE if baseline is None else BaselineKind.SINGLE,
        baseline_run_ids=tuple(r.header.run_id for r, _ in before[:1]),
        effect=effect,
        effect_low=low,
        effect_high=high,
        judged_at=EPOCH,
    )


def _outcome(
    measurement: Measurement, candidate: Interval, baseline: Interval | None
) -> tuple[Outcome, Reason]:
    if measurement.tier is Tier.C:
        return Outcome.INCONCLUSIVE, Reason.TIER_TOO_LOW
    if baseline is None or baseline.bounds is None or candidate.bounds is None:
        return Outcome.INCONCLUSIVE, Reason.NO_BASELINE
    if candidate.bounds[0] > baseline.bounds[2]:
        return Outcome.REGRESSED, Reason.INTERVALS_APART
    if candidate.bounds[2] < baseline.bounds[0]:
        return Outcome.IMPROVED, Reason.INTERVALS_APART
    return Outcome.UNCHANGED, Reason.INTERVALS_OVERLAP


if __name__ == "__main__":
    fill_store(Path(sys.argv[1]))
