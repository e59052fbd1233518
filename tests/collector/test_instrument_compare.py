"""``compare``: A B C C B A, a split budget, one way of timing, and ratios with intervals."""

from __future__ import annotations

import sys
import threading
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

import pytest
from gpu_world import GpuWorld, a_gpu_world

from collector.instrument import Budget, HeldClockPolicy, MixedTimersError, compare
from collector.window import Budget as WindowBudget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(name="world")
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuWorld:
    return a_gpu_world(tmp_path, monkeypatch)


def three(world: GpuWorld) -> dict[str, Callable[[], object]]:
    """Implementations of 10, 20 and 30 us."""
    return {name: world.kernel(us, name) for name, us in (("ours", 10), ("torch", 20), ("library", 30))}


def test_each_is_timed_twice_in_the_order_a_b_c_c_b_a(world: GpuWorld) -> None:
    compare(three(world), iterations=10, budget=Budget(warmup_ms=0.0))

    calls = [entry for entry in world.log if entry in ("ours", "torch", "library")]
    assert [name for name, _ in groupby(calls)] == ["ours", "torch", "library", "torch", "ours"]
    middle = [len(list(group)) for name, group in groupby(calls) if name == "library"]
    ends = [len(list(group)) for name, group in groupby(calls) if name == "ours"]
    assert middle == [sum(ends)]  # its two passes follow each other


def test_the_ratio_is_that_of_the_medians_to_the_first(world: GpuWorld) -> None:
    comparison = compare(three(world), iterations=10)

    assert [one.name for one in comparison.implementations] == ["ours", "torch", "library"]
    assert [one.ratio for one in comparison.implementations] == pytest.approx([1, 2, 3])
    assert comparison["torch"].median_ms == pytest.approx(0.020)
    assert (comparison["ours"].ratio_lo, comparison["ours"].ratio_hi) == (1, 1)


def test_intervals_of_the_ratio_lie_around_it(world: GpuWorld) -> None:
    def varying(us: float) -> Callable[[], None]:
        return lambda: world.launch(us + len(world.log) % 5)

    comparison = compare({"ours": varying(100), "torch": varying(150)}, iterations=60)

    other = comparison["torch"]
    assert other.ratio_lo < other.ratio < other.ratio_hi
    assert other.ratio_lo > 1.4
    assert other.ratio_hi < 1.6
    assert other.p10_ms < other.ci95_lo_ms <= other.median_ms <= other.ci95_hi_ms < other.p90_ms


def test_the_budget_is_split_over_the_two_passes_and_not_doubled() -> None:
    assert Budget is WindowBudget
    assert Budget().halved() == Budget(warmup_ms=12.5, measure_ms=50.0, iterations_min=5, iterations_max=100)


def test_each_pass_gets_half_of_the_iterations_and_of_the_warm_up(world: GpuWorld) -> None:
    comparison = compare(three(world), iterations=40, budget=Budget(warmup_ms=0.0))

    assert {len(one.samples) for one in comparison.implementations} == {40}
    assert world.count("torch") == 2 * (3 + 5 + 20)  # calibration, warm-up, timed


def test_without_a_count_each_pass_takes_between_five_and_a_hundred(world: GpuWorld) -> None:
    least = compare(three(world), budget=Budget(warmup_ms=0.0, measure_ms=0.001))
    most = compare(three(world), budget=Budget(warmup_ms=0.0, measure_ms=1e9))

    assert {len(one.samples) for one in least.implementations} == {2 * 5}
    assert {len(one.samples) for one in most.implementations} == {2 * 100}


def test_the_median_is_over_both_passes(world: GpuWorld) -> None:
    calls = iter(range(10_000))

    def faster_at_first() -> None:
        world.launch(10 if next(calls) < 3 + 5 + 10 else 20)

    comparison = compare(
        {"ours": faster_at_first, "torch": world.kernel(20)}, iterations=20, budget=Budget(warmup_ms=0.0)
    )

    busy = [sample.device_busy_ms for sample in comparison["ours"].samples]
    assert busy == pytest.approx([0.010] * 10 + [0.020] * 10)
    assert comparison["ours"].median_ms == pytest.approx(median([0.010] * 10 + [0.020] * 10))


def test_a_steady_drift_does_not_read_as_a_difference(world: GpuWorld) -> None:
    def drifting() -> None:
        world.launch(100 + 0.01 * (len(world.log) - log_begins))

    implementations = dict.fromkeys("abc", drifting)
    log_begins = len(world.log)
    comparison = compare(implementations, iterations=40, budget=Budget(warmup_ms=0.0))

    first_passes = [median(s.device_busy_ms for s in one.samples[:20]) for one in comparison.implementations]
    assert first_passes[2] / first_passes[0] > 1.03
    assert [one.ratio for one in comparison.implementations] == pytest.approx([1, 1, 1], abs=0.005)


@pytest.mark.parametrize("names", [[], ["ours"]])
def test_fewer_than_two_are_no_comparison(world: GpuWorld, names: list[str]) -> None:
    with pytest.raises(ValueError, match=f"{len(names)} implementation given: compare needs at least two"):
        compare({name: world.kernel(10) for name in names})

    assert world.log == []


