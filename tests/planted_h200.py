"""Real runs of an H200 with something planted in the last of them: what a comment is shown with.

Ten runs of one commit are given to ten commits in a row. The last is measured twice here, and in
both sessions one benchmark is slower, one faster, one failed, and one is called anew.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from store.bundle import read_bundle
from store.folding import fold_windows
from store.records import Case, Failure, Measurement, Run, Stage, Window

FOLDER = Path(__file__).parent / "data/h200/aa"
SLOWER = "softmax"
FASTER = "gelu_mlp"
FAILED = "matmul_fp8"
NEW = "scatter_add"
SLOWDOWN, SPEEDUP = 1.047, 0.921


def planted_runs() -> list[Run]:
    """The history, oldest first, and two sessions of the commit that changed something."""
    runs = [read_bundle(path) for path in sorted(FOLDER.glob("*.kwrun"))]
    *history, last = [_moved(run, len(runs) - 1 - i) for i, run in enumerate(runs)]
    again = replace(
        history[2],
        header=replace(
            last.header,
            run_id="7c1d52e0-9b1f-4f6e-8a53-2f4d1c0baa02",
            started_at=last.header.ended_at + timedelta(seconds=5),
            ended_at=last.header.ended_at + timedelta(seconds=65),
        ),
        history=last.history,
    )
    return [*history, _planted(last), _planted(again)]


def _moved(run: Run, generations: int) -> Run:
    """The run as if it stood alone, on an earlier commit: so many generations before its own."""
    history = run.history[generations:]
    header = replace(run.header, commit_sha=history[0].sha, merge_base=history[0].sha, aa_study=None)
    return replace(run, header=header, history=history)


def _planted(run: Run) -> Run:
    kept = [m for m in run.measurements if m.case.benchmark != FAILED]
    failed = next(m for m in run.measurements if m.case.benchmark == FAILED)
    failure = Failure(
        case=failed.case,
        stage=Stage.CALL,
        kind="RuntimeError",
        message="CUDA error: an illegal memory access was encountered",
        source=failed.source,
        log="",
        pass_index=0,
    )
    return replace(run, measurements=tuple(map(_changed, kept)), failures=(failure,))


def _changed(measurement: Measurement) -> Measurement:
    name = measurement.case.benchmark
    if name == SLOWER:
        kernels = tuple(replace(k, registers=k.registers + 24) for k in measurement.kernels)
        return replace(_scaled(measurement, SLOWDOWN), kernels=kernels)
    if name == FASTER:
        return _scaled(measurement, SPEEDUP)
    if name == NEW:
        return replace(measurement, case=Case.of("scatter_add_sorted", dict(measurement.case.parameters)))
    return measurement


def _scaled(measurement: Measurement, factor: float) -> Measurement:
    def scaled(window: Window) -> Window:
        return replace(window, samples_ms=tuple(factor * sample for sample in window.samples_ms))

    windows = tuple(map(scaled, measurement.windows))
    kept = [window.kept_ms for window in windows if window.counts]
    interval = fold_windows(kept, resolution=measurement.resolution_ms)
    return replace(measurement, windows=windows, interval=interval)
