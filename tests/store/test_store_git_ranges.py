"""Lines between two commits, what a merge brought in, and clones that lack a part: real repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.errors import GitError, UnknownRevision
from store.git import Repository, measured_history
from store.git_ranges import commits_between, merged_line

if TYPE_CHECKING:
    from pathlib import Path

    from trees import Tree


def between(tree: Tree, older: str, newer: str) -> list[str]:
    return [commit.subject for commit in commits_between(Repository(tree.path), older, newer)]


def a_merge(tree: Tree) -> str:
    """Main 1, 2, then the merge 3 of a branch with s1 and s2, then 4; its merge."""
    tree.commit("1")
    tree.git("checkout", "-q", "-b", "side")
    tree.commit("s1")
    tree.commit("s2")
    tree.git("checkout", "-q", "main")
    tree.commit("2")
    tree.git("merge", "-q", "--no-ff", "-m", "3", "side")
    merge = tree.git("rev-parse", "HEAD")
    tree.commit("4")
    return merge


def test_a_range_is_the_line_of_first_parents_oldest_first(tree: Tree) -> None:
    a_merge(tree)

    assert between(tree, "main~3", "main") == ["2", "3", "4"]
    assert between(tree, "main", "main") == []


def test_a_range_follows_parents_whatever_the_clocks_said(tree: Tree) -> None:
    for number in range(1, 5):
        tree.commit(str(number), date=f"20{30 - number}-01-01T00:00:00+00:00")

    assert between(tree, "main~3", "main") == ["2", "3", "4"]


def test_a_range_the_wrong_way_round_says_so(tree: Tree) -> None:
    a_merge(tree)

    with pytest.raises(GitError, match="comes after it: name the older commit first"):
        between(tree, "main", "main~1")


def test_an_end_on_another_line_is_told_where_the_lines_part(tree: Tree) -> None:
    a_merge(tree)
    fork = tree.git("rev-parse", "main~3")

    with pytest.raises(GitError, match=rf"their lines part at {fork[:9]}: begin there"):
        between(tree, "side", "main")


def test_ends_without_a_common_commit_are_refused(tree: Tree) -> None:
    tree.commit("1")
    tree.git("checkout", "-q", "--orphan", "other")
    tree.commit("o")

    with pytest.raises(GitError, match="no commit in common"):
        between(tree, "main", "other")


def test_an_end_that_is_unknown_is_named(tree: Tree) -> None:
    tree.commit("1")

    with pytest.raises(UnknownRevision, match="no commit 'gone'"):
        between(tree, "gone", "main")


def test_a_shallow_clone_names_the_command_that_makes_the_line_whole(tree: Tree, tmp_path: Path) -> None:
    old = tree.commit("1")
    for number in range(2, 6):
        tree.commit(str(number))
    tree.git("tag", "old", old)
    clone = tree.clone(tmp_path / "clone", "--depth", "2", "--no-single-branch")

    with pytest.raises(
        GitError, match=r"shallow clone reaches: add --deepen, or run 'git fetch --unshallow'"
    ):
        between(clone, "old", "HEAD")

    assert Repository(clone.path).deepen()
    assert between(clone, "old", "HEAD") == ["2", "3", "4", "5"]


def test_a_merge_brought_the_commits_of_its_branch(tree: Tree) -> None:
    repository = Repository(tree.path)
    merge = repository.commit(a_merge(tree))

    ((fork, commits),) = merged_line(repository, merge)

    assert fork == tree.git("rev-parse", "main~3")
    assert [commit.subject for commit in commits] == ["s1", "s2"]


def test_an_octopus_brought_several_branches(tree: Tree) -> None:
    base = tree.commit("1")
    for name in "ab":
        tree.git("checkout", "-q", "-b", name, base)
        tree.commit(name)
    tree.git("checkout", "-q", "main")
    tree.commit("2")
    tree.git("merge", "-q", "--no-ff", "-m", "3", "a", "b")
    repository = Repository(tree.path)

    brought = merged_line(repository, repository.commit(tree.git("rev-parse", "main")))

    assert [(fork, [commit.subject for commit in commits]) for fork, commits in brought] == [
        (base, ["a"]), (base, ["b"]),
    ]  # fmt: skip


def test_a_branch_that_had_taken_in_main_brought_only_its_own_line(tree: Tree) -> None:
    fork = tree.commit("1")
    tree.git("checkout", "-q", "-b", "side")
    tree.commit("s1")
    tree.git("checkout", "-q", "main")
    tree.commit("2")
    tree.git("checkout", "-q", "side")
    tree.git("merge", "-q", "--no-ff", "-m", "take in 2", "main")
    tree.git("checkout", "-q", "main")
    tree.git("merge", "-q", "--no-ff", "-m", "3", "side")
    repository = Repository(tree.path)

    ((found, commits),) = merged_line(repository, repository.commit(tree.git("rev-parse", "main")))

    assert (found, [commit.subject for commit in commits]) == (fork, ["s1", "take in 2"])


def test_a_deepened_clone_knows_where_its_branch_left_main(tree: Tree, tmp_path: Path) -> None:
    """What CI checks out of a pull request: one commit, one branch, no main."""
    tree.commit("1")
    fork = tree.commit("2")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("f")
    tree.git("checkout", "-q", "main")
    tree.commit("3")
    clone = tree.clone(tmp_path / "clone", "--depth", "1", "--branch", "feature")
    before = measured_history(clone.path, "HEAD")

    Repository(clone.path).deepen()

    after = measured_history(clone.path, "HEAD")
    assert (before.base_ref, before.merge_base) == (None, None)
    assert "--deepen" in str(before.history_note)
    assert (after.base_ref, after.merge_base, after.history_note) == ("origin/main", fork, None)


def test_a_complete_clone_is_left_as_it_is(tree: Tree, tmp_path: Path) -> None:
    tree.commit("1")
    clone = tree.clone(tmp_path / "clone")
    tree.commit("2")

    assert not Repository(clone.path).deepen()
    assert Repository(clone.path).resolve("origin/main") == tree.git("rev-parse", "main~1")


def test_deepening_fetches_the_base_that_was_asked_for(tree: Tree, tmp_path: Path) -> None:
    tree.commit("1")
    tree.git("branch", "release/1")
    tree.commit("2")
    clone = tree.clone(tmp_path / "clone", "--single-branch")

    with pytest.raises(UnknownRevision, match="release/1"):
        measured_history(clone.path, "HEAD", base_ref="release/1")
    Repository(clone.path).deepen("release/1")

    assert measured_history(clone.path, "HEAD", base_ref="release/1").base_ref == "origin/release/1"


def test_a_server_that_can_keeps_the_files_of_older_commits_until_they_are_needed(
    tree: Tree, tmp_path: Path
) -> None:
    tree.git("config", "uploadpack.allowFilter", "true")
    tree.git("config", "uploadpack.allowAnySHA1InWant", "true")
    (tree.path / "code.py").write_text("SPEED = 1")
    tree.git("add", ".")
    old = tree.commit("1")
    (tree.path / "code.py").write_text("SPEED = 2")
    tree.git("commit", "-qam", "2")
    clone = tree.clone(tmp_path / "clone", "--depth", "1")

    Repository(clone.path).deepen()

    missing = clone.git("rev-list", "--objects", "--all", "--missing=print")
    assert any(line.startswith("?") for line in missing.splitlines())
    assert clone.git("show", f"{old}:code.py") == "SPEED = 1"


def test_deepening_without_a_remote_says_what_git_said(tree: Tree, tmp_path: Path) -> None:
    tree.commit("1")
    tree.commit("2")
    clone = tree.clone(tmp_path / "clone", "--depth", "1")
    clone.git("remote", "remove", "origin")

    with pytest.raises(GitError, match="origin"):
        Repository(clone.path).deepen("main")


def test_a_base_of_the_remote_is_found_by_the_name_people_use(tree: Tree, tmp_path: Path) -> None:
    """A checkout in CI has a detached HEAD and no branch of its own."""
    sha = tree.commit("1")
    clone = tree.clone(tmp_path / "clone")
    clone.git("checkout", "-q", "--detach")
    clone.git("branch", "-q", "-D", "main")

    found = measured_history(clone.path, "HEAD", base_ref="main")

    assert (found.base_ref, found.merge_base) == ("origin/main", sha)


def test_a_path_is_looked_up_in_the_commit_and_not_on_disk(tree: Tree) -> None:
    old = tree.commit("1")
    (tree.path / "benches").mkdir()
    (tree.path / "benches" / "mlp.py").write_text("x = 1")
    tree.git("add", ".")
    new = tree.commit("2")
    repository = Repository(tree.path)

    assert [repository.has_path(new, path) for path in ("benches", "benches/mlp.py", "gone.py")] == [
        True, True, False,
    ]  # fmt: skip
    assert not repository.has_path(old, "benches")
