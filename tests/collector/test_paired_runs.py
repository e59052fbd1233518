"""Two commits in one session: real repositories, real workers, passes in turn."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from real_runs import Listener, a_plan, names_of
from real_workers import a_session, alive, benchmarks, run_passes
from suite_files import a_suite_file

from collector.cli import collect
from collector.errors import BaselineError, NothingMeasuredError
from collector.pair_report import pair_json, pair_text
from collector.paired import Pair, collect_pair
from store.bundle import read_bundle
from store.database import Database
from store.errors import NoRepository, UnknownRevision
from store.records import PairedRole, Run, Stage
from store.runs import find_runs, load_run

if TYPE_CHECKING:
    from trees import Tree

SLEEPING = """
import time
from pauses import SECONDS

def bench_sleep():
    return lambda: time.sleep(SECONDS)
"""


@pytest.fixture(name="project")
def _project(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository in which ``main`` sleeps 1 ms, and the branch that is checked out 3 ms."""
    a_suite_file(tree.path, SLEEPING + benchmarks("shared", "old"))
    a_suite_file(tree.path, "SECONDS = 0.001", "pauses.py")
    tree.git("add", "-A")
    tree.commit("Sleep 1 ms")
    tree.git("checkout", "-q", "-b", "slower")
    a_suite_file(tree.path, SLEEPING + benchmarks("shared", "new"))
    a_suite_file(tree.path, "SECONDS = 0.003", "pauses.py")
    tree.git("add", "-A")
    tree.commit("Sleep 3 ms")
    monkeypatch.chdir(tree.path)
    return tree


def labels(cases: list[Any]) -> list[str]:
    return [case.label for case in cases]


def medians_ms(run: Run, benchmark: str) -> list[float]:
    (measurement,) = [m for m in run.measurements if m.case.benchmark == benchmark]
    return [window.median_ms for window in measurement.windows if window.median_ms is not None]


def turns(pair: Pair) -> str:
    """Whose pass came when: C for the candidate, B for the baseline."""
    begun = [
        (
            min(
                window.started_at for m in run.measurements for window in m.windows if window.pass_index == i
            ),
            side,
        )
        for side, run in (("C", pair.candidate), ("B", pair.baseline))
        for i in range(run.header.passes)
    ]
    return "".join(side for _, side in sorted(begun))


def test_each_side_is_measured_with_its_own_code_and_its_own_suite(project: Tree, bare_python: str) -> None:
    listener = Listener()

    pair = collect_pair(a_plan(bare_python), "main", listener)

    assert all(3 <= median < 6 for median in medians_ms(pair.candidate, "sleep"))
    assert all(1 <= median < 2.5 for median in medians_ms(pair.baseline, "sleep"))
    assert names_of(pair.candidate) == ["sleep", "shared", "new"]
    assert names_of(pair.baseline) == ["sleep", "shared", "old"]
    assert (labels(pair.new), labels(pair.missing)) == (["new"], ["old"])
    assert (listener.size, listener.windows, listener.ended) == ((6, 3), 18, True)
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_the_passes_take_turns_so_that_a_drift_meets_both_sides(project: Tree, bare_python: str) -> None:
    pair = collect_pair(a_plan(bare_python, passes=4), "main", Listener())

    assert turns(pair) == "CBBCCBBC"
    pids = [
        window.pid
        for run in (pair.candidate, pair.baseline)
        for m in run.measurements
        for window in m.windows
    ]
    assert len(set(pids)) == 8, "every pass has a process of its own"
    assert project.git("status", "--porcelain") == ""


def test_the_two_runs_name_each_other_and_their_commits(project: Tree, bare_python: str) -> None:
    pair = collect_pair(a_plan(bare_python), "main", Listener())
    candidate, baseline = pair.candidate.header, pair.baseline.header

    assert (candidate.paired_role, baseline.paired_role) == (PairedRole.CANDIDATE, PairedRole.BASELINE)
    assert candidate.paired_with == baseline.run_id
    assert baseline.paired_with == candidate.run_id
    assert candidate.commit_sha == project.git("rev-parse", "slower")
    assert baseline.commit_sha == project.git("rev-parse", "main")
    assert candidate.seed == baseline.seed == 5
    assert (candidate.passes, candidate.timer, candidate.environment) == (
        baseline.passes, baseline.timer, baseline.environment,
    )  # fmt: skip
    assert not candidate.interrupted


