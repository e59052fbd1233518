"""Studies measured and taken from a store: real workers, real stores, the command end to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run
from click.testing import CliRunner
from real_runs import a_plan
from real_workers import benchmarks
from suite_files import a_suite_file

from collector.aa import Start, measure_study, named_runs, starts, stored_runs, study_id_of
from collector.cli import collect
from collector.errors import StudyError
from store.database import Database
from store.errors import RunNotFound
from store.records import PairedRole, Reading, Run, Timer
from store.runs import find_runs, load_run, save_run
from store.studies import load_studies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result
    from trees import Tree

STUDY_ID = "0a1b2c3d-0000-4000-8000-000000000000"
OTHER_ID = "0a1b2c3d-0000-4000-8000-000000000001"


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> Database:
    return Database(tmp_path / "runs.duckdb")


@pytest.fixture(name="project")
def _project(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository with a committed suite of two benchmarks; the user stands in it."""
    a_suite_file(tree.path, benchmarks("x", "y"))
    tree.git("add", "-A")
    tree.commit("Measure x and y")
    monkeypatch.chdir(tree.path)
    return tree


def a_measured_run(project: Tree, number: int, **header: Any) -> Run:
    """Run ``number`` of the commit that is checked out."""
    fields = {"commit_sha": project.git("rev-parse", "HEAD"), "repository": project.path.name} | header
    return a_run(10, number=number, measurements=(a_measurement(seed=number),), header=fields, history=())


def test_every_second_run_rests_first_and_the_others_start_at_once() -> None:
    plan = a_plan("python", seed=None)

    assert [start.rest_s for start in starts(plan, runs=5, rest_s=20.0)] == [0.0, 20.0, 0.0, 20.0, 0.0]
    assert all(start.plan == plan for start in starts(plan, runs=3, rest_s=20.0))


def test_a_seed_that_was_given_is_another_one_in_every_run() -> None:
    assert [start.plan.seed for start in starts(a_plan("python", seed=5), runs=3, rest_s=0.0)] == [5, 6, 7]


def the_starts(runs: int) -> Iterator[Start]:
    return starts(a_plan("python"), runs=runs, rest_s=20.0)


def test_every_run_is_marked_and_kept_before_the_next_is_measured() -> None:
    story: list[str] = []

    def measure(start: Start) -> Run:
        story.append(f"measure after {start.rest_s:g} s")
        return a_run(10, number=len(story))

    def keep(run: Run) -> None:
        story.append(f"keep, study {run.header.aa_study == STUDY_ID}")

    runs = measure_study(the_starts(3), STUDY_ID, measure, keep)

    assert story == [
        "measure after 0 s", "keep, study True", "measure after 20 s", "keep, study True",
        "measure after 0 s", "keep, study True",
    ]  # fmt: skip
    assert [run.header.context["aa.rest_s"] for run in runs] == [Reading(value=s) for s in (0.0, 20.0, 0.0)]


def test_an_interrupted_run_is_kept_and_not_compared() -> None:
    kept: list[Run] = []

    def measure(_: Start) -> Run:
        return a_run(10, number=len(kept), header={"interrupted": len(kept) == 2})

    runs = measure_study(the_starts(5), STUDY_ID, measure, kept.append)

    assert (len(runs), len(kept)) == (2, 3)
    assert kept[-1].header.interrupted


def test_an_interrupt_that_left_nothing_ends_the_study_with_what_there_is() -> None:
    kept: list[Run] = []

    def measure(_: Start) -> Run:
        if len(kept) == 2:
            raise KeyboardInterrupt
        return a_run(10, number=len(kept))

    assert len(measure_study(the_starts(5), STUDY_ID, measure, kept.append)) == 2


def test_stored_runs_are_the_whole_ones_of_this_commit(project: Tree, database: Database) -> None:
    chosen = [a_measured_run(project, number) for number in (1, 2)]
    others = [
        a_measured_run(project, 3, dirty=True),
        a_measured_run(project, 4, interrupted=True),
        a_measured_run(project, 5, paired_with=OTHER_ID, paired_role=PairedRole.BASELINE),
        a_measured_run(project, 9, confirms_run_id=chosen[0].header.run_id),
        a_measured_run(project, 6, repository="elsewhere"),
        a_measured_run(project, 7, commit_sha="f" * 40),
        a_measured_run(project, 8, timer=Timer.EVENTS),
    ]
    for run in (*chosen, *others):
        save_run(database, run)

    found = stored_runs(database, a_plan("python", timer="cupti"))
    assert {run.header.run_id for run in found} == {run.header.run_id for run in chosen}


def test_runs_on_several_gpus_are_not_mixed(project: Tree, database: Database) -> None:
    for number, gpu in enumerate(("GPU-a", "GPU-a", "GPU-b", "GPU-b")):
        save_run(database, a_measured_run(project, number, gpu_uuid=gpu))

    with pytest.raises(StudyError, match="GPU-a, GPU-b: choose one with --gpu UUID"):
        stored_runs(database, a_plan("python", timer="auto"))
    found = stored_runs(database, a_plan("python", timer="auto", gpu="GPU-b"))
    assert [run.header.gpu_uuid for run in found] == ["GPU-b"] * 2


def test_one_stored_run_is_too_few_and_the_message_says_how_to_get_more(
    project: Tree, database: Database
) -> None:
    save_run(database, a_measured_run(project, 1))

    with pytest.raises(StudyError, match=r"holds 1 whole run of .* `collect aa --commit "):
        stored_runs(database, a_plan("python", timer="auto"))


