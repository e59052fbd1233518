"""``measure``: what happens on each call, in which order, and what comes back."""

from __future__ import annotations

import dataclasses
import fcntl
import inspect
import operator
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import fake_nvml
import pytest
from gpu_world import GpuWorld, a_gpu_world
from nvml_machine import FIRST_UUID, SECOND_UUID

from collector.claims import lock_path, open_shared
from collector.errors import GpuNotFoundError, MachineError
from collector.instrument import MeasurementTier, TimingResult, UnlockedClockPolicy, measure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CALIBRATION = 3
MIB = 1 << 20


@pytest.fixture(name="world")
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuWorld:
    return a_gpu_world(tmp_path, monkeypatch)


@dataclass(frozen=True)
class NotedPolicy:
    """Writes down when it is applied and restored."""

    world: GpuWorld

    paces: ClassVar[bool] = False
    controls_clock: ClassVar[bool] = False
    says: ClassVar[str] = "noted"

    @contextmanager
    def applied(self, uuid: str) -> Iterator[None]:
        self.world.log.append(f"applied to {uuid}")
        try:
            yield
        finally:
            self.world.log.append("restored")


def timed_loop(world: GpuWorld) -> list[str]:
    """The diary from the first timed iteration on."""
    last = len(world.log) - 1 - world.log[::-1].index("new event")
    return world.log[last + 1 :]


def test_the_defaults_are_those_of_the_page() -> None:
    defaults = {name: p.default for name, p in inspect.signature(measure).parameters.items()}

    del defaults["fn"]
    assert defaults == {
        "warmup": 200, "iters": 30, "device": 0, "flush_l2": True, "policy": None, "min_duration_us": 10.0,
    }  # fmt: skip


def test_no_policy_is_the_unlocked_one_which_changes_nothing_and_says_that_the_clock_floated(
    world: GpuWorld,
) -> None:
    result = measure(world.kernel(100))

    assert result.policy == repr(UnlockedClockPolicy())
    assert "the clock floated" in result.tier_evidence[0]
    assert world.nvml.gpu()["written"] == []


def test_the_policy_is_applied_before_the_first_call_and_restored_after_the_last(world: GpuWorld) -> None:
    measure(world.kernel(100), policy=NotedPolicy(world))

    applied, restored = world.log.index(f"applied to {FIRST_UUID}"), world.log.index("restored")
    calls = [place for place, entry in enumerate(world.log) if entry == "kernel"]
    assert applied < calls[0]
    assert calls[-1] < restored


def test_the_policy_is_restored_when_the_call_raises(world: GpuWorld) -> None:
    def broken() -> None:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        measure(broken, policy=NotedPolicy(world))

    assert world.log[-1] == "restored"
    measure(world.kernel(100))  # and the GPU is free again


def test_two_hundred_calls_warm_up_before_any_event_exists(world: GpuWorld) -> None:
    result = measure(world.kernel(100))

    assert world.log[: world.log.index("new event")].count("kernel") == CALIBRATION + 200
    assert result.warmup_calls == 200


def test_warming_up_goes_on_until_a_clock_that_fell_is_back(world: GpuWorld) -> None:
    def dipping() -> None:
        world.launch(100)
        world.clock_mhz = 1700 if 180 < world.count("kernel") - CALIBRATION <= 220 else 1980

    result = measure(dipping)

    assert 220 < result.warmup_calls < 230
    assert result.clock_range_mhz == 0


def test_all_events_are_made_before_the_loop(world: GpuWorld) -> None:
    measure(world.kernel(100), iters=50)

    assert world.count("new event") == 2 + 2 * 50  # those of the probe first
    loop = timed_loop(world)
    assert loop.count("record") == 2 * 50
    assert "new event" not in loop


def test_each_iteration_clears_l2_before_the_first_event_and_reads_nvml_after_the_second(
    world: GpuWorld,
) -> None:
    measure(world.kernel(100))

    one = ["reset persisting lines", "flush", "drain", "record", "kernel", "record", "drain", "clock"]
    assert timed_loop(world) == 30 * one


