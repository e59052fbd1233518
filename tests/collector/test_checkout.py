"""Laying out the code to measure, with real git and real files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from suite_files import a_suite_file

from collector import checkout as module
from collector.checkout import checkout, suite_names, suite_paths, top_folder
from collector.errors import CheckoutError
from store.errors import UnknownRevision

if TYPE_CHECKING:
    from trees import Tree


def commit_file(tree: Tree, name: str, text: str) -> str:
    """Commit a file with this content; the commit's id."""
    a_suite_file(tree.path, text, name)
    tree.git("add", "-A")
    return tree.commit(f"Write {name}")


def assert_nothing_left(tree: Tree) -> None:
    """Neither a folder nor a note in the repository tells that there was a worktree."""
    assert tree.git("worktree", "list").count("\n") == 0
    assert not list(tree.path.glob(".git/worktrees/*"))
    assert list(Path(tempfile.gettempdir()).glob("kernelwatch-*")) == []


def test_another_revision_is_laid_out_in_a_tree_of_its_own(tree: Tree) -> None:
    old = commit_file(tree, "code.py", "SPEED = 1")
    commit_file(tree, "code.py", "SPEED = 2")

    with checkout(tree.path, old[:8], old) as root:
        assert root != tree.path
        assert (root / "code.py").read_text() == "SPEED = 1"
        assert (tree.path / "code.py").read_text() == "SPEED = 2"

    assert not root.exists()
    assert_nothing_left(tree)


def test_the_dirty_checkout_is_left_as_it_is(tree: Tree) -> None:
    old = commit_file(tree, "code.py", "SPEED = 1")
    commit_file(tree, "code.py", "SPEED = 2")
    (tree.path / "code.py").write_text("SPEED = 3")
    (tree.path / "new.py").write_text("new")
    before = tree.git("status", "--porcelain", "--branch")

    with checkout(tree.path, "main~1", old) as root:
        assert (root / "code.py").read_text() == "SPEED = 1"
        assert not (root / "new.py").exists()

    assert tree.git("status", "--porcelain", "--branch") == before
    assert (tree.path / "code.py").read_text() == "SPEED = 3"


def test_head_is_the_checkout_itself_with_its_changes(tree: Tree) -> None:
    sha = commit_file(tree, "code.py", "SPEED = 1")

    with checkout(tree.path, "HEAD", sha) as root:
        assert root == tree.path

    assert tree.path.exists()


def test_the_commit_that_is_checked_out_can_be_measured_without_its_changes(tree: Tree) -> None:
    sha = commit_file(tree, "code.py", "SPEED = 1")
    (tree.path / "code.py").write_text("SPEED = 3")

    with checkout(tree.path, "main", sha) as root:
        assert (root / "code.py").read_text() == "SPEED = 1"

    assert_nothing_left(tree)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_no_worktree_is_left_when_measuring_ends_badly(tree: Tree, error: type[BaseException]) -> None:
    sha = commit_file(tree, "code.py", "SPEED = 1")

    with pytest.raises(error), checkout(tree.path, "main", sha):
        raise error

    assert_nothing_left(tree)