def test_a_run_that_is_named_twice_is_compared_once(database: Database) -> None:
    runs = [a_run(10, number=number) for number in range(2)]
    for run in runs:
        save_run(database, run)
    one, other = (run.header.run_id for run in runs)

    assert named_runs(database, [one, other, one[:8]]) == runs
    with pytest.raises(RunNotFound):
        named_runs(database, ["ffffffff"])


def test_the_same_runs_make_the_same_study_whatever_their_order() -> None:
    runs = [a_run(10, number=number) for number in range(3)]

    assert study_id_of(runs) == study_id_of(runs[::-1])
    assert study_id_of(runs) != study_id_of(runs[:2])


def collect_aa(*arguments: str) -> Result:
    return CliRunner().invoke(collect, ["aa", *arguments])


def test_the_command_measures_keeps_and_compares(project: Tree, bare_python: str) -> None:
    given = ["--suite", "bench_example.py", "--python", bare_python, "--timer", "wall", "--quick"]
    result = collect_aa(*given, "--runs", "2", "--rest", "0.01", "--store", "runs.duckdb")

    assert result.exit_code == 0, result.output
    database = Database("runs.duckdb")
    (study,) = load_studies(database)
    assert study.commit_shas == (project.git("rev-parse", "HEAD"),)
    assert [load_run(database, run_id).header.aa_study for run_id in study.run_ids] == [study.study_id] * 2
    assert [r.series.case.benchmark for r in study.results] == ["x", "y"]
    assert "A/A: 2 runs of my kernels at" in result.stdout
    assert "of 2 pairs of runs lie apart" in result.stdout
    assert "resting for 0.01 s" in result.stderr
    assert "of tier C: a run of them gets no verdict" in result.stdout


def test_stored_runs_are_compared_without_measuring_and_make_one_study(
    project: Tree, database: Database
) -> None:
    for number in range(3):
        save_run(database, a_measured_run(project, number))
    arguments = ["--stored", "--store", database.url, "--format", "json"]

    first, second = (json.loads(collect_aa(*arguments).stdout) for _ in range(2))

    assert (first["pairs"], len(first["run_ids"])) == (3, 3)
    assert first["study_id"] == second["study_id"]
    assert [study.study_id for study in load_studies(database)] == [first["study_id"]]
    assert len(find_runs(database)) == 3


def test_runs_are_named_by_the_beginnings_of_their_ids(database: Database) -> None:
    runs = [a_run(10, number=number) for number in range(3)]
    for run in runs:
        save_run(database, run)

    ids = [run.header.run_id[:12] for run in runs]
    result = collect_aa("--store", database.url, "--from-runs", *ids)

    assert result.exit_code == 0, result.output
    (study,) = load_studies(database)
    assert set(study.run_ids) == {run.header.run_id for run in runs}


@pytest.mark.parametrize(
    ("before", "arguments", "code", "words"),
    [
        ([], ["0a1b2c3d"], 2, "ids of runs follow --from-runs"),
        ([], ["--from-runs", "a", "--stored"], 2, "give one of the two"),
        ([], ["--runs", "1"], 2, "1 is not in the range"),
        ([], ["--from-runs", "0a1b2c3d"], 3, "there is no store at"),
        (["--output", "run.kernelwatch.gz"], [], 2, "--output has no meaning for `collect aa`"),
        (["--against", "main"], [], 2, "--against has no meaning"),
        (["--fail-on", "regression"], [], 2, "--fail-on has no meaning"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_measured(
    tmp_path: Path, before: list[str], arguments: list[str], code: int, words: str
) -> None:
    url = str(tmp_path / "runs.duckdb")
    result = CliRunner().invoke(collect, [*before, "--store", url, "aa", *arguments])

    assert result.exit_code == code
    assert words in result.output
    assert not Path(url).exists()


def measuring_command(python: str, *arguments: str) -> list[str]:
    given = ["--suite", "bench_example.py", "--python", python, "--timer", "wall", "--quick"]
    return [sys.executable, "-m", "collector", "aa", *given, "--store", "runs.duckdb", *arguments]


def test_an_interrupt_while_resting_ends_the_study_and_keeps_the_run_before(
    project: Tree, bare_python: str
) -> None:
    command = measuring_command(bare_python, "--rest", "600")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=project.path) as process:
        if process.stderr is None:
            raise AssertionError("stderr is a pipe")
        said = []
        for line in process.stderr:
            said.append(line)
            if "resting for 600 s" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130

    assert "interrupted before two runs were finished" in said[-1]
    (header,) = find_runs(Database(project.path / "runs.duckdb"))
    assert header.aa_study is not None
    assert not header.interrupted


def test_an_interrupt_between_two_runs_is_remembered_and_no_further_one_begins(
    project: Tree, bare_python: str
) -> None:
    command = measuring_command(bare_python, "--runs", "3", "--rest", "0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=project.path) as process:
        if process.stderr is None:
            raise AssertionError("stderr is a pipe")
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("stored run"):  # and now it is judged
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130

    assert "keeping what was measured; this takes a moment\n" in said
    assert "interrupted before two runs were finished" in said[-1]
    (header,) = find_runs(Database(project.path / "runs.duckdb"))
    assert not header.interrupted