def test_both_sides_have_the_same_order_in_a_pass(
    tree: Tree, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_suite_file(tree.path, benchmarks(*"abcdefgh"))
    tree.git("add", "-A")
    tree.commit("Eight")
    monkeypatch.chdir(tree.path)

    pair = collect_pair(a_plan(bare_python), "HEAD", Listener())

    places = [
        [[window.position for window in m.windows] for m in run.measurements]
        for run in (pair.candidate, pair.baseline)
    ]
    assert places[0] == places[1]


def test_against_head_means_the_commit_without_the_changes(project: Tree, bare_python: str) -> None:
    a_suite_file(project.path, "SECONDS = 0.008", "pauses.py")

    pair = collect_pair(a_plan(bare_python), "HEAD", Listener())

    assert (pair.candidate.header.dirty, pair.baseline.header.dirty) == (True, False)
    assert pair.candidate.header.commit_sha == pair.baseline.header.commit_sha
    assert min(medians_ms(pair.candidate, "sleep")) >= 8
    assert max(medians_ms(pair.baseline, "sleep")) < 8


def test_a_failure_on_one_side_costs_that_case_there_alone(project: Tree, bare_python: str) -> None:
    broken = SLEEPING + benchmarks("shared") + "\ndef bench_old(): raise ValueError('not yet')"
    a_suite_file(project.path, broken)

    pair = collect_pair(a_plan(bare_python), "main", Listener())

    (failure,) = pair.candidate.failures
    assert failure.case is not None
    assert (failure.case.benchmark, failure.stage) == ("old", Stage.SETUP)
    assert not pair.baseline.failures
    assert names_of(pair.candidate) == ["sleep", "shared"]
    assert len(medians_ms(pair.baseline, "old")) == 3
    assert (pair.new, pair.missing) == ([], []), "a case that failed is no missing one"


def test_a_baseline_whose_suite_cannot_be_imported_leaves_the_candidate(
    project: Tree, bare_python: str
) -> None:
    project.git("checkout", "-q", "main")
    a_suite_file(project.path, "import not_there")
    project.git("commit", "-qam", "Break the suite")
    project.git("checkout", "-q", "slower")
    listener = Listener()

    pair = collect_pair(a_plan(bare_python), "main", listener)

    assert len(pair.candidate.measurements) == 3
    assert not pair.baseline.measurements
    assert [failure.stage for failure in pair.baseline.failures] == [Stage.IMPORT]
    assert any(
        "no benchmark of the suites could be loaded at the baseline" in note for note in listener.notes
    )
    assert "Not measured at main (1):" in pair_text(pair, None)


@pytest.mark.parametrize(
    "crash", ["import os\nos._exit(7)\n", "import os, signal\nos.kill(os.getpid(), 9)\n"]
)
def test_a_baseline_that_brings_its_worker_down_is_an_error_that_names_it(
    crash: str, project: Tree, bare_python: str
) -> None:
    good = project.git("rev-parse", "slower")
    a_suite_file(project.path, crash)
    project.git("commit", "-qam", "Crash")
    crashing = project.git("rev-parse", "HEAD")
    project.git("checkout", "-q", good)

    with pytest.raises(BaselineError, match=rf"^at the baseline, {crashing[:9]}: the worker") as told:
        collect_pair(a_plan(bare_python), crashing, Listener())

    assert told.value.sha == crashing


def test_a_candidate_without_a_number_is_an_error(project: Tree, bare_python: str) -> None:
    a_suite_file(project.path, "def bench_shared(): raise ValueError('never')")

    with pytest.raises(NothingMeasuredError, match="never"):
        collect_pair(a_plan(bare_python), "main", Listener())
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.parametrize("windows", [8, 10])
def test_an_interrupt_keeps_the_passes_that_both_sides_have_finished(
    project: Tree, bare_python: str, windows: int
) -> None:
    """Three cases a side: the first pass of both ends with the sixth window, the second with the twelfth."""
    pair = collect_pair(a_plan(bare_python), "main", Listener(interrupt_after=windows))

    for run in (pair.candidate, pair.baseline):
        assert run.header.interrupted
        assert [[window.pass_index for window in m.windows] for m in run.measurements] == [[0]] * 3
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.parametrize("windows", [0, 5])
def test_an_interrupt_before_both_have_finished_a_pass_leaves_nothing(
    project: Tree, bare_python: str, windows: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        collect_pair(a_plan(bare_python), "main", Listener(interrupt_after=windows))
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_a_revision_that_git_does_not_know_is_refused_by_name(project: Tree, bare_python: str) -> None:
    assert project.path == Path.cwd()
    with pytest.raises(UnknownRevision, match="no commit 'nowhere'"):
        collect_pair(a_plan(bare_python), "nowhere", Listener())


def test_outside_of_a_repository_there_is_no_other_revision(
    tmp_path: Path, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    a_suite_file(tmp_path, benchmarks("x"))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NoRepository):
        collect_pair(a_plan(bare_python), "main", Listener())


def test_suites_that_cannot_be_forked_take_turns_too(
    tree: Tree, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threading = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    a_suite_file(tree.path, threading + benchmarks("x"))
    tree.git("add", "-A")
    tree.commit("Start a thread")
    monkeypatch.chdir(tree.path)
    listener = Listener()

    pair = collect_pair(a_plan(bare_python, passes=2), "HEAD", listener)

    assert turns(pair) == "CBBC"
    assert sum("fresh interpreter" in note for note in listener.notes) == 2


def test_a_host_that_has_used_the_gpu_itself_is_gone_while_the_other_side_measures(
    bare_python: str, tmp_path: Path
) -> None:
    threading = (
        "import os, threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    source = threading + "def bench_x(): return lambda: None"
    with a_session(bare_python, tmp_path, source) as session:
        run_passes(session, 1)
        pid = session.collected.windows[session.loaded.cases[0].key][0]["pid"]
        assert alive(pid), "the host measures itself where it cannot be forked"

        session.step_aside()
        assert not alive(pid)

        session.run_pass(1, 7, lambda _case: None)
        assert len(session.collected.windows[session.loaded.cases[0].key]) == 2


def test_a_host_that_forks_stays(bare_python: str, tmp_path: Path) -> None:
    with a_session(bare_python, tmp_path, "import os\ndef bench_x(): return lambda: os.getppid()") as session:
        session.step_aside()
        run_passes(session, 1)

        assert len(session.collected.windows) == 1


def test_a_pair_reads_as_a_run_with_the_changes_below_it(project: Tree, bare_python: str) -> None:
    pair = collect_pair(a_plan(bare_python), "main", Listener())
    text = pair_text(pair, None)

    assert project.git("rev-parse", "main")[:9] in text
    (row,) = [
        line.split() for line in text.splitlines() if line.startswith("sleep") and "not judged" not in line
    ]
    there, here, change, pairs = float(row[1]), float(row[3]), float(row[5]), int(row[-1])
    assert there < 2.5 < here
    assert 50 < change < 400
    assert pairs == 3
    assert "New, measured here alone (1):\n  new" in text
    assert "Missing, measured at main alone (1):\n  old" in text
    data = json.loads(json.dumps(pair_json(pair, None), allow_nan=False))
    assert data["paired"]["new"] == ["new"]
    (effect,) = [each for each in data["paired"]["effects"] if each["benchmark"] == "sleep"]
    assert 0.5 < effect["effect_low"] < effect["effect"] < effect["effect_high"]


def test_the_command_stores_both_runs_and_judges_the_candidate_beside_the_baseline(
    project: Tree, bare_python: str
) -> None:
    arguments = ["--suite", "bench_example.py", "--python", bare_python, "--timer", "wall", "--quick"]
    result = CliRunner().invoke(collect, [*arguments, "--against", "main", "--store", "runs.duckdb"])

    assert result.exit_code == 0, result.output
    database = Database("runs.duckdb")
    runs = {header.paired_role: load_run(database, header.run_id) for header in find_runs(database)}
    assert set(runs) == set(PairedRole)
    baseline = runs[PairedRole.BASELINE].header
    assert baseline.paired_with == runs[PairedRole.CANDIDATE].header.run_id
    assert baseline.commit_sha == project.git("rev-parse", "main")
    assert "tier-too-low" in result.stdout
    assert "Beside main" in result.stdout


def test_a_pair_can_be_written_as_two_bundles(project: Tree, bare_python: str) -> None:
    arguments = ["--suite", "bench_example.py", "--python", bare_python, "--timer", "wall", "--quick"]
    output = project.path / "run.kernelwatch.gz"
    result = CliRunner().invoke(
        collect, [*arguments, "--against", "main", "--output", str(output), "--format", "json"]
    )

    assert result.exit_code == 0, result.output
    candidate, baseline = read_bundle(output), read_bundle(output.with_name("baseline-run.kernelwatch.gz"))
    assert candidate.header.paired_with == baseline.header.run_id
    assert json.loads(result.stdout)["paired"]["baseline"]["run_id"] == baseline.header.run_id
    assert not Path("kernelwatch.duckdb").exists()


def test_a_submodule_free_clone_without_the_branch_says_so(
    project: Tree, bare_python: str, tmp_path: Path
) -> None:
    """What a CI job with a shallow clone meets."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{project.path}", str(clone)], check=True)
    result = CliRunner().invoke(
        collect, ["--repo", str(clone), "--python", bare_python, "--timer", "wall", "--against", "main"]
    )

    assert result.exit_code == 3
    assert "git fetch --unshallow" in result.output
    shutil.rmtree(clone)