def test_the_scratch_buffer_has_256_mib_or_twice_the_l2(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(world.kernel(100))
    torch: Any = sys.modules["torch"]
    known = torch.cuda.get_device_properties
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: _with_l2(known(index), 200 * MIB))
    measure(world.kernel(100))

    assert [entry for entry in world.log if entry.startswith("allocate")] == [
        f"allocate {256 * MIB} int8 on cuda",
        f"allocate {400 * MIB} int8 on cuda",
    ]


def _with_l2(properties: Any, size: int) -> Any:
    properties.L2_cache_size = size
    return properties


def test_without_flushing_the_cache_stays_warm_and_the_result_says_so(world: GpuWorld) -> None:
    result = measure(world.kernel(100), flush_l2=False)

    assert "flush" not in world.log
    assert result.cache_state == "warm"
    assert measure(world.kernel(100)).cache_state == "cold"


def test_no_program_is_started_to_read_the_clock(world: GpuWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)

    assert measure(world.kernel(100)).clock_cv_pct == 0.0


def test_a_call_below_the_floor_is_repeated_in_one_region_and_divided(world: GpuWorld) -> None:
    result = measure(world.kernel(1.0))

    assert result.inner_reps > 1
    assert timed_loop(world).count("kernel") == 30 * result.inner_reps
    assert result.median_ms < 0.010
    assert result.cache_state == "warm"  # calls after the first find what it left in L2


def test_a_call_above_the_floor_runs_once_and_the_floor_can_be_moved(world: GpuWorld) -> None:
    assert measure(world.kernel(20.0)).inner_reps == 1
    assert measure(world.kernel(20.0), min_duration_us=100.0).inner_reps == 5
    assert measure(world.kernel(1.0), min_duration_us=0.0).inner_reps == 1


def test_the_result_is_a_distribution_of_all_samples(world: GpuWorld) -> None:
    def varying() -> None:
        world.launch(100 + world.count("kernel") % 7)

    result = measure(varying, iters=50)

    assert result.n == len(result.samples_ms) == 50
    assert min(result.samples_ms) <= result.p10_ms < result.median_ms < result.p90_ms
    assert result.p10_ms < result.ci95_lo_ms <= result.median_ms <= result.ci95_hi_ms < result.p90_ms
    assert result.timer == "cuda-events"
    assert result.resolution_ms > 0


def test_identical_samples_give_an_identical_result(world: GpuWorld) -> None:
    assert measure(world.kernel(192.5)) == measure(world.kernel(192.5))


def test_a_result_converts_to_no_number(world: GpuWorld) -> None:
    result: Any = measure(world.kernel(100))

    with pytest.raises(
        TypeError, match=r"^float\(\) argument must be a string or a real number, not 'TimingResult'$"
    ):
        float(result)
    with pytest.raises(TypeError):
        int(result)
    with pytest.raises(TypeError):
        operator.index(result)
    with pytest.raises(TypeError):
        result * 2
    with pytest.raises(TypeError):
        f"{result:.3f}"
    assert not {"__float__", "__int__", "__index__"} & set(dir(TimingResult))


def test_a_result_cannot_be_changed(world: GpuWorld) -> None:
    result: Any = measure(world.kernel(100))

    with pytest.raises(dataclasses.FrozenInstanceError):
        result.median_ms = 0.0


def test_a_printed_result_shows_interval_and_tier_and_that_it_is_of_this_window_only(world: GpuWorld) -> None:
    result = measure(world.kernel(192.5))

    assert repr(result).startswith(
        f"TimingResult({result.median_ms:.5g} ms, 95 % interval {result.ci95_lo_ms:.5g} to "
        f"{result.ci95_hi_ms:.5g} ms (this window only)"
    )
    assert "tier B: the clock floated" in repr(result)
    assert "0.1955" not in repr(result).partition("tier")[2]