@pytest.mark.parametrize("iterations", [0, -3])
def test_no_iterations_are_refused_in_the_numbers_of_the_caller(world: GpuWorld, iterations: int) -> None:
    with pytest.raises(ValueError, match=f"iterations is {iterations}: give at least 1"):
        compare(three(world), iterations=iterations)

    assert world.log == []


def test_a_warning_points_at_the_line_that_compares(world: GpuWorld) -> None:
    def writes_back() -> None:
        world.launch(2.0)
        world.copy(1.0)

    with pytest.warns(UserWarning, match="copies and memsets take") as caught:
        compare({"ours": writes_back, "torch": world.kernel(2.0)}, iterations=10)

    assert {warning.filename for warning in caught} == {__file__}


def launched_elsewhere(work: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    return call


@pytest.mark.filterwarnings("ignore:timed with CUDA events")
def test_two_implementations_timed_in_different_ways_are_not_compared(world: GpuWorld) -> None:
    implementations = {"ours": world.kernel(100), "torch": launched_elsewhere(world.kernel(100))}

    with pytest.raises(MixedTimersError, match=r"ours by cupti .* and torch by cuda-events") as caught:
        compare(implementations, iterations=10, allow_events=True)
    assert isinstance(caught.value, RuntimeError)
    assert "OffThreadLaunchError" in str(caught.value)


@pytest.mark.filterwarnings("ignore:timed with CUDA events")
def test_two_passes_of_one_implementation_timed_in_different_ways_are_not_pooled(world: GpuWorld) -> None:
    calls = iter(range(10_000))
    elsewhere = launched_elsewhere(world.kernel(100))

    def moves_to_a_thread() -> None:
        if next(calls) < 3 + 5 + 5:
            world.launch(100)
        else:
            elsewhere()

    with pytest.raises(MixedTimersError, match="ours by cuda-events"):
        compare(
            {"ours": moves_to_a_thread, "torch": world.kernel(100)},
            iterations=10,
            budget=Budget(warmup_ms=0.0),
            allow_events=True,
        )


@pytest.mark.filterwarnings("ignore:timed with CUDA events")
def test_cold_and_warm_regions_of_events_are_not_compared(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)

    with pytest.raises(MixedTimersError, match=r"with warm L2 and .* with cold L2"):
        compare({"ours": world.kernel(1), "torch": world.kernel(100)}, iterations=10, allow_events=True)


@pytest.mark.filterwarnings("ignore:timed with CUDA events")
def test_implementations_all_timed_by_events_are_compared_where_that_is_allowed(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)

    comparison = compare(
        {"ours": world.kernel(100), "torch": world.kernel(200)}, iterations=10, allow_events=True
    )

    assert "cuda-events" in repr(comparison)
    assert 1.9 < comparison["torch"].ratio < 2.0  # the events' own time is in both


def test_a_printed_comparison_shows_intervals_and_that_they_are_of_these_passes_only(world: GpuWorld) -> None:
    lines = repr(compare(three(world), iterations=10)).splitlines()

    assert lines == [
        "Comparison (cupti, SM clock 1980 to 1980 MHz; intervals of these two passes only):",
        "  ours     0.01 ms [0.01, 0.01]",
        "  torch    0.02 ms [0.02, 0.02]  x2 [2, 2] of ours",
        "  library  0.03 ms [0.03, 0.03]  x3 [3, 3] of ours",
    ]


def test_a_comparison_over_several_clocks_shows_them(world: GpuWorld) -> None:
    def at(clock_mhz: int) -> Callable[[], None]:
        def call() -> None:
            world.launch(10)
            world.clock_mhz = clock_mhz

        return call

    comparison = compare({"ours": at(1980), "torch": at(1755)}, iterations=10)
    assert comparison.sm_clocks_mhz == (1755, 1980)
    assert "SM clock 1755 to 1980 MHz" in repr(comparison)

    world.clock_mhz = None
    assert compare(three(world), iterations=10).sm_clocks_mhz is None


def test_an_implementation_that_was_not_compared_is_named_with_those_that_were(world: GpuWorld) -> None:
    with pytest.raises(KeyError, match="cublas was not compared; compared were ours, torch, library"):
        compare(three(world), iterations=10)["cublas"]


def test_a_pause_learnt_in_the_first_pass_is_kept_for_the_second(world: GpuWorld) -> None:
    pauses: dict[str, list[float]] = {"hot": [], "cool": []}

    def timed(name: str) -> Callable[[], None]:
        def call() -> None:
            world.launch(100)
            taken = pauses[name]
            taken.append(slept[-1] if slept else 0.0)
            slept.clear()
            limited = name == "hot" and len(taken) > 8 and max(taken[-8:]) < 0.002
            world.clock_mhz = 1700 if limited else 1980

        return call

    slept: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collector.window.time.sleep", slept.append)
        comparison = compare(
            {"hot": timed("hot"), "cool": timed("cool")}, iterations=20, policy=HeldClockPolicy()
        )

    assert {sample.sm_clock_mhz for sample in comparison["hot"].samples} == {1980}
    assert max(pauses["cool"]) == 0
    assert pauses["hot"][-1] >= 0.002
