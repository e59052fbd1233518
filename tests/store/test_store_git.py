"""What git says about the history of measured code, asked of real repositories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from trees import Tree

from store.errors import GitError, NoRepository, UnknownRevision
from store.git import Repository, measured_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def subjects(tree: Tree, *, limit: int = 500) -> list[str]:
    return [commit.subject for commit in measured_history(tree.path, "HEAD", limit=limit).history]


def test_a_commit_is_read_as_it_is_stored(tree: Tree) -> None:
    first = tree.commit("One")
    second = tree.commit("Zwei ü ✓\n\nA body.", date="2026-03-02T09:00:00+05:30")

    commit = Repository(tree.path).commit(second)

    assert (commit.sha, commit.parents) == (second, (first,))
    assert (commit.author, commit.subject) == ("Ada Example", "Zwei ü ✓")
    assert commit.committed_at.isoformat() == "2026-03-02T03:30:00+00:00"


def test_a_subject_over_several_lines_becomes_one(tree: Tree) -> None:
    sha = tree.commit("One\ntwo\tthree\n\nbody")

    assert Repository(tree.path).commit(sha).subject == "One two three"


def test_a_commit_in_another_encoding_is_read(tree: Tree) -> None:
    tree.git("config", "i18n.commitEncoding", "ISO-8859-1")
    message = tree.path / "message"
    message.write_bytes("Größe".encode("latin-1"))
    tree.git("commit", "-q", "--allow-empty", "-F", str(message))

    assert Repository(tree.path).commit(tree.git("rev-parse", "HEAD")).subject == "Größe"


@pytest.mark.parametrize("when", ["99999999999999999", "nonsense", "-1"])
def test_a_commit_with_an_impossible_date_is_still_a_commit(tree: Tree, when: str) -> None:
    empty_tree = tree.git("hash-object", "-t", "tree", "-w", os.devnull)
    raw = f"tree {empty_tree}\nauthor A <a> {when} +0000\ncommitter A <a> {when} +0000\n\nOdd\n"
    file = tree.path / "raw"
    file.write_text(raw)
    sha = tree.git("hash-object", "-t", "commit", "-w", "--literally", str(file))

    commit = Repository(tree.path).commit(sha)

    assert commit.subject == "Odd"
    assert commit.authored_at.year in (1969, 1970)


def test_the_line_follows_first_parents_newest_first(tree: Tree) -> None:
    tree.commit("1")
    tree.git("checkout", "-q", "-b", "side")
    tree.commit("side", date="2030-01-01T00:00:00+00:00")
    tree.git("checkout", "-q", "main")
    tree.commit("2", date="2020-01-01T00:00:00+00:00")
    tree.git("merge", "-q", "--no-ff", "-m", "3", "side")

    assert subjects(tree) == ["3", "2", "1"]
    assert len(Repository(tree.path).first_parent_line(tree.git("rev-parse", "HEAD"), 2)) == 2


def test_a_commit_on_the_main_branch_is_its_own_merge_base(tree: Tree) -> None:
    older = tree.commit("1")
    tree.commit("2")
    tree.git("checkout", "-q", "--detach", older)

    found = measured_history(tree.path, "HEAD")

    assert (found.commit_sha, found.base_ref, found.merge_base) == (older, "main", older)
    assert found.history_note is None


def test_a_branch_is_judged_where_it_left_main(tree: Tree) -> None:
    tree.commit("1")
    fork = tree.commit("2")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("f1")
    tip = tree.commit("f2")
    tree.git("checkout", "-q", "main")
    tree.commit("3")

    found = measured_history(tree.path, "feature")

    assert (found.commit_sha, found.merge_base) == (tip, fork)
    assert [commit.subject for commit in found.history] == ["f2", "f1", "2", "1"]


def test_a_branch_that_took_in_main_is_judged_against_what_it_took(tree: Tree) -> None:
    """What was built contains the newer main; its line comes after the branch's own."""
    tree.commit("1")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("f1")
    tree.git("checkout", "-q", "main")
    taken = tree.commit("2")
    tree.git("checkout", "-q", "feature")
    tree.git("merge", "-q", "--no-ff", "-m", "take in main", "main")
    tree.git("checkout", "-q", "main")
    tree.commit("3")

    found = measured_history(tree.path, "feature")

    assert found.merge_base == taken
    assert [commit.subject for commit in found.history] == ["take in main", "f1", "1", "2"]


def test_a_branch_that_was_merged_is_still_judged_where_it_left_main(tree: Tree) -> None:
    """Git's merge-base would be the branch itself: it would be compared with itself."""
    fork = tree.commit("1")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("f1")
    tree.git("checkout", "-q", "main")
    tree.commit("2")
    tree.git("merge", "-q", "--no-ff", "-m", "3", "feature")

    assert measured_history(tree.path, "feature").merge_base == fork


def test_another_base_can_be_named(tree: Tree) -> None:
    release = tree.commit("1")
    tree.git("branch", "release")
    tree.commit("2")

    found = measured_history(tree.path, "HEAD", base_ref="release")

    assert (found.base_ref, found.merge_base) == ("release", release)


