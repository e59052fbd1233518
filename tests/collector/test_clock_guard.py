"""Clocks kept for a run and given back by real processes, whatever ends them; on a fake NVML."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import fake_nvml
import pytest
from click.testing import CliRunner
from nvml_machine import FIRST_UUID, SECOND_UUID, NvmlMachine, a_machine
from suite_files import a_suite_file

from collector import clock_guard, run
from collector.claims import ClockNote, note_path, read_note, write_note
from collector.cli import collect
from collector.errors import ClocksError, NothingMeasuredError
from collector.run import Plan, Watcher, collect_run
from collector.session import Session
from store.records import ClockRegime, Tier

ROOT = Path(__file__).parents[2]
SET, RESET = "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"
REFUSED = fake_nvml.NVML_ERROR_NO_PERMISSION
LIMIT_S = 60
NOTHING = "def bench_nothing():\n    return lambda: None\n"


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes and lock files lie in the temporary folder: each test gets one of its own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture
def machine_of_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvmlMachine:
    """Two GPUs; the workers that this process starts find the fakes."""
    machine = a_machine(tmp_path)
    for name, value in machine.environment().items():
        monkeypatch.setenv(name, value)
    return machine


# The note that outlives a killed run


def test_a_note_comes_back_as_it_was_written() -> None:
    note = ClockNote(FIRST_UUID, 4711, 1500, 612_345)

    write_note(note)

    assert read_note(FIRST_UUID) == note
    assert read_note(SECOND_UUID) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        json.dumps({"uuid": SECOND_UUID, "pid": 1, "mhz": 1500, "power_limit_mw": None}),
        json.dumps({"uuid": FIRST_UUID, "pid": 1, "mhz": "1500", "power_limit_mw": None}),
        json.dumps({"uuid": FIRST_UUID, "pid": 1, "mhz": 1500, "power_limit_mw": -1}),
    ],
)
def test_a_damaged_note_is_an_error_with_the_remedy(text: str) -> None:
    note_path(FIRST_UUID).write_text(text, encoding="utf-8")

    with pytest.raises(ClocksError, match=r"is damaged .*nvidia-smi -i \S+ -rgc.*then remove"):
        read_note(FIRST_UUID)


def test_a_link_in_the_place_of_a_note_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    note_path(FIRST_UUID).symlink_to(victim)

    with pytest.raises(ClocksError, match="cannot be read"):
        read_note(FIRST_UUID)
    write_note(ClockNote(FIRST_UUID, 1, 1500, None))

    assert victim.read_text(encoding="utf-8") == "precious"
    assert not note_path(FIRST_UUID).is_symlink()


def test_the_note_of_another_user_is_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    write_note(ClockNote(FIRST_UUID, 1, 1500, None))
    os.chown(note_path(FIRST_UUID), 4711, -1) if os.geteuid() == 0 else monkeypatch.setattr(
        os, "geteuid", lambda: 4711
    )

    with pytest.raises(ClocksError, match=r"user \d+ locked the clock .*let that user run collect once"):
        read_note(FIRST_UUID)


# Real processes: a parent that holds the clocks, its worker, and signals

HOLDER = """
    import os, signal, sys
    from pathlib import Path
    from collector.clock_guard import clocks_as_asked, undo_left_lock
    from collector.protocol import Job
    from collector.run import Plan, Watcher, gpu_lock
    from collector.session import Session
    from store.records import ClockRegime

    class Speaker(Watcher):
        def note(self, text):
            print(text, file=sys.stderr)

    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    regime, mhz, watts = ClockRegime(sys.argv[1]), int(sys.argv[2]) or None, float(sys.argv[3]) or None
    plan = Plan(repository=Path(), python=sys.executable, clocks=regime, clock_mhz=mhz, power_limit_w=watts)
    job = Job(root=os.getcwd(), suites=[], only=[], timer="wall", clocks=regime.value, gpu=sys.argv[4],
              visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"))
    session, watcher = Session(sys.executable, job), Speaker()
    try:
        with gpu_lock(session.loaded.gpu_uuid, watcher):
            undo_left_lock(session, watcher)
            with clocks_as_asked(session, plan, watcher):
                print("ready", session.collected.context, flush=True)
                if sys.stdin.readline():
                    raise RuntimeError("a bug in the middle of a pass")
    finally:
        session.close()
"""


def start_holder(
    machine: NvmlMachine,
    regime: str,
    mhz: int = 0,
    watts: float = 0,
    uuid: str = FIRST_UUID,
    **environment: str,
) -> subprocess.Popen[str]:
    """A process that asks for these clocks and keeps them until its input ends."""
    program = machine.path.with_name("holder.py")
    program.write_text(textwrap.dedent(HOLDER), encoding="utf-8")
    variables = machine.environment() | environment
    variables["PYTHONPATH"] += f":{ROOT}"
    return subprocess.Popen(
        [sys.executable, str(program), regime, str(mhz), str(watts), uuid],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
        cwd=machine.path.parent,
        text=True,
    )


def until_ready(holder: subprocess.Popen[str]) -> str:
    assert holder.stdout is not None
    line = holder.stdout.readline()
    assert line.startswith("ready"), holder.communicate(timeout=LIMIT_S)[1]
    return line


def test_a_run_locks_through_its_worker_and_gives_everything_back_at_its_end(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    machine.change(SECOND_UUID, power_limit_mw=612_345)

    holder = start_holder(machine, "locked", 1500, 450.5, SECOND_UUID, CUDA_VISIBLE_DEVICES="0")
    said = until_ready(holder)
    during, note = machine.gpu(SECOND_UUID), read_note(SECOND_UUID)
    _, complaints = holder.communicate(timeout=LIMIT_S)

    assert "'clocks.sm_mhz': {'value': 1500}, 'clocks.power_limit_w': {'value': 450.5}" in said
    assert (during["locked_mhz"], during["power_limit_mw"]) == (1500, 450_500)
    assert note == ClockNote(SECOND_UUID, holder.pid, 1500, 612_345)
    assert (holder.returncode, complaints) == (0, "")
    assert (machine.gpu(SECOND_UUID)["locked_mhz"], machine.gpu(SECOND_UUID)["power_limit_mw"]) == (
        None,
        612_345,
    )
    assert read_note(SECOND_UUID) is None
    assert machine.gpu(FIRST_UUID)["written"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_the_run_unlocks(tmp_path: Path, number: signal.Signals) -> None:
    machine = a_machine(tmp_path)
    holder = start_holder(machine, "locked", 1500)
    until_ready(holder)

    holder.send_signal(number)
    _, complaints = holder.communicate(timeout=LIMIT_S)

    assert "KeyboardInterrupt" in complaints
    assert machine.gpu()["written"] == [SET, RESET]
    assert read_note(FIRST_UUID) is None


def test_an_error_in_the_middle_of_a_run_unlocks(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    holder = start_holder(machine, "locked", 1500)
    until_ready(holder)

    _, complaints = holder.communicate("go\n", timeout=LIMIT_S)

    assert "a bug in the middle of a pass" in complaints
    assert machine.gpu()["written"] == [SET, RESET]


def test_the_lock_of_a_killed_run_is_undone_and_reported_by_the_next(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    killed = start_holder(machine, "locked", 1500, 450)
    until_ready(killed)
    killed.kill()
    killed.communicate(timeout=LIMIT_S)
    left = machine.gpu()

    following = start_holder(machine, "held")
    until_ready(following)
    at_start = machine.gpu()
    _, said = following.communicate(timeout=LIMIT_S)

    assert (left["locked_mhz"], left["power_limit_mw"]) == (1500, 450_000)
    assert (at_start["locked_mhz"], at_start["power_limit_mw"]) == (None, 700_000)
    assert said == (
        f"process {killed.pid} was killed and left the clock of {FIRST_UUID} locked at 1500 MHz: "
        "it is unlocked now, its power limit is 700 W again\n"
    )
    assert read_note(FIRST_UUID) is None


def test_a_left_lock_that_may_not_be_undone_stops_the_next_run_and_the_note_stays(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    machine.change(errors={RESET: REFUSED})
    write_note(ClockNote(FIRST_UUID, 4711, 1500, None))

    _, complaints = start_holder(machine, "free").communicate(timeout=LIMIT_S)

    assert "ClocksNotRestoredError" in complaints
    assert f"Have an administrator run `nvidia-smi -i {FIRST_UUID} -rgc`" in complaints
    assert read_note(FIRST_UUID) is not None


def test_a_lock_that_cannot_be_given_back_is_said_and_left_for_the_next_run(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    holder = start_holder(machine, "locked", 1500)
    until_ready(holder)
    machine.change(errors={RESET: REFUSED})

    _, said = holder.communicate(timeout=LIMIT_S)

    assert holder.returncode == 0
    assert f"the clock of {FIRST_UUID} is still locked at 1500 MHz" in said
    assert read_note(FIRST_UUID) is not None


def test_a_refused_lock_leaves_no_note(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    machine.change(errors={SET: REFUSED})

    _, complaints = start_holder(machine, "locked", 1500).communicate(timeout=LIMIT_S)

    assert "ClocksError: locking the SM clock at 1500 MHz" in complaints
    assert read_note(FIRST_UUID) is None


def test_the_clock_is_unlocked_though_the_worker_that_locked_it_is_dead(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    holder = start_holder(machine, "locked", 1500)
    until_ready(holder)
    for worker in children_of(holder.pid):
        os.kill(worker, signal.SIGKILL)

    holder.communicate(timeout=LIMIT_S)

    assert machine.gpu()["written"] == [SET, RESET]
    assert read_note(FIRST_UUID) is None


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


def test_a_run_that_verifies_writes_nothing(tmp_path: Path) -> None:
    machine = a_machine(tmp_path)
    machine.change(locked_mhz=1500)

    holder = start_holder(machine, "verify", 1500)
    said = until_ready(holder)
    holder.communicate(timeout=LIMIT_S)

    assert "'clocks.sm_mhz': {'value': 1500}" in said
    assert machine.gpu()["written"] == []


def a_window_message(pass_index: int, clock_mhz: int) -> dict[str, Any]:
    """What a worker sends of a window whose samples were all taken at this clock."""
    times = [0.25 + 0.0001 * i for i in range(10)]
    return {
        "pass_index": pass_index,
        "position": 0,
        "pid": 4000 + pass_index,
        "started_at": "2026-03-02T09:00:00+00:00",
        "quantity": "elapsed",
        "cold": True,
        "resolution_ms": 3.2e-5,
        "samples_ms": times,
        "latency_ms": [],
        "sum_ms": [],
        "copy_ms": [],
        "n_kernels": [],
        "launches": [],
        "pause_ms": [0.0] * 10,
        "sm_clock_mhz": [clock_mhz] * 10,
        "throttle_reasons": [0] * 10,
        "warmup_calls": 10,
        "warmup_ms": 25.0,
        "inner_reps": 1,
        "attempts": 1,
        "telemetry": {},
        "invalid": None,
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_impatient_second_signal_waits_until_the_clock_is_given_back(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(signal, "raise_signal", lambda received: steps.append(f"{received} goes on"))

    with clock_guard._undisturbed():
        os.kill(os.getpid(), number)
        steps.append("given back")

    assert steps == ["given back", f"{number} goes on"]


class SessionWithoutCuda(Session):
    """Loads and controls clocks as ever; where CUDA would be touched it looks at the fake NVML."""

    seen: list[int | None]
    interrupts = False
    sampled_at_mhz: int | None = None

    def probe(self) -> None:
        """See the clock before it is locked."""
        type(self).seen = [self._locked_mhz()]

    def run_pass(self, *arguments: Any) -> None:
        """See the clock while a pass would run."""
        del arguments
        type(self).seen.append(self._locked_mhz())
        if self.interrupts:
            raise KeyboardInterrupt
        if self.sampled_at_mhz is not None:
            (case,) = (case for case in self.loaded.cases if case.benchmark == "nothing")
            windows = self.collected.windows.setdefault(case.key, [])
            windows.append(a_window_message(len(windows), self.sampled_at_mhz))

    def _locked_mhz(self) -> int | None:
        mhz: int | None = NvmlMachine(Path(os.environ[fake_nvml.STATE_VARIABLE])).gpu()["locked_mhz"]
        return mhz


@pytest.fixture
def locked_plan(machine_of_fakes: NvmlMachine, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Eight passes at 1500 MHz."""
    monkeypatch.setattr(run, "Session", SessionWithoutCuda)
    folder = machine_of_fakes.path.parent
    return Plan(
        repository=folder,
        suites=(str(a_suite_file(folder, NOTHING)),),
        python=sys.executable,
        passes=8,
        timer="events",
        clocks=ClockRegime.LOCKED,
        clock_mhz=1500,
    )


@pytest.mark.parametrize("interrupts", [False, True])
def test_a_run_is_locked_during_its_passes_and_only_then(
    machine_of_fakes: NvmlMachine, locked_plan: Plan, monkeypatch: pytest.MonkeyPatch, *, interrupts: bool
) -> None:
    monkeypatch.setattr(SessionWithoutCuda, "interrupts", interrupts)
    write_note(ClockNote(FIRST_UUID, 4711, 1200, None))
    machine_of_fakes.change(locked_mhz=1200)

    with pytest.raises(KeyboardInterrupt if interrupts else NothingMeasuredError):
        collect_run(locked_plan, Watcher())

    assert SessionWithoutCuda.seen == [None] + [1500] * (1 if interrupts else 8)
    assert machine_of_fakes.gpu()["locked_mhz"] is None


@pytest.mark.parametrize(
    ("clock_mhz", "tier", "evidence"),
    [
        (1500, Tier.A, "locked clocks; 8 windows in 8 processes; 80 samples between 1500 and 1500 MHz"),
        (1980, Tier.C, "no sample was left to count"),
    ],
)
def test_samples_of_a_locked_run_count_only_at_the_clock_that_was_proven(
    locked_plan: Plan, monkeypatch: pytest.MonkeyPatch, clock_mhz: int, tier: Tier, evidence: str
) -> None:
    monkeypatch.setattr(SessionWithoutCuda, "sampled_at_mhz", clock_mhz)

    measured = collect_run(locked_plan, Watcher())

    (measurement,) = measured.measurements
    assert measurement.tier is tier
    assert measurement.tier_evidence[0].startswith(evidence)
    assert measured.header.clock_regime is ClockRegime.LOCKED
    assert "sm_mhz=1500" in measured.header.environment


@pytest.mark.parametrize("arguments", [["--clocks", "locked", "--clock-mhz", "1500"], ["--clocks", "verify"]])
def test_clocks_of_a_machine_without_a_gpu_are_an_error_before_anything_is_measured(
    tmp_path: Path, machine_of_fakes: NvmlMachine, arguments: list[str]
) -> None:
    machine_of_fakes.change_machine(gpus=[])
    suite = a_suite_file(tmp_path, NOTHING)

    result = CliRunner().invoke(collect, [*arguments, "--repo", str(tmp_path), "--suite", str(suite)])

    assert result.exit_code == 3
    assert "needs an NVIDIA GPU and none was found" in result.output
