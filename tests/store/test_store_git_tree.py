"""What a repository is called, what its main branch is, and when its tree is dirty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.git import Repository, measured_history
from store.git_names import repository_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trees import Tree


@pytest.mark.parametrize(
    ("change", "dirty"),
    [
        (lambda _: None, False),
        (lambda path: (path / "tracked.py").write_text("changed"), True),
        (lambda path: (path / "tracked.py").unlink(), True),
        (lambda path: (path / "new.py").write_text("new"), True),
        (lambda path: (path / "build.o").write_text("ignored"), False),
        (lambda path: (path / "kernelwatch.duckdb").write_text("a store"), False),
        (lambda path: (path / "out" / "run.kernelwatch.gz").write_text("a bundle"), False),
        (lambda path: (path / "out" / "table.csv").write_text("something else"), True),
    ],
)
def test_a_tree_is_dirty_when_its_code_is_not_that_of_the_commit(
    tree: Tree,
    change: Callable[[Path], object],
    dirty: bool,  # noqa: FBT001 - an expectation
) -> None:
    (tree.path / "out").mkdir()
    (tree.path / "tracked.py").write_text("x = 1")
    (tree.path / ".gitignore").write_text("*.o\n")
    tree.git("add", ".")
    tree.commit("1")

    change(tree.path)

    assert Repository(tree.path).is_dirty() is dirty
    assert measured_history(tree.path, "HEAD").dirty is dirty


def test_a_staged_change_is_a_change(tree: Tree) -> None:
    tree.commit("1")
    (tree.path / "new.py").write_text("new")
    tree.git("add", "new.py")

    assert Repository(tree.path).is_dirty()


def test_a_tracked_store_that_changed_is_a_change(tree: Tree) -> None:
    (tree.path / "data.duckdb").write_text("1")
    tree.git("add", ".")
    tree.commit("1")
    (tree.path / "data.duckdb").write_text("2")

    assert Repository(tree.path).is_dirty()


def test_an_older_revision_is_clean_whatever_the_tree_is(tree: Tree) -> None:
    older = tree.commit("1")
    tree.commit("2")
    (tree.path / "new.py").write_text("new")

    assert measured_history(tree.path, older).dirty is False
    assert measured_history(tree.path, "HEAD").dirty is True


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/owner/name.git", "github.com/owner/name"),
        ("https://github.com/owner/name", "github.com/owner/name"),
        ("https://GitHub.com/owner/name/", "github.com/owner/name"),
        ("https://user:secret@github.com/owner/name.git", "github.com/owner/name"),
        ("https://x-access-token:gh@s_1@github.com/owner/name", "github.com/owner/name"),
        ("git@github.com:owner/name.git", "github.com/owner/name"),
        ("github.com:owner/name.git", "github.com/owner/name"),
        ("ssh://git@github.com:2222/owner/name.git", "github.com/owner/name"),
        ("git@gitlab.example.org:group/sub/name.git", "gitlab.example.org/group/sub/name"),
        ("/srv/git/name.git", "name"),
        ("file:///srv/git/name.git", "name"),
        ("../name", "name"),
        ("", None),
        ("https://github.com", None),
    ],
)
def test_a_repository_has_one_name_however_it_was_cloned(url: str, name: str | None) -> None:
    assert repository_name(url) == name


def test_the_name_comes_from_the_origin(tree: Tree) -> None:
    assert Repository(tree.path).name() == "kernels"

    tree.git("remote", "add", "origin", "https://me:secret@example.org/team/kernels.git")

    assert Repository(tree.path).name() == "example.org/team/kernels"


def test_a_worktree_and_a_subfolder_have_the_name_of_their_repository(tree: Tree, tmp_path: Path) -> None:
    tree.commit("1")
    tree.git("worktree", "add", "-q", "--detach", str(tmp_path / "elsewhere"))
    (tree.path / "deep" / "down").mkdir(parents=True)

    assert Repository(tmp_path / "elsewhere").name() == "kernels"
    assert Repository(tree.path / "deep" / "down").name() == "kernels"


def test_the_default_branch_is_the_origin_s_before_our_own(tree: Tree, tmp_path: Path) -> None:
    tree.git("checkout", "-q", "-b", "trunk")
    tree.commit("1")
    clone = tree.clone(tmp_path / "clone")
    clone.git("branch", "main")

    assert Repository(clone.path).default_branch() == "origin/trunk"

    clone.git("remote", "set-head", "origin", "--delete")
    assert Repository(clone.path).default_branch() == "main"


@pytest.mark.parametrize(("branches", "expected"), [(("master", "main"), "main"), (("master",), "master")])
def test_main_comes_before_master(tree: Tree, branches: tuple[str, ...], expected: str) -> None:
    tree.git("checkout", "-q", "-b", "work")
    tree.commit("1")
    for branch in branches:
        tree.git("branch", branch)

    assert Repository(tree.path).default_branch() == expected