def test_a_base_that_is_not_known_is_an_error(tree: Tree) -> None:
    tree.commit("1")

    with pytest.raises(UnknownRevision, match=r"no commit 'relaese'.*check the name"):
        measured_history(tree.path, "HEAD", base_ref="relaese")


def test_histories_without_a_common_ancestor_are_noted(tree: Tree) -> None:
    tree.commit("1")
    tree.git("checkout", "-q", "--orphan", "other")
    tree.commit("o")

    found = measured_history(tree.path, "HEAD")

    assert found.merge_base is None
    assert "no common ancestor" in str(found.history_note)


def test_a_repository_without_a_main_branch_is_noted(tree: Tree) -> None:
    tree.git("checkout", "-q", "-b", "trunk")
    sha = tree.commit("1")

    found = measured_history(tree.path, "HEAD")

    assert (found.commit_sha, found.base_ref, found.merge_base) == (sha, None, None)
    assert "no main branch" in str(found.history_note)


def test_a_shallow_clone_is_noted_with_its_remedy(tree: Tree, tmp_path: Path) -> None:
    for number in range(1, 6):
        tree.commit(str(number))
    shallow = tree.clone(tmp_path / "shallow", "--depth", "2")

    found = measured_history(shallow.path, "HEAD")

    assert [commit.subject for commit in found.history] == ["5", "4"]
    assert "git fetch --unshallow" in str(found.history_note)
    assert "fetch-depth: 0" in str(found.history_note)


def test_a_shallow_clone_does_not_pass_its_last_commit_off_as_the_first(tree: Tree, tmp_path: Path) -> None:
    tree.commit("1")
    parent = tree.commit("2")
    tree.commit("3")
    shallow = tree.clone(tmp_path / "shallow", "--depth", "1")

    assert measured_history(shallow.path, "HEAD").history[-1].parents == (parent,)


def test_a_revision_that_a_shallow_clone_lacks_comes_with_the_remedy(tree: Tree, tmp_path: Path) -> None:
    old = tree.commit("1")
    tree.commit("2")
    shallow = tree.clone(tmp_path / "shallow", "--depth", "1")

    with pytest.raises(UnknownRevision, match="git fetch --unshallow"):
        measured_history(shallow.path, old)


def test_a_shallow_clone_of_a_branch_has_no_merge_base_rather_than_a_wrong_one(
    tree: Tree, tmp_path: Path
) -> None:
    tree.commit("1")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("f1")
    tree.commit("f2")
    tree.git("checkout", "-q", "main")
    shallow = tree.clone(tmp_path / "shallow", "--depth", "1", "--no-single-branch", "--branch", "feature")

    found = measured_history(shallow.path, "HEAD")

    assert (found.base_ref, found.merge_base) == ("origin/main", None)


def test_code_in_no_repository_is_measured_without_a_commit(tmp_path: Path) -> None:
    folder = tmp_path / "loose"
    folder.mkdir()

    found = measured_history(folder, "HEAD")

    assert (found.repository, found.commit_sha, found.dirty, found.history) == ("loose", None, False, ())
    assert "no git repository" in str(found.history_note)


def test_another_revision_of_no_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoRepository, match="no git repository: name the folder of a checkout"):
        measured_history(tmp_path, "main")


def test_a_repository_without_commits_is_measured_without_one(tree: Tree) -> None:
    (tree.path / "kernel.py").write_text("x = 1")

    found = measured_history(tree.path, "HEAD")

    assert (found.repository, found.commit_sha, found.dirty) == ("kernels", None, True)
    assert "no commit yet" in str(found.history_note)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no folder"):
        Repository(tmp_path / "nowhere")


@pytest.mark.parametrize("revision", ["nope", "-n1", "--help", "", "HEAD:file", "main..main"])
def test_what_names_no_commit_is_an_error(tree: Tree, revision: str) -> None:
    tree.commit("1")

    with pytest.raises(UnknownRevision, match="has no commit"):
        Repository(tree.path).resolve(revision)


@pytest.mark.parametrize("short", [lambda sha: sha[:8], lambda _: "HEAD", lambda _: "v1", lambda _: "main~0"])
def test_what_names_a_commit_is_resolved_in_full(tree: Tree, short: Callable[[str], str]) -> None:
    sha = tree.commit("1")
    tree.git("tag", "-a", "v1", "-m", "annotated")

    assert Repository(tree.path).resolve(short(sha)) == sha


def test_a_repository_of_somebody_else_is_reported_in_git_s_words(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.commit("1")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    with pytest.raises(GitError, match=r"dubious ownership.*safe\.directory"):
        measured_history(tree.path, "HEAD")


def test_git_that_is_not_installed_is_reported(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tree.path))

    with pytest.raises(GitError, match="git is not installed"):
        measured_history(tree.path, "HEAD")


def test_the_variables_of_a_hook_do_not_point_git_elsewhere(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = tree.commit("1")
    other = Tree(tmp_path / "other")
    other.commit("o")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))

    assert Repository(tree.path).head() == sha


def test_a_history_is_cut_at_the_limit(tree: Tree) -> None:
    for number in range(1, 6):
        tree.commit(str(number))

    assert subjects(tree, limit=3) == ["5", "4", "3"]
