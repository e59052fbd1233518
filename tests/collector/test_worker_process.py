"""The worker's process: what it can import, where its words go, and whom it outlives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

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
from suite_files import a_suite_file


def test_a_suite_runs_where_nothing_of_kernelwatch_is_installed(bare_python: str, tmp_path: Path) -> None:
    source = """
    from collector.suite import benchmark
    @benchmark(params={"rows": [1, 2]}, tags=["pure"], renamed_from="bench_w")
    def bench_x(rows): return lambda: sum(range(rows))
    """
    with a_session(bare_python, tmp_path, source) as session:
        session.probe()
        run_passes(session)

    assert [len(windows) for windows in session.collected.windows.values()] == [2, 2]
    assert [case.renamed_from for case in session.loaded.cases] == ["w", "w"]
    assert session.collected.failures == []
    assert session.collected.context["torch.version"] == {"error": "torch is not installed"}


@pytest.mark.parametrize("name", ["store", "click", "alerts", "collector.cli", "collector.run", "numpy"])
def test_a_suite_in_a_bare_environment_cannot_import(name: str, bare_python: str, tmp_path: Path) -> None:
    with a_session(bare_python, tmp_path, f"import {name}\n{benchmarks('x')}") as session:
        failure = the_failure(session)

    assert (failure["stage"], failure["kind"]) == ("import", "ModuleNotFoundError")
    assert failure["source"] == "bench_example.py:1"
    assert "install it there, or choose another interpreter with --python" in failure["message"]
    assert session.loaded.cases == ()


def test_modules_of_the_users_own_are_the_users_whatever_their_names(tmp_path: Path) -> None:
    names = ("store", "alerts", "dashboard")
    for name in names:
        a_suite_file(tmp_path, "ANSWER = 42", f"{name}.py")
    # This interpreter has kernelwatch installed, and its modules of the same names.
    answers = " + ".join(f"{name}.ANSWER" for name in names)
    source = f"import {', '.join(names)}\ndef bench_x(): return list if {answers} == 126 else None"

    with a_session(sys.executable, tmp_path, source) as session:
        run_passes(session, passes=1)
        windows = windows_of(session, "x")

    assert session.collected.failures == []
    assert len(windows) == 1


PRINTING = {
    "prints": """
        def bench_loud():
            print("set-up")
            return lambda: print('{"type": "window"}')
        """,
    "writes to the descriptors": """
        import os
        def bench_loud():
            return lambda: [os.write(fd, b'{"type":"done","status":0}\\n') for fd in (1, 2)]
        """,
    "closes the streams": """
        import sys
        def bench_loud():
            sys.stdout.close(); sys.stderr.close()
            return lambda: None
        """,
    "closes the descriptors": """
        import os
        def bench_loud():
            os.close(1); os.close(2)
            return lambda: None
        """,
    "puts other files in their place": """
        import os, sys
        def bench_loud():
            hole = os.open("/dev/null", os.O_WRONLY)
            os.dup2(hole, 1); os.dup2(hole, 2)
            sys.stdout = sys.stderr = None
            return lambda: None
        """,
    "has a child that prints": """
        import subprocess
        def bench_loud(): return lambda: subprocess.run(["echo", "hello"], check=True)
        """,
}


@pytest.mark.parametrize("what", PRINTING)
def test_whatever_a_benchmark_does_to_its_output_it_is_measured(
    what: str, bare_python: str, tmp_path: Path
) -> None:
    with a_session(bare_python, tmp_path, with_good_neighbours(PRINTING[what])) as session:
        run_passes(session)
        counts = [len(windows_of(session, name)) for name in ("before", "loud", "after")]

    assert session.collected.failures == []
    assert counts == [2, 2, 2]


def test_a_benchmark_that_closes_every_descriptor_costs_itself_alone(
    bare_python: str, tmp_path: Path
) -> None:
    source = with_good_neighbours(
        """
        import os
        def bench_closer():
            os.closerange(3, 1000)
            return lambda: None
        """
    )
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session)
        counts = [len(windows_of(session, name)) for name in ("before", "after")]
        failure = the_failure(session)

    assert counts == [2, 2]
    assert failure["case"] == '["closer",{}]'
    assert failure["stage"] == "worker"


def test_the_log_of_a_failure_holds_its_own_words_and_not_those_of_others(
    bare_python: str, tmp_path: Path
) -> None:
    source = """
    import os
    def bench_first(): print("words of the first")
    def bench_second(): print("words of the second"); os._exit(1)
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session)
        logs = {failure["case"]: failure["log"] for failure in session.collected.failures}

    assert logs['["second",{}]'] == "words of the second"


def test_a_crash_in_native_code_leaves_its_python_stack_in_the_log(bare_python: str, tmp_path: Path) -> None:
    source = """
    import ctypes
    def bench_crash():
        def call():
            ctypes.string_at(0)
        return call
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=1)
        log = the_failure(session)["log"]

    assert "Fatal Python error: Segmentation fault" in log
    assert f'"{tmp_path}/bench_example.py", line 5 in call' in log


PARENT = """
import json, sys, time
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from pathlib import Path
from real_workers import a_job
from collector.session import Session
session = Session(sys.argv[3], a_job(Path(sys.argv[4]), Path(sys.argv[4], "bench_example.py")))
print(session._host._process.pid, flush=True)
session.run_pass(0, 7, lambda case: None)
"""


def test_workers_die_when_their_parent_is_killed(bare_python: str, tmp_path: Path) -> None:
    a_suite_file(
        tmp_path,
        """
        import os, pathlib, time
        from collector.suite import benchmark
        @benchmark(time_limit_s=600)
        def bench_x():
            pathlib.Path("pid").write_text(str(os.getpid()))
            while True: time.sleep(0.01)
        """,
    )
    here = Path(__file__).parents
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(here[2]), str(here[1]), bare_python, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        host = int(parent.stdout.readline())
        worker = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        assert alive(host)
        assert alive(worker)

        os.kill(parent.pid, signal.SIGKILL)

        until(lambda: not alive(host))
        until(lambda: not alive(worker))


def test_the_first_to_go_when_memory_ends_is_the_worker(bare_python: str, tmp_path: Path) -> None:
    source = """
    import pathlib
    def bench_x():
        text = pathlib.Path("/proc/self/oom_score_adj").read_text()
        pathlib.Path("score").write_text(text)
        return lambda: None
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=1)

    assert (tmp_path / "score").read_text().strip() == "1000"


def test_a_suite_runs_in_the_root_of_the_code_under_test(bare_python: str, tmp_path: Path) -> None:
    source = """
    import os, pathlib
    def bench_x():
        pathlib.Path("folder").write_text(os.getcwd())
        return lambda: None
    """
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, passes=1)

    assert (tmp_path / "folder").read_text() == str(tmp_path)


def test_what_one_pass_had_to_import_of_torch_the_next_finds_loaded(tmp_path: Path) -> None:
    late = "torch.utils.show_pickle"
    source = f"""
    import pathlib, sys
    def bench_late():
        with pathlib.Path("found").open("a") as found:
            print("{late}" in sys.modules, file=found)
        import {late}
        return list
    """
    with a_session(sys.executable, tmp_path, source) as session:
        run_passes(session, passes=2)

    assert session.collected.failures == []
    assert (tmp_path / "found").read_text().split() == ["False", "True"]
