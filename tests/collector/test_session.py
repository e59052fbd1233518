"""Passes in real worker processes: what a bad benchmark costs, and how windows are spread."""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
from real_workers import (
    a_session,
    alive,
    benchmarks,
    run_passes,
    the_failure,
    until,
    windows_of,
    with_good_neighbours,
)

from collector.errors import WorkerError

if TYPE_CHECKING:
    from pathlib import Path

    from collector.loaded import CaseInfo
    from collector.session import Session


def test_a_worker_that_is_killed_from_outside_costs_the_running_benchmark(
    bare_python: str, tmp_path: Path
) -> None:
    source = with_good_neighbours(
        """
        import os, pathlib, time
        def bench_victim():
            pathlib.Path("pid").write_text(str(os.getpid()))
            time.sleep(30)
        """
    )
    pid_file = tmp_path / "pid"

    def kill() -> None:
        os.kill(int(until(lambda: pid_file.exists() and pid_file.read_text())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    with a_session(bare_python, tmp_path, source) as session:
        killer.start()
        run_passes(session)
        killer.join()
        failure = the_failure(session)
        neighbours = [len(windows_of(session, name)) for name in ("before", "after")]

    assert failure["kind"] == "signal-9"
    assert neighbours == [2, 2]


def test_a_host_that_is_killed_while_it_measures_costs_the_running_benchmark(
    bare_python: str, tmp_path: Path
) -> None:
    source = with_good_neighbours(
        """
        import os, signal, time
        def bench_patricide():
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(30)
        """
    )

    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session)
        failure = the_failure(session)
        neighbours = [len(windows_of(session, name)) for name in ("before", "after")]

    assert (failure["kind"], failure["case"]) == ("signal-9", '["patricide",{}]')
    assert neighbours == [2, 2]


def test_a_host_that_dies_between_passes_is_started_again(bare_python: str, tmp_path: Path) -> None:
    with a_session(bare_python, tmp_path, benchmarks("x", "y")) as session:
        run_passes(session, passes=1)
        _kill_host(session)
        session.run_pass(1, 7, lambda _case: None)
        counts = [len(windows_of(session, name)) for name in ("x", "y")]

    assert counts == [2, 2]
    assert session.collected.failures == []


def test_hosts_that_die_again_and_again_end_the_run_with_their_last_words(
    bare_python: str, tmp_path: Path
) -> None:
    source = benchmarks("x") + "\nimport os, sys\nos.register_at_fork(after_in_child=lambda: os._exit(3))"

    with a_session(bare_python, tmp_path, source) as session, pytest.raises(WorkerError) as told:
        run_passes(session)

    assert "two processes in a row ended before their first case, the last with status 3" in str(told.value)


def test_a_window_that_the_timer_refuses_is_asked_for_again_in_the_next_pass(
    bare_python: str, tmp_path: Path
) -> None:
    # In the first pass the clock stands still for this benchmark, which the timer never takes for a time.
    source = with_good_neighbours(
        """
        import pathlib, time
        mark, real = pathlib.Path("seen"), time.perf_counter_ns
        def bench_fast():
            time.perf_counter_ns = real if mark.exists() else lambda: 0
            mark.touch()
            return lambda: None
        def bench_reset():
            time.perf_counter_ns = real
            return lambda: None
        """
    )

    with a_session(bare_python, tmp_path, source) as session:
        run_one_by_one(session, passes=2)
        failure = the_failure(session)
        windows = windows_of(session, "fast")

    assert (failure["stage"], failure["kind"], failure["pass_index"]) == ("measure", "TimerFloorError", 0)
    assert [window["pass_index"] for window in windows] == [1]


def run_one_by_one(session: Session, passes: int) -> None:
    """Run passes whose seed puts the benchmark ``fast`` last, so that it disturbs nobody else."""
    for pass_index in range(passes):
        seed = next(s for s in range(1000) if _order(session, s, pass_index)[-1] == "fast")
        session.run_pass(pass_index, seed, lambda _case: None)


def _order(session: Session, seed: int, pass_index: int) -> list[str]:
    """The order that a seed gives, by the rule that the documentation of runs promises."""
    order = [case.benchmark for case in session.loaded.cases]
    random.Random(f"{seed}/{pass_index}").shuffle(order)
    return order


def test_every_pass_is_a_fresh_process_in_which_every_case_has_one_window(
    bare_python: str, tmp_path: Path
) -> None:
    with a_session(bare_python, tmp_path, benchmarks("x", "y", "z")) as session:
        run_passes(session, passes=3)
        pids = {name: [w["pid"] for w in windows_of(session, name)] for name in "xyz"}

    assert pids["x"] == pids["y"] == pids["z"]
    assert len(set(pids["x"])) == 3


def _positions(python: str, root: Path) -> list[list[tuple[int, str]]]:
    """What ran at which position of each of three passes."""
    with a_session(python, root, benchmarks(*"uvwxyz")) as session:
        run_passes(session, passes=3)
        return [
            sorted((windows_of(session, name)[index]["position"], name) for name in "uvwxyz")
            for index in range(3)
        ]


def test_the_order_differs_between_passes_and_is_the_same_for_the_same_seed(
    bare_python: str, tmp_path: Path
) -> None:
    first, again = _positions(bare_python, tmp_path), _positions(bare_python, tmp_path)

    assert first == again
    assert [[position for position, _ in one] for one in first] == [[0, 1, 2, 3, 4, 5]] * 3
    assert len({tuple(name for _, name in one) for one in first}) == 3


def test_cases_run_in_the_order_that_is_recorded(bare_python: str, tmp_path: Path) -> None:
    finished: list[str] = []

    def note(case: CaseInfo) -> None:
        finished.append(case.benchmark)

    with a_session(bare_python, tmp_path, benchmarks(*"uvwxyz")) as session:
        session.run_pass(0, 7, note)
        begun = sorted((windows_of(session, name)[0]["started_at"], name) for name in "uvwxyz")
        placed = sorted((windows_of(session, name)[0]["position"], name) for name in "uvwxyz")

    assert [name for _, name in begun] == [name for _, name in placed] == finished


def test_suites_that_start_threads_get_a_fresh_interpreter_for_every_pass(
    bare_python: str, tmp_path: Path
) -> None:
    source = f"""
import os, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
{benchmarks("x", "y")}
def bench_crash(): return lambda: os._exit(1)
"""

    with a_session(bare_python, tmp_path, source) as session:
        session.probe()
        run_passes(session, passes=3)
        windows = {name: windows_of(session, name) for name in "xy"}
        failure = the_failure(session)

    assert session.loaded.fork_refused == "importing the suites started threads"
    assert [len({w["pid"] for w in windows[name]}) for name in "xy"] == [3, 3]
    assert failure["kind"] == "exit-1"


def test_no_process_of_a_closed_session_survives(bare_python: str, tmp_path: Path) -> None:
    source = """
    import subprocess, pathlib
    def bench_x():
        child = subprocess.Popen(["sleep", "60"])
        pathlib.Path("child").write_text(str(child.pid))
        return lambda: None
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=1)
        host = session._host._process.pid
        child = int((tmp_path / "child").read_text())
        assert alive(host)
        assert alive(child)

    until(lambda: not alive(host))
    until(lambda: not alive(child))


def test_every_pass_tells_of_every_case_so_that_progress_comes_to_its_end(
    bare_python: str, tmp_path: Path
) -> None:
    source = with_good_neighbours("import os\ndef bench_crash(): os._exit(1)")
    finished: list[list[str]] = []

    with a_session(bare_python, tmp_path, source) as session:
        for pass_index in range(2):
            finished.append([])
            session.run_pass(pass_index, 7, lambda case: finished[-1].append(case.benchmark))

    assert [sorted(names) for names in finished] == [["after", "before", "crash"]] * 2


def test_a_case_that_contradicts_itself_is_a_failure_and_is_not_run(bare_python: str, tmp_path: Path) -> None:
    source = """
    from collector.suite import benchmark
    @benchmark(flops=lambda: -1)
    def bench_bad(): return lambda: None
    def bench_x(): return lambda: None
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=1)

    assert [case.benchmark for case in session.loaded.cases] == ["x"]
    assert "flops gave -1" in the_failure(session)["message"]
    assert the_failure(session)["case"] in session.loaded.known


def _kill_host(session: Session) -> None:
    process: Any = session._host._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