def test_no_worktree_is_left_when_an_interrupt_meets_git_at_work(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = commit_file(tree, "code.py", "SPEED = 1")
    real = module._git

    def interrupted(folder: Path, *arguments: str) -> str:
        answer = real(folder, *arguments)
        if arguments[:2] == ("worktree", "add"):
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(module, "_git", interrupted)

    with pytest.raises(KeyboardInterrupt), checkout(tree.path, "main", sha):
        pass

    assert_nothing_left(tree)


def test_a_worktree_that_git_cannot_make_is_an_error_with_gits_words(tree: Tree) -> None:
    commit_file(tree, "code.py", "SPEED = 1")

    with (
        pytest.raises(CheckoutError, match=r"0{40}.*worktree add .* failed"),
        checkout(tree.path, "gone", "0" * 40),
    ):
        pass

    assert_nothing_left(tree)


FILE_REMOTES = ("-c", "protocol.file.allow=always")  # git refuses them for submodules by default


@pytest.fixture(name="part")
def _part(tree: Tree, tmp_path: Path) -> Tree:
    """A submodule of ``tree``, which uses its first version and then its second."""
    part = type(tree)(tmp_path / "part")
    commit_file(part, "part.py", "VERSION = 1")
    tree.git(*FILE_REMOTES, "submodule", "add", "-q", part.path.as_uri(), "third_party/part")
    tree.commit("Use a part")
    commit_file(part, "part.py", "VERSION = 2")
    tree.git(*FILE_REMOTES, "submodule", "update", "-q", "--remote")
    tree.git("commit", "-aqm", "Use the newer part")
    return part


def test_submodules_are_laid_out_as_the_revision_has_them(tree: Tree, part: Tree) -> None:
    del part
    with checkout(tree.path, "main~1", tree.git("rev-parse", "main~1")) as root:
        assert (root / "third_party" / "part" / "part.py").read_text() == "VERSION = 1"

    assert_nothing_left(tree)
    assert (tree.path / "third_party" / "part" / "part.py").read_text() == "VERSION = 2"


def test_submodules_come_from_the_clones_that_the_checkout_has(tree: Tree, part: Tree) -> None:
    """Their remotes may be slow, out of reach, or without a commit that was never pushed."""
    inner = type(tree)(tree.path / "third_party" / "part")
    commit_file(inner, "part.py", "VERSION = 3")
    tree.git("commit", "-aqm", "Use a part of our own")
    part.path.rename(part.path.with_name("gone"))

    for revision, version in (("main~2", 1), ("main", 3)):
        with checkout(tree.path, revision, tree.git("rev-parse", revision)) as root:
            laid_out = root / "third_party" / "part"
            assert (laid_out / "part.py").read_text() == f"VERSION = {version}"
            assert type(tree)(laid_out).git("remote", "get-url", "origin") == part.path.as_uri()


def test_a_submodule_s_commit_that_no_clone_here_has_is_fetched(
    tree: Tree, part: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in CI, where submodules are cloned with their last commit alone."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    part.git("config", "uploadpack.allowAnySHA1InWant", "true")
    tree.git(
        "clone",
        "-q",
        "--recurse-submodules",
        "--shallow-submodules",
        tree.path.as_uri(),
        str(tmp_path / "ci"),
    )
    clone = tmp_path / "ci"

    with checkout(clone, "main~1", tree.git("rev-parse", "main~1")) as root:
        assert (root / "third_party" / "part" / "part.py").read_text() == "VERSION = 1"


def test_a_submodule_that_cannot_be_had_is_an_error_that_begins_with_the_reason(
    tree: Tree, part: Tree, tmp_path: Path
) -> None:
    part.path.rename(part.path.with_name("gone"))
    tree.git("clone", "-q", str(tree.path), str(tmp_path / "ci"))

    with (
        pytest.raises(CheckoutError, match=r"^fatal: .*part.*submodule update"),
        checkout(tmp_path / "ci", "main", tree.git("rev-parse", "main")),
    ):
        pytest.fail("it was laid out")


def test_what_a_hook_tells_git_about_other_folders_is_not_believed(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = commit_file(tree, "code.py", "SPEED = 1")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no index"))

    with checkout(tree.path, "main", sha) as root:
        assert (root / "code.py").exists()
    assert top_folder(tree.path) == tree.path


def test_where_there_is_no_git_the_folder_itself_is_measured(tmp_path: Path) -> None:
    with checkout(tmp_path, "HEAD", None) as root:
        assert root == tmp_path
    assert top_folder(tmp_path) == tmp_path


def test_the_top_folder_is_found_from_below(tree: Tree) -> None:
    commit_file(tree, "src/kernels/code.py", "SPEED = 1")

    assert top_folder(tree.path / "src" / "kernels") == tree.path


def test_where_git_is_not_installed_the_folder_itself_is_the_top(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert top_folder(tree.path) == tree.path
    with (
        pytest.raises(CheckoutError, match="No such file or directory: 'git'"),
        checkout(tree.path, "main", "0" * 40),
    ):
        pass


def test_a_suite_of_the_repository_is_taken_from_the_measured_revision(tree: Tree) -> None:
    old = commit_file(tree, "benches/bench_x.py", "# old")
    commit_file(tree, "benches/bench_x.py", "# new")
    asked = (str(tree.path / "benches" / "bench_x.py"), str(tree.path / "benches"))

    with checkout(tree.path, "main~1", old) as root:
        file, folder = suite_paths(asked, root=root, repository=tree.path)
        assert file.read_text() == "# old"
        assert folder == root / "benches"


def test_a_suite_that_the_revision_lacks_is_copied_into_it_from_here(tree: Tree) -> None:
    """What lies around the suite, and is imported by it, is then that of the revision."""
    old = commit_file(tree, "code.py", "SPEED = 1")
    commit_file(tree, "code.py", "SPEED = 2")
    a_suite_file(tree.path, "# new", "bench_x.py")
    a_suite_file(tree.path, "# also new", "benches/deep/bench_y.py")
    asked = (str(tree.path / "bench_x.py"), str(tree.path / "benches"))

    with checkout(tree.path, "main~1", old) as root:
        file, folder = suite_paths(asked, root=root, repository=tree.path)
        assert (file, file.read_text()) == (root / "bench_x.py", "# new")
        assert (folder / "deep" / "bench_y.py").read_text() == "# also new"
        assert (file.parent / "code.py").read_text() == "SPEED = 1"

    assert_nothing_left(tree)


def test_a_suite_of_another_revision_takes_the_place_of_the_measured_one(tree: Tree) -> None:
    old = commit_file(tree, "benches/bench_x.py", "# old")
    commit_file(tree, "benches/bench_gone.py", "# deleted later")
    measured = commit_file(tree, "code.py", "SPEED = 1")
    tree.git("rm", "-q", "benches/bench_gone.py")
    commit_file(tree, "benches/bench_x.py", "# new")

    with checkout(tree.path, measured, measured) as root:
        (folder,) = suite_paths(
            (str(tree.path / "benches"),), root=root, repository=tree.path, revision="main"
        )
        assert [file.read_text() for file in folder.iterdir()] == ["# new"]
    with checkout(tree.path, measured, measured) as root:
        (file,) = suite_paths(
            (str(tree.path / "benches" / "bench_x.py"),), root=root, repository=tree.path, revision=old
        )
        assert file.read_text() == "# old"
        assert (root / "benches" / "bench_gone.py").exists()

    assert_nothing_left(tree)


@pytest.mark.parametrize(
    ("suite", "revision", "said"),
    [
        ("bench_x.py", "main~1", "main~1 has no suite at bench_x.py, name a revision that has it"),
        (".", "main", "name the suite's own folder or file"),
    ],
)
def test_a_suite_that_another_revision_cannot_give_is_an_error(
    tree: Tree, suite: str, revision: str, said: str
) -> None:
    old = commit_file(tree, "code.py", "SPEED = 1")
    commit_file(tree, "bench_x.py", "# new")

    with checkout(tree.path, old, old) as root, pytest.raises(CheckoutError, match=said):
        suite_paths((str(tree.path / suite),), root=root, repository=tree.path, revision=revision)


def test_the_checkout_itself_is_never_overwritten_with_another_revision_s_suite(tree: Tree) -> None:
    commit_file(tree, "bench_x.py", "# old")
    commit_file(tree, "bench_x.py", "# new")

    with pytest.raises(CheckoutError, match="measure a commit, such as --commit"):
        suite_paths((str(tree.path / "bench_x.py"),), root=tree.path, repository=tree.path, revision="main~1")
    assert (tree.path / "bench_x.py").read_text() == "# new"


def test_a_suite_outside_the_repository_is_the_same_for_every_revision(tree: Tree, tmp_path: Path) -> None:
    sha = commit_file(tree, "code.py", "SPEED = 1")
    outside = a_suite_file(tmp_path / "elsewhere", "")

    with checkout(tree.path, "main", sha) as root:
        assert suite_paths((str(outside),), root=root, repository=tree.path) == [outside]


@pytest.mark.parametrize("written", ["bench", "bench/", "./bench", "code/../bench", "{top}/bench"])
def test_a_suite_has_one_name_however_it_is_written(
    written: str, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.path / "code").mkdir()
    monkeypatch.chdir(tree.path)
    assert suite_names((written.format(top=tree.path),), repository=tree.path) == ("bench",)


def test_a_suite_has_one_name_from_whichever_folder_it_is_written(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.path / "code").mkdir()
    monkeypatch.chdir(tree.path / "code")

    names = suite_names(("../bench", "../../elsewhere/bench.py", "../bench/"), repository=tree.path)

    assert names == ("bench", "../elsewhere/bench.py")


def test_suites_are_meant_from_the_current_folder(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = a_suite_file(tree.path / "benches", "")
    monkeypatch.chdir(suite.parent)

    assert suite_paths(("bench_example.py",), root=tree.path, repository=tree.path) == [suite]


def test_no_suite_asked_for_is_no_suite_found(tree: Tree) -> None:
    assert suite_paths((), root=tree.path, repository=tree.path) == []


def test_a_suite_that_is_nowhere_is_an_error_that_names_it(tree: Tree) -> None:
    with pytest.raises(CheckoutError, match=r"there is no suite at benhces: give --suite a Python file"):
        suite_paths(("benhces",), root=tree.path, repository=tree.path)


def test_the_head_that_suites_are_asked_from_is_the_user_s(tree: Tree) -> None:
    old = commit_file(tree, "bench_x.py", "# old")
    commit_file(tree, "bench_x.py", "# new")

    with checkout(tree.path, old, old) as root:
        (file,) = suite_paths(
            (str(tree.path / "bench_x.py"),), root=root, repository=tree.path, revision="HEAD"
        )
        assert file.read_text() == "# new"


def test_a_suite_of_a_revision_that_git_does_not_know_is_an_error(tree: Tree) -> None:
    old = commit_file(tree, "bench_x.py", "# old")

    with checkout(tree.path, old, old) as root, pytest.raises(UnknownRevision, match="no commit 'nowhere'"):
        suite_paths((str(tree.path / "bench_x.py"),), root=root, repository=tree.path, revision="nowhere")
