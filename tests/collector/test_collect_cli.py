"""The command ``collect`` as a person, a CI job and a terminal meet it: real processes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from collect_command import COLLECT, LIMIT_S, Project
from real_workers import alive, benchmarks, until
from suite_files import a_suite_file

from collector.cli import collect as command
from store.bundle import read_bundle
from store.runs import find_runs, load_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trees import Tree

# Every process of every pass leaves its id, so that a test can see whether one survived.
LEAVES_PIDS = """
import os, pathlib
def bench_slow():
    with pathlib.Path("pids").open("a") as stream:
        stream.write(f"{os.getpid()} {os.getppid()}\\n")
    return lambda: None
"""


@pytest.fixture(name="project")
def _project(tree: Tree, bare_python: str) -> Project:
    a_suite_file(tree.path, benchmarks("x", "y"))
    tree.git("add", "-A")
    tree.commit("Measure x and y")
    return Project(tree.path, bare_python)


def usage_error(*arguments: str) -> str:
    """What the command says when it cannot be meant so; nothing is measured."""
    result = CliRunner().invoke(command, list(arguments), prog_name="collect")
    assert result.exit_code == 2
    return result.stderr


def test_two_runs_of_a_commit_are_measured_stored_and_judged(project: Project) -> None:
    for_programs, for_people = project.collect("--quick", "--format", "json"), project.collect("--quick")

    assert (for_programs.returncode, for_people.returncode) == (0, 0)
    newest, oldest = find_runs(project.store())
    assert [(run.passes, run.dirty) for run in (newest, oldest)] == [(3, False)] * 2
    assert f"stored run {newest.run_id} in kernelwatch.duckdb" in for_people.stderr
    document = json.loads(for_programs.stdout)  # stdout holds nothing else; progress is on stderr
    assert (document["run_id"], document["judged"], document["failures"]) == (oldest.run_id, True, [])
    assert [m["benchmark"] for m in document["measurements"]] == ["x", "y"]
    assert document["measurements"][0]["verdict"]["outcome"] == "INCONCLUSIVE"
    assert "measuring 2 benchmark cases in 3 passes" in for_programs.stderr
    title, _, head, *rows = for_people.stdout.rstrip().split("\n")
    assert title.startswith("my kernels at ")
    assert "timer wall, free clocks, in" in title
    assert head.split()[0] == "benchmark"
    assert [row.split()[0] for row in rows] == ["x", "y"]
    assert all("provisional" in row and row.endswith("INCONCLUSIVE (tier-too-low)") for row in rows)


def test_what_could_not_be_judged_is_no_pass(project: Project) -> None:
    done = project.collect("--quick", "--fail-on", "regression")

    assert done.returncode == 3
    assert "No pass: 2 inconclusive. What was not judged has not passed." in done.stderr


def test_a_bundle_alone_writes_no_store_and_can_be_imported_once(project: Project) -> None:
    done = project.collect("--passes", "1", "--output", "run.kernelwatch.gz")

    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("not judged")
    assert not project.store().exists()
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-P", "-m", "store", "import", "run.kernelwatch.gz"],
            cwd=project.path, check=True, capture_output=True, timeout=LIMIT_S,
        )  # fmt: skip
    run = read_bundle(project.path / "run.kernelwatch.gz")
    assert [found.run_id for found in find_runs(project.store())] == [run.header.run_id]
    assert load_run(project.store(), run.header.run_id) == run


def test_a_store_that_cannot_take_the_run_costs_nothing_but_the_exit_code(project: Project) -> None:
    (project.path / "kernelwatch.duckdb").write_text("no database at all")

    done = project.collect("--passes", "1")

    (rescued,) = project.path.glob("kernelwatch-*.kernelwatch.gz")
    assert done.returncode == 3
    assert done.stdout.rstrip().endswith("not judged")  # the table is printed all the same
    assert f"`store import {rescued.name}` takes it in" in done.stderr
    assert len(read_bundle(rescued).measurements) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "zzz"), "Error: no benchmark matches zzz: `collect list` shows the names"),
        (("--commit", "gone"), "Error: my kernels has no commit 'gone'"),
        (("--python", "/no/such/python"), "Error: cannot start /no/such/python"),
        (("--python", "/bin/true"), "Error: the worker (/bin/true) could not load the suites"),
        (("--timer", "cupti"), "timer cupti needs an NVIDIA GPU and none was found"),
        (("--gpu", "0"), "GPU 0 cannot be looked up"),
    ],
)
def test_what_cannot_be_measured_ends_with_3_and_says_why(
    arguments: tuple[str, ...], words: str, project: Project
) -> None:
    done = project.collect("--quick", *arguments)

    assert done.returncode == 3
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not project.store().exists()


def test_a_run_without_a_number_of_the_suite_ends_with_3_but_its_failures_are_stored(
    project: Project,
) -> None:
    # This interpreter has torch, so that sentinels are measured beside the suite.
    a_suite_file(project.path, "def bench_x(): raise ValueError('no')")

    done = project.collect("--passes", "1", "--python", sys.executable)

    assert done.returncode == 3
    assert "sentinel_tiny[n=1024]" in done.stdout
    assert "x (bench_example.py:1): ValueError: no" in done.stdout
    assert "no benchmark of the suite gave a number" in done.stderr
    (stored,) = find_runs(project.store())
    assert [f.kind for f in load_run(project.store(), stored.run_id).failures] == ["ValueError"]


def test_options_that_contradict_each_other_are_usage_errors(tmp_path: Path) -> None:
    assert "--quick is --passes 3" in usage_error("--quick", "--passes", "5")
    assert "1<=x<=1000" in usage_error("--passes", "0")
    assert "--fail-on needs a store" in usage_error(
        "--fail-on", "regression", "--output", str(tmp_path / "run.kernelwatch.gz")
    )
    assert "'nvbench' is not one of" in usage_error("--timer", "nvbench")
    assert "does not exist" in usage_error("--repo", str(tmp_path / "missing"))


def test_help_shows_every_option_and_the_exit_codes() -> None:
    text = CliRunner().invoke(command, ["--help"], prog_name="collect").stdout

    options = [option for parameter in command.params for option in parameter.opts]
    assert len(options) >= 19
    assert [option for option in options if option not in text] == []
    assert "130 interrupted" in text
    assert all(getattr(parameter, "help", None) for parameter in command.params)


def test_the_list_shows_cases_without_running_them(project: Project) -> None:
    a_suite_file(
        project.path,
        """
        from collector.suite import benchmark
        @benchmark(params={"n": [1, 2]}, tags=["a", "b"])
        def bench_x(n): raise SystemError("never called")
        """,
    )

    done = project.collect("list")

    assert done.returncode == 0
    assert done.stdout.split("\n")[:3] == [
        "x[n=1]  bench_example.py:4  a, b",
        "x[n=2]  bench_example.py:4  a, b",
        "2 cases; timer wall; no GPU",
    ]
    assert not project.store().exists()


def test_options_of_the_list_may_stand_behind_it(project: Project) -> None:
    done = subprocess.run(
        [*COLLECT, "--suite", "missing.py", "list", "--suite", "bench_example.py", "--python", project.python,
         "--only", "y", "--format", "json"],
        cwd=project.path, capture_output=True, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip

    document = json.loads(done.stdout)
    assert [case["label"] for case in document["cases"]] == ["y"]
    assert document["failures"] == []


def test_a_list_with_something_that_cannot_be_loaded_ends_with_3(project: Project) -> None:
    (project.path / "suites").mkdir()
    a_suite_file(project.path, benchmarks("good"), "suites/bench_good.py")
    a_suite_file(project.path, "raise ValueError('\\x1b[2J')", "suites/bench_bad.py")
    arguments = ["list", "--suite", "suites", "--python", project.python]

    text, data = (
        subprocess.run(
            [*COLLECT, *arguments, *more], cwd=project.path, capture_output=True, text=True, check=False
        )
        for more in ((), ("--format", "json"))
    )

    assert (text.returncode, data.returncode) == (3, 3)
    assert text.stdout.startswith("good  suites/bench_good.py:1\n")
    assert text.stdout.rstrip().endswith("cannot be measured: suites/bench_bad.py:1: ValueError: \\x1b[2J")
    (failure,) = json.loads(data.stdout)["failures"]
    assert (failure["stage"], failure["source"]) == ("import", "suites/bench_bad.py:1")


def test_progress_that_goes_to_no_terminal_is_one_line(project: Project) -> None:
    done = project.collect("--passes", "2", "--output", "run.kernelwatch.gz")

    lines = [line for line in done.stderr.splitlines() if not line.startswith("sentinels: ")]
    assert lines[:-1] == ["measuring 2 benchmark cases in 2 passes", "windows", "wrote run.kernelwatch.gz"]
    assert lines[-1].startswith("not judged: without a store nothing can be flagged or confirmed.")


def _read_to_end(descriptor: int) -> str:
    """What a terminal showed until the last process that holds it ended."""
    shown = b""
    while True:
        try:
            chunk = os.read(descriptor, 1 << 16)
        except OSError:  # how Linux says that nobody is left
            return shown.decode()
        if not chunk:
            return shown.decode()
        shown += chunk


@pytest.fixture(name="terminal")
def _terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: ours and the command's."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def test_a_terminal_is_shown_how_far_it_is_and_how_long_it_takes(
    project: Project, terminal: tuple[int, int]
) -> None:
    ours, theirs = terminal
    a_suite_file(project.path, "import time\ndef bench_x(): return lambda: time.sleep(0.01)")
    with subprocess.Popen(
        project.command("--passes", "8", "--output", "run.kernelwatch.gz"),
        cwd=project.path, stdout=subprocess.DEVNULL, stderr=theirs,
    ) as running:  # fmt: skip
        os.close(theirs)
        shown = _read_to_end(ours)

    assert running.returncode == 0
    assert "windows" in shown
    assert "8/8" in shown
    # click tells the time that is left once a second.
    assert any(f"{count}/8  00:00:0" in shown for count in range(8))


@contextlib.contextmanager
def _started(
    project: Project, *arguments: str, before: tuple[str, ...] = (), **streams: Any
) -> Iterator[subprocess.Popen[str]]:
    """A command that would measure for a minute; a test that fails does not wait for its end."""
    command_line = [*before, *project.command("--passes", "500", *arguments)]
    with subprocess.Popen(command_line, cwd=project.path, text=True, **streams) as running:
        try:
            yield running
        except BaseException:
            running.kill()
            raise


def _pids(project: Project) -> list[int]:
    """The processes that have measured so far, and their hosts."""
    file = project.path / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def _all_ended(pids: list[int]) -> bool:
    return not any(alive(pid) for pid in pids)


def test_an_interrupted_run_is_stored_as_such_and_no_process_survives(project: Project) -> None:
    a_suite_file(project.path, LEAVES_PIDS)
    with _started(project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until(lambda: len(_pids(project)) > 6)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=LIMIT_S)

    assert running.returncode == 130
    assert "interrupted: the windows measured so far are kept" in errors
    assert "interrupted after" in output
    (found,) = find_runs(project.store())
    assert found.interrupted
    (measurement,) = load_run(project.store(), found.run_id).measurements
    assert 2 <= len(measurement.windows) < 500
    assert all(len(window.samples_ms) >= 10 for window in measurement.windows)
    until(lambda: _all_ended(_pids(project)))


def test_a_second_interrupt_does_not_lose_what_is_being_kept(project: Project) -> None:
    a_suite_file(project.path, LEAVES_PIDS)
    bundle = ("--output", "run.kernelwatch.gz")
    with _started(project, *bundle, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        until(lambda: len(_pids(project)) > 6)
        for _ in range(20):
            running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=LIMIT_S)

    assert running.returncode == 130
    assert "wrote run.kernelwatch.gz" in errors
    assert read_bundle(project.path / "run.kernelwatch.gz").header.interrupted


def test_an_interrupt_before_the_first_window_keeps_nothing_and_says_so(project: Project) -> None:
    suite = "import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n" + benchmarks("x")
    a_suite_file(project.path, suite)
    with _started(project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until((project.path / "loading").exists)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=LIMIT_S)

    assert running.returncode == 130
    assert output == ""
    assert errors == "interrupted before the first window was finished: nothing was kept\n"
    assert not project.store().exists()


def test_control_c_in_a_terminal_reaches_the_command_and_not_the_workers(
    project: Project, terminal: tuple[int, int]
) -> None:
    a_suite_file(project.path, LEAVES_PIDS)
    ours, theirs = terminal
    before = ("setsid", "--ctty")
    with _started(
        project, "--output", "run", before=before, stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        until(lambda: len(_pids(project)) > 6)
        host = _pids(project)[1]
        assert os.getsid(host) == host  # it and its workers have no terminal that could interrupt them
        os.write(ours, b"\x03")
        shown = _read_to_end(ours)

    assert running.returncode == 130
    assert "interrupted: the windows measured so far are kept" in shown
    assert read_bundle(project.path / "run").failures == ()  # no worker took it for its own
    until(lambda: _all_ended(_pids(project)))


def test_a_terminated_run_of_another_revision_leaves_no_worktree(project: Project, tree: Tree) -> None:
    # The suite of that revision leaves its pids in the worktree, so it says where that is.
    a_suite_file(project.path, LEAVES_PIDS.replace('"pids"', f"{str(project.path / 'pids')!r}"))
    tree.git("add", "-A")
    tree.commit("Be slow")
    with _started(project, "--commit", "main", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        until(lambda: len(_pids(project)) > 6)
        assert tree.git("worktree", "list").count("\n") == 1
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=LIMIT_S)

    assert running.returncode == 130
    assert tree.git("worktree", "list").count("\n") == 0
    (found,) = find_runs(project.store())
    assert not found.dirty


def test_workers_of_a_killed_command_die_with_it(project: Project) -> None:
    a_suite_file(project.path, LEAVES_PIDS)
    with _started(project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until(lambda: _pids(project))
        running.kill()

    until(lambda: _all_ended(_pids(project)))
