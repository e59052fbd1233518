"""What the doctor makes of machines, and that the command finds out about this one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from nvml_machine import FIRST_UUID, NvmlMachine, a_gpu, a_machine

from collector.cli import collect
from collector.diagnosis import Diagnosis, diagnose
from collector.doctor import as_json, as_text, examine_machine
from collector.examination import examine
from collector.findings import Finding, Level
from collector.pacing import REASON_HW_THERMAL, REASON_SW_POWER_CAP
from collector.protocol import Job
from store.bundle import read_bundle
from store.records import Tier

if TYPE_CHECKING:
    from click.testing import Result

    from collector.protocol import JsonReading

RECORDED = sorted((Path(__file__).parents[1] / "data" / "h200").glob("*.kwrun"))
UUID = "GPU-258f535b-999d-058c-3642-767b7fb8d4f0"
GONE = object()  # in a test's changes: this reading does not exist


def an_h200(**changes: Any) -> dict[str, JsonReading]:
    """Readings of a machine in good order; double underscores stand for dots.

    A change is a value, an exception that stood in its way, or ``GONE``.
    """
    values: dict[str, Any] = {
        "cuda.works": True,
        "cupti.drop_counter_proven": True,
        "cupti.version": "13.0.85",
        "cupti.works": True,
        "cupti_python.version": "13.0.1",
        "git.version": "2.43.0",
        "gpu.clock_reasons": 1,
        "gpu.compute_mode": 0,
        "gpu.cuda_driver": "13.0",
        "gpu.driver": "580.159.04",
        "gpu.ecc": True,
        "gpu.found": True,
        "gpu.mig": False,
        "gpu.name": "NVIDIA H200",
        "gpu.persistence_mode": True,
        "gpu.power_limit_default_w": 700.0,
        "gpu.power_limit_w": 700.0,
        "gpu.processes": 0,
        "gpu.sm_clock_application_mhz": 1980,
        "gpu.sm_clock_max_mhz": 1980,
        "gpu.sm_clock_mhz": 345,
        "gpu.throttle.hw_power_brake": 0,
        "gpu.throttle.hw_thermal": 0,
        "gpu.throttle.power_cap": 0,
        "gpu.throttle.sync_boost": 0,
        "gpu.throttle.thermal": 0,
        "gpu.uuid": UUID,
        "gpu.virtualization_mode": 1,
        "host.container": False,
        "host.device_files": 1,
        "host.kernel_module": True,
        "host.may_lock_clocks": False,
        "host.worker_memory_bytes": 120 * 2**30,
        "host.wsl": False,
        "nvml.works": True,
        "python.version": "3.12.3",
        "store.folder": "/srv/bench",
        "store.free_bytes": 90 * 2**30,
        "torch.cuda": "13.0",
        "torch.import": True,
        "torch.version": "2.11.0+cu130",
    }
    values |= {name.replace("__", "."): value for name, value in changes.items()}
    return {name: _reading(value) for name, value in values.items() if value is not GONE}


def _reading(value: Any) -> JsonReading:
    return {"error": str(value)} if isinstance(value, Exception) else {"value": value}


def no_gpu(**changes: Any) -> dict[str, JsonReading]:
    """Readings of a machine without an NVIDIA GPU."""
    readings = {
        name: reading
        for name, reading in an_h200().items()
        if not name.startswith(("gpu.", "cuda.", "cupti", "nvml."))
    }
    changed = {
        "nvml.works": Exception("NVML does not answer: NVML Shared Library Not Found"),
        "gpu.found": False,
        "host.kernel_module": False,
        "host.device_files": 0,
        "torch.version": "2.11.0+cpu",
        "torch.cuda": "none",
    } | {name.replace("__", "."): value for name, value in changes.items()}
    return readings | {name: _reading(value) for name, value in changed.items()}


def about(diagnosis: Diagnosis, subject: str) -> Finding:
    """The finding on one subject."""
    (finding,) = [f for f in diagnosis.findings if f.subject == subject]
    return finding


def test_a_machine_in_good_order_reaches_tier_a_without_any_privilege() -> None:
    diagnosis = diagnose(an_h200(), timer="auto")

    assert (diagnosis.can_measure, diagnosis.timer, diagnosis.best_tier) == (True, "cupti", Tier.A)
    assert {finding.level for finding in diagnosis.findings} == {Level.FINE}
    assert "may not lock clocks" in about(diagnosis, "permissions").message


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_h200_that_was_measured_is_found_able_to_measure_at_tier_a(path: Path) -> None:
    context = read_bundle(path).header.context
    recorded = {
        name: _reading(r.value if r.error is None else Exception(r.error)) for name, r in context.items()
    }

    diagnosis = diagnose(recorded, timer="auto")

    assert (diagnosis.timer, diagnosis.best_tier) == ("cupti", Tier.A)
    assert [f.message for f in diagnosis.findings if f.level is not Level.FINE] == []


@pytest.mark.parametrize(
    ("changes", "subject", "says", "remedy"),
    [
        ({"gpu__processes": 2}, "other processes", "2 use this GPU", "nvidia-smi shows which"),
        ({"gpu__mig": True}, "MIG", "cut into instances", "-mig 0"),
        ({"gpu__compute_mode": 2}, "compute mode", "prohibited", "-c DEFAULT"),
        ({"torch__cuda": "none", "torch__version": "2.11.0+cpu"}, "torch", "without CUDA", "CUDA build"),
        (
            {
                "torch__version": ImportError("no torch"),
                "torch__import": ImportError("libcudart.so.13 missing"),
            },
            "torch",
            "libcudart.so.13 missing",
            "--python",
        ),
        ({"cuda__works": RuntimeError("CUDA error 804")}, "CUDA", "CUDA error 804", "match torch and driver"),
        ({"gpu__uuid": Exception("GPU is lost")}, "GPU", "GPU is lost", "reboot"),
        ({"gpu__found": Exception("there is no GPU 7"), "gpu__uuid": GONE}, "GPU", "there is no GPU 7", ""),
        ({"worker__died": "ended with status -11; its log: Fatal"}, "worker", "status -11", "--python"),
        ({"store__free_bytes": 2**20}, "store", "0.0 GiB free in /srv/bench", "another disk"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_leaves_no_numbers_is_a_problem_with_its_remedy(
    changes: dict[str, Any], subject: str, says: str, remedy: str
) -> None:
    diagnosis = diagnose(an_h200(**changes), timer="auto")

    finding = about(diagnosis, subject)
    assert finding.level is Level.PROBLEM
    assert says in finding.message
    assert remedy in finding.remedy
    assert finding.meaning
    assert finding.remedy
    assert (diagnosis.can_measure, diagnosis.best_tier) == (False, None)
    assert diagnosis.findings[0].level is Level.PROBLEM


@pytest.mark.parametrize(
    ("changes", "subject", "says", "tier"),
    [
        ({"gpu__persistence_mode": False}, "persistence", "off", Tier.A),
        ({"gpu__power_limit_w": 500.0}, "power limit", "500 W, 700 W by default", Tier.A),
        ({"gpu__sm_clock_application_mhz": 1200}, "clocks", "1200 MHz of 1980 MHz", Tier.A),
        ({"gpu__sm_clock_mhz": Exception("Not Supported")}, "clocks", "Not Supported", Tier.C),
        ({"gpu__clock_reasons": REASON_SW_POWER_CAP}, "throttling", "power limit", Tier.B),
        ({"gpu__clock_reasons": REASON_HW_THERMAL}, "throttling", "hardware thermal limit", Tier.C),
        ({"gpu__clock_reasons": 1 << 14}, "throttling", "unknown reason 0x4000", Tier.B),
        ({"gpu__clock_reasons": Exception("no answer")}, "throttling", "no answer", Tier.A),
        ({"gpu__throttle__hw_thermal": Exception("not counted")}, "throttle counters", "hw_thermal", Tier.A),
        ({"gpu__processes": Exception("No Permission")}, "other processes", "No Permission", Tier.A),
        ({"gpu__virtualization_mode": 2}, "virtualisation", "vGPU", Tier.B),
        ({"host__wsl": True}, "WSL", "Windows", Tier.B),
        ({"cupti__drop_counter_proven": False}, "CUPTI losses", "does not count", Tier.A),
        ({"env__CUDA_INJECTION64_PATH": "/opt/nsys.so"}, "other profilers", "/opt/nsys.so", Tier.A),
        ({"host__worker_memory_bytes": 2**30}, "memory", "1.0 GiB", Tier.A),
        ({"store__free_bytes": 2**29}, "store", "0.5 GiB", Tier.A),
        ({"store__free_bytes": Exception("no such folder")}, "store", "no such folder", Tier.A),
        ({"git__version": Exception("no git")}, "git", "no git", Tier.A),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_makes_numbers_say_less_is_a_warning_that_names_the_tier(
    changes: dict[str, Any], subject: str, says: str, tier: Tier
) -> None:
    diagnosis = diagnose(an_h200(**changes), timer="auto")

    finding = about(diagnosis, subject)
    assert finding.level is Level.WARNING
    assert says in finding.message
    assert finding.meaning
    assert finding.remedy
    assert (diagnosis.can_measure, diagnosis.best_tier) == (True, tier)


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"cupti__works": Exception("ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")}, "end the other profiler"),
        ({"cupti__works": Exception("ERROR_INSUFFICIENT_PRIVILEGES")}, "RestrictProfilingToAdminUsers=0"),
        ({"cupti__works": Exception("ERROR_NOT_INITIALIZED (15)")}, "update the NVIDIA driver"),
        ({"cupti__works": Exception("0 records"), "cupti_python__version": "12.8.0"}, "cupti_python 12"),
        ({"cupti__works": Exception("unsupported"), "gpu__cuda_driver": "12.4"}, "it is of CUDA 12.4"),
        (
            {
                "cupti__works": ImportError("cupti"),
                "cupti_python__version": ImportError(),
                "cupti__version": GONE,
            },
            "install cupti-python",
        ),
        ({"cupti__works": Exception("left no trace on the device")}, "--timer events"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_cupti_that_does_not_work_is_a_problem_of_the_default_timer_alone(
    changes: dict[str, Any], remedy: str
) -> None:
    changes = {"cupti__drop_counter_proven": GONE} | changes
    diagnosis = diagnose(an_h200(**changes), timer="auto")

    assert about(diagnosis, "CUPTI").level is Level.PROBLEM
    assert remedy in about(diagnosis, "CUPTI").remedy
    assert diagnose(an_h200(**changes), timer="events").best_tier is Tier.A


def test_without_a_gpu_the_host_clock_measures_at_tier_c() -> None:
    diagnosis = diagnose(no_gpu(), timer="auto")

    assert (diagnosis.can_measure, diagnosis.timer, diagnosis.best_tier) == (True, "wall", Tier.C)
    assert "install its driver" in about(diagnosis, "GPU").remedy


@pytest.mark.parametrize("timer", ["cupti", "events"])
def test_a_timer_that_needs_a_gpu_cannot_measure_without_one(timer: str) -> None:
    assert not diagnose(no_gpu(), timer=timer).can_measure


def test_the_host_clock_beside_a_gpu_is_tier_c() -> None:
    assert diagnose(an_h200(), timer="wall").best_tier is Tier.C


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"host__kernel_module": True, "host__container": True}, "start this container with --gpus all"),
        ({"host__kernel_module": True}, "nvidia-modprobe"),
        ({"nvml__works": Exception("Driver/library version mismatch")}, "reboot"),
        ({"nvml__works": Exception("the NVML binding cannot be imported (x)")}, "install nvidia-ml-py"),
        ({"env__CUDA_VISIBLE_DEVICES": "-1"}, "unset it"),
        (
            {
                "env__CUDA_VISIBLE_DEVICES": "0,banana",
                "gpu__found": Exception("there is no GPU 1"),
                "nvml__works": True,
            },
            "correct or unset CUDA_VISIBLE_DEVICES",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_gpu_that_is_not_seen_is_explained(changes: dict[str, Any], remedy: str) -> None:
    assert remedy in about(diagnose(no_gpu(**changes), timer="auto"), "GPU").remedy


def test_suites_in_pure_python_can_be_measured_without_torch() -> None:
    diagnosis = diagnose(no_gpu(torch__version=Exception("torch is not installed")), timer="auto")

    assert diagnosis.can_measure
    assert about(diagnosis, "torch").level is Level.WARNING


def test_the_text_tells_each_remedy_and_ends_with_the_answer() -> None:
    text = as_text(diagnose(an_h200(gpu__persistence_mode=False), timer="auto"))

    first, *_, last = text.splitlines()
    assert first.startswith("warning  persistence")
    assert f"what to do: nvidia-smi -i {UUID} -pm 1" in text
    assert last == "This machine can measure: timer cupti, tier A at best."


def test_the_text_says_that_nothing_can_be_measured() -> None:
    last = as_text(diagnose(an_h200(gpu__mig=True, gpu__processes=1), timer="auto")).splitlines()[-1]

    assert last == "This machine cannot measure as asked: 2 problems."


def test_the_json_holds_findings_and_readings() -> None:
    readings = an_h200(gpu__sm_clock_mhz=Exception("Not Supported"))

    document = json.loads(json.dumps(as_json(diagnose(readings, timer="auto"), readings)))

    assert (document["can_measure"], document["best_tier"]) == (True, "C")
    assert document["findings"][0]["limits_tier_to"] == "C"
    assert document["readings"]["gpu.sm_clock_mhz"] == {"error": "Not Supported"}


# The command, on this machine


def run_doctor(*arguments: str) -> Result:
    return CliRunner().invoke(collect, [*arguments])


@pytest.fixture(name="hidden_gpus")
def _hidden_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tests run on a machine with a GPU, it is hidden."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")


@pytest.mark.usefixtures("hidden_gpus")
def test_this_machine_is_examined_in_a_worker_and_measures_with_the_host_clock() -> None:
    result = run_doctor("doctor", "--format", "json")

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (document["timer"], document["best_tier"]) == ("wall", "C")
    assert document["readings"]["python.executable"] == {"value": sys.executable}
    assert document["readings"]["torch.import"] == {"value": True}


@pytest.mark.usefixtures("hidden_gpus")
def test_a_gpu_that_is_asked_for_and_not_there_is_exit_3() -> None:
    result = run_doctor("--format", "json", "doctor", "--gpu", "GPU-00000000-no-such")

    assert result.exit_code == 3
    assert "GPU-00000000-no-such" in json.loads(result.stdout)["findings"][0]["message"]


@pytest.mark.parametrize(
    ("python", "says"),
    [("/nowhere/python", "could not be started"), ("/bin/false", "ended with status 1")],
)
def test_an_interpreter_that_is_none_is_a_problem(python: str, says: str) -> None:
    result = run_doctor("doctor", "--python", python)

    assert result.exit_code == 3
    assert "problem" in result.stdout
    assert says in result.stdout


def test_a_store_whose_folder_does_not_exist_is_told(tmp_path: Path) -> None:
    readings = examine_machine(
        python="/bin/false", gpu=None, timer="wall", store_url=str(tmp_path / "none" / "runs.duckdb")
    )

    assert "No such file" in readings["store.free_bytes"]["error"]


# NVML, played by a fake


def examined(machine: NvmlMachine, monkeypatch: pytest.MonkeyPatch) -> dict[str, JsonReading]:
    """What a worker would read on this machine."""
    machine.use_here(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    job = Job(
        root="/", suites=[], only=[], timer="auto", clocks="free", gpu=None, visible_devices="0", examine=True
    )
    readings: dict[str, JsonReading] = {}
    for group in examine(job):
        readings |= group
    return readings


def test_every_process_on_the_gpu_is_somebody_elses_since_ours_has_not_touched_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = examined(a_machine(tmp_path, a_gpu(FIRST_UUID, processes=[71, 72])), monkeypatch)

    assert readings["gpu.processes"] == {"value": 2}
    assert readings["gpu.uuid"] == {"value": FIRST_UUID}
    assert about(diagnose(readings, timer="auto"), "other processes").level is Level.PROBLEM


def test_nothing_is_written_to_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = a_machine(tmp_path)

    examined(machine, monkeypatch)

    assert machine.gpu()["written"] == []


def test_a_gpu_without_a_readable_clock_is_tier_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = a_machine(tmp_path, a_gpu(FIRST_UUID, errors={"nvmlDeviceGetClockInfo": 3}))

    readings = examined(machine, monkeypatch)

    assert about(diagnose(readings, timer="auto"), "clocks").limit is Tier.C
