"""`collect bisect` from its arguments to its answer: real commits, real workers, the real judge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from collect_command import Project
from suite_files import a_suite_file

from collector.cli import collect
from store.runs import find_runs

if TYPE_CHECKING:
    from trees import Tree

SLEEPING = """
import time
from pauses import SECONDS

def bench_sleep():
    return lambda: time.sleep(SECONDS)
"""
NAPPING = """
import time
from collector.suite import benchmark
from pauses import SECONDS

@benchmark(renamed_from="bench_sleep")
def bench_nap():
    return lambda: time.sleep(SECONDS)
"""
QUICK = ("--timer", "wall", "--quick")
# The host's clock gives tier C, and its noise is far below the 200 % that a step of these commits is.
JUDGED_BY_WALL_CLOCK = '[judge]\nminimum_tier = "C"\nflag_effect = 0.5\n'


def pause(tree: Tree, seconds: str, subject: str) -> str:
    a_suite_file(tree.path, f"SECONDS = {seconds}", "pauses.py")
    tree.git("add", "-A")
    return tree.commit(subject)


@pytest.fixture(name="project")
def _project(tree: Tree, bare_python: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Main: 1 ms, one more commit, then a merge whose branch went to 3 ms."""
    a_suite_file(tree.path, SLEEPING)
    (tree.path / "kernelwatch.toml").write_text(JUDGED_BY_WALL_CLOCK)
    pause(tree, "0.001", "Sleep 1 ms")
    tree.git("checkout", "-q", "-b", "side")
    pause(tree, "0.003", "Sleep 3 ms")
    tree.git("checkout", "-q", "main")
    tree.commit("Change nothing")
    tree.git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")
    monkeypatch.chdir(tree.path)
    return Project(tree.path, bare_python)


def test_the_commit_is_found_and_the_next_call_goes_on_into_the_merge(project: Project, tree: Tree) -> None:
    merge, slow = tree.git("rev-parse", "main"), tree.git("rev-parse", "side")
    first = project.collect(*QUICK, "bisect", "main~2", "main", "--benchmark", "sleep")
    measured = len(find_runs(project.store()))
    second = project.collect(
        *QUICK, "bisect", "main~2", "main", "--benchmark", "sleep", "--into-merges", "--format", "json"
    )

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert f"First commit that shows it: {merge[:9]} Merge the side" in first.stdout
    assert "It is a merge: --into-merges goes on" in first.stdout
    told = json.loads(second.stdout)
    assert (told["finding"], told["commit"]["sha"]) == ("found", merge)
    assert all(step["measured_before"] for step in told["steps"])
    (inside,) = told["inside_merge"]
    assert (inside["finding"], inside["commit"]["sha"]) == ("found", slow)
    assert inside["beside_parent"]["verdict"]["outcome"] == "REGRESSED"
    assert len(find_runs(project.store())) > measured
    assert tree.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_a_change_from_before_a_rename_is_found(project: Project, tree: Tree) -> None:
    slow = pause(tree, "0.01", "Sleep 10 ms")
    a_suite_file(tree.path, NAPPING)
    tree.git("add", "-A")
    renamed = tree.commit("Call it a nap")

    result = project.collect(*QUICK, "bisect", f"{slow}~1", renamed, "--benchmark", "nap", "--format", "json")

    assert result.returncode == 0, result.stderr
    assert "measured under another name too, since it was renamed: sleep" in result.stderr
    told = json.loads(result.stdout)
    assert (told["finding"], told["commit"]["sha"]) == ("found", slow)
    assert told["benchmark"] == "nap"


def test_a_machine_whose_clock_is_never_judged_is_told_why(project: Project) -> None:
    (project.path / "kernelwatch.toml").unlink()

    result = project.collect(*QUICK, "bisect", "main~1", "main", "--benchmark", "sleep")

    assert result.returncode == 3
    assert "could not be compared" in result.stdout
    assert "tier C is below B" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["main", "main", "--benchmark", "x"], 2, "are the same commit"),
        (["main", "main~1", "--benchmark", "x"], 3, "name the older commit first"),
        (["main~1", "main"], 2, "--benchmark"),
        (["main~1", "main", "--benchmark", "x", "--only", "y"], 2, "--benchmark says what to measure"),
        (["main~1", "main", "--benchmark", "x", "--commit", "main"], 2, "its arguments name the commits"),
        (["gone", "main", "--benchmark", "x"], 3, "no commit 'gone'"),
        (["main~1", "main", "--benchmark", "sleeep"], 3, "matches 'sleeep': the nearest is 'sleep'"),
        (["main~1", "main", "--benchmark", "x", "--suite", "gone.py"], 3, "there is no suite at gone.py"),
        (
            ["main~1", "main", "--benchmark", "x", "--suite-from", "main~1"],
            3,
            "no benchmark of the suite of main~1 matches 'x': `collect list` shows the names",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_measured(
    project: Project, arguments: list[str], code: int, said: str
) -> None:
    suite = ["--suite", "bench_example.py", "--python", project.python]
    result = CliRunner().invoke(collect, [*suite, "bisect", *arguments])

    assert result.exit_code == code, result.output
    assert said in result.output
    assert not (project.path / "kernelwatch.duckdb").exists()
