"""What git says about measured code, asked of real repositories."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from store.errors import GitError, NoRepository, UnknownRevision
from store.git import Repository, measured_history, repository_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada Example",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Example",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests has a say."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


class Tree:
    """A repository with a working tree, made by the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, date: str = "2026-03-02T09:00:00+01:00") -> str:
        """Run git here and give what it printed."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            env=os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, subject: str, *, date: str = "2026-03-02T09:00:00+01:00") -> str:
        """An empty commit; its id."""
        self.git("commit", "-q", "--allow-empty", "-m", subject, date=date)
        return self.git("rev-parse", "HEAD")

    def clone(self, path: Path, *options: str) -> Tree:
        """A clone through the file protocol, as depth needs it."""
        subprocess.run(["git", "clone", "-q", *options, f"file://{self.path}", str(path)], check=True)
        return Tree(path)


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "kernels")


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
    with pytest.raises(NoRepository, match="no git repository"):
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


def test_a_history_is_cut_at_the_limit(tree: Tree) -> None:
    for number in range(1, 6):
        tree.commit(str(number))

    assert subjects(tree, limit=3) == ["5", "4", "3"]
