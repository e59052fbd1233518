"""Measuring in the clone that CI makes by default: one commit deep, one branch wide."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from real_runs import Listener, a_plan, names_of
from real_workers import benchmarks
from suite_files import a_suite_file

from collector.paired import collect_pair
from collector.run import collect_run
from store.errors import GitError, UnknownRevision

if TYPE_CHECKING:
    from pathlib import Path

    from trees import Tree


@pytest.fixture(name="clone")
def _clone(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A shallow clone of a branch that left main two commits ago; the user stands in it."""
    a_suite_file(tree.path, benchmarks("x"))
    tree.git("add", "-A")
    tree.commit("Measure x")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("Change something")
    tree.commit("Change something else")
    tree.git("checkout", "-q", "main")
    clone = tree.clone(tmp_path / "clone", "--depth", "1", "--branch", "feature")
    monkeypatch.chdir(clone.path)
    return clone


def test_a_pair_in_a_shallow_clone_fetches_what_it_lacks_where_that_is_allowed(
    clone: Tree, tree: Tree, bare_python: str
) -> None:
    with pytest.raises(UnknownRevision, match="--deepen"):
        collect_pair(a_plan(bare_python, passes=1), "origin/main", Listener())

    pair = collect_pair(a_plan(bare_python, passes=1, deepen=True), "origin/main", Listener())

    assert pair.baseline.header.commit_sha == tree.git("rev-parse", "main")
    assert pair.candidate.header.merge_base == tree.git("rev-parse", "main")
    assert pair.candidate.header.history_note is None
    assert names_of(pair.candidate) == names_of(pair.baseline) == ["x"]
    assert clone.git("rev-parse", "--is-shallow-repository") == "false"


def test_what_cannot_be_fetched_ends_the_run_before_anything_is_measured(
    clone: Tree, bare_python: str
) -> None:
    clone.git("remote", "set-url", "origin", "file:///nowhere")

    with pytest.raises(GitError, match="nowhere"):
        collect_run(a_plan(bare_python, deepen=True), Listener())


def test_there_is_nothing_to_fetch_where_there_is_no_repository(
    tmp_path: Path, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    a_suite_file(tmp_path, benchmarks("x"))
    monkeypatch.chdir(tmp_path)
    assert subprocess.run(["git", "status"], capture_output=True, check=False).returncode != 0

    run = collect_run(a_plan(bare_python, passes=1, deepen=True), Listener())

    assert run.header.commit_sha is None