@pytest.mark.parametrize("iters", [29, 1, 0, -5])
def test_fewer_than_thirty_iterations_are_refused_before_anything_runs(world: GpuWorld, iters: int) -> None:
    with pytest.raises(ValueError, match=f"iters is {iters}: at least 30"):
        measure(world.kernel(100), iters=iters)

    assert world.log == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"warmup": -1}, "warmup is -1"),
        ({"min_duration_us": -1.0}, "min_duration_us is -1"),
        ({"min_duration_us": float("nan")}, "min_duration_us is nan"),
    ],
)
def test_numbers_that_cannot_be_are_refused(world: GpuWorld, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measure(world.kernel(100), **wrong)


def test_a_function_whose_call_does_no_work_is_refused(world: GpuWorld) -> None:
    async def later() -> None:
        """Do nothing yet."""

    for untimeable in (later, None, 3):
        with pytest.raises(TypeError, match="run is"):
            measure(untimeable)  # type: ignore[arg-type]
    assert world.log == []


def test_a_hardware_limit_in_any_single_iteration_makes_tier_c(world: GpuWorld) -> None:
    def throttled_once() -> None:
        world.launch(100)
        world.reasons = 0x40 if world.count("kernel") == CALIBRATION + 200 + 1 + 17 else 0

    result = measure(throttled_once)

    assert result.tier is MeasurementTier.C
    assert result.tier_evidence == ("hardware throttling: hardware thermal limit",)
    assert (result.throttle_fired, result.throttle_reasons) == (True, ("hardware thermal limit",))


def test_a_clock_that_varies_makes_tier_c_though_no_throttle_reason_is_given(world: GpuWorld) -> None:
    def swinging() -> None:
        world.launch(100)
        world.clock_mhz = 1980 if world.count("kernel") % 2 else 1485

    result = measure(swinging)

    assert result.tier is MeasurementTier.C
    assert result.clock_cv_pct == pytest.approx(100 * 247.5 / 1732.5)
    assert (result.clock_range_mhz, result.throttle_fired) == (495, False)


def test_without_nvml_the_clock_is_unknown_and_neither_steady_nor_zero(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)

    result = measure(world.kernel(100))

    assert result.tier is MeasurementTier.B
    assert (result.clock_cv_pct, result.clock_range_mhz, result.throttle_fired) == (None, None, None)
    assert any("no telemetry: the NVML binding cannot be imported" in why for why in result.tier_evidence)


def test_another_process_on_the_gpu_makes_tier_c_and_is_told_at_once(world: GpuWorld) -> None:
    world.nvml.change(processes=[4000, 4711])

    with pytest.warns(UserWarning, match="1 other processes used the GPU"):
        result = measure(world.kernel(100))

    assert result.tier is MeasurementTier.C


def test_another_device_is_measured_where_it_is_asked_for(world: GpuWorld) -> None:
    devices = set()

    def note() -> None:
        world.launch(100)
        devices.add(world.current_device)

    world.nvml.change(SECOND_UUID, errors={"nvmlDeviceGetHandleByUUID": fake_nvml.NVML_ERROR_GPU_IS_LOST})
    result = measure(note, device=1)

    assert devices == {1}
    assert world.current_device == 0  # as it was before
    assert "drain elsewhere" not in world.log
    assert any(SECOND_UUID in why for why in result.tier_evidence)  # NVML was asked about this GPU


def test_two_measurements_do_not_share_a_gpu(world: GpuWorld) -> None:
    with open_shared(lock_path(FIRST_UUID)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as a run does

        with pytest.raises(MachineError, match=f"something else measures on {FIRST_UUID}"):
            measure(world.kernel(100))
        assert measure(world.kernel(100), device=1).n == 30

    assert measure(world.kernel(100)).n == 30


def test_a_measurement_inside_a_measurement_is_an_error_and_no_deadlock(world: GpuWorld) -> None:
    with pytest.raises(MachineError, match="a measurement around this one"):
        measure(lambda: measure(world.kernel(100)))


def test_a_device_that_is_not_there_is_an_error(world: GpuWorld) -> None:
    for index in (2, -1):
        with pytest.raises(GpuNotFoundError, match=f"there is no CUDA device {index}: torch sees 2"):
            measure(world.kernel(100), device=index)


def test_a_machine_without_a_gpu_is_an_error_and_host_time_is_never_taken() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")

    with pytest.raises(MachineError, match=r"finds no CUDA device.*collect --timer wall"):
        measure(lambda: None)


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MachineError, match="torch cannot be imported"):
        measure(lambda: None)


def test_importing_the_instrument_loads_neither_torch_nor_cupti_nor_anything_of_the_store() -> None:
    program = (
        "import sys, collector.instrument\n"
        "print(sorted({'torch', 'cupti', 'pynvml', 'store', 'click', 'scipy', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "[]"
