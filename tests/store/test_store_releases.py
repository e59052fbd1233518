"""Tags travel from git with a run into the store, and some of them are releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import a_run, a_sha

from store.bundle import read_bundle, write_bundle
from store.errors import StoreInvalid
from store.git import measured_history
from store.records import GitTag
from store.releases import load_tags, releases
from store.runs import load_run, save_run

if TYPE_CHECKING:
    from pathlib import Path

    from trees import Tree

    from store.database import Database


def a_tag(name: str, commit: int) -> GitTag:
    return GitTag(name=name, commit_sha=a_sha(commit))


def test_tags_on_the_first_parent_line_come_with_the_history(tree: Tree) -> None:
    first = tree.commit("1")
    tree.git("tag", "v1.0.0")
    tree.git("checkout", "-q", "-b", "side")
    tree.commit("side")
    tree.git("tag", "side-1")
    tree.git("checkout", "-q", "main")
    second = tree.commit("2")
    tree.git("tag", "-a", "-m", "annotated", "v1.1.0")
    tree.git("tag", "-a", "-m", "a tag of a tag", "signed", "v1.1.0")
    tree.git("merge", "-q", "--no-ff", "-m", "3", "side")

    assert measured_history(tree.path, "HEAD").git_tags == (
        GitTag(name="signed", commit_sha=second),
        GitTag(name="v1.1.0", commit_sha=second),
        GitTag(name="v1.0.0", commit_sha=first),
    )


def test_a_repository_without_tags_has_none(tree: Tree) -> None:
    tree.commit("1")

    assert measured_history(tree.path, "HEAD").git_tags == ()


def test_tags_of_the_base_branch_come_with_a_run_on_another_branch(tree: Tree) -> None:
    tree.commit("1")
    tree.git("tag", "v1.0.0")
    tree.git("checkout", "-q", "-b", "feature")
    tree.commit("f1")

    assert [tag.name for tag in measured_history(tree.path, "feature").git_tags] == ["v1.0.0"]


def test_tags_survive_the_store_and_a_bundle(database: Database, tmp_path: Path) -> None:
    run = a_run(20, git_tags=(a_tag("v2", 19), a_tag("v1", 5)))
    write_bundle(run, tmp_path / "run.kernelwatch.gz")
    save_run(database, read_bundle(tmp_path / "run.kernelwatch.gz"))

    assert load_run(database, run.header.run_id) == run


def test_a_tag_that_was_moved_is_where_the_newest_run_saw_it(database: Database) -> None:
    newer = a_run(21, git_tags=(a_tag("v1", 18),))
    older = a_run(20, git_tags=(a_tag("v1", 5), a_tag("v0", 2)))
    for run in (newer, older):  # they may arrive in any order
        save_run(database, run)

    assert load_tags(database, newer.header.repository) == (a_tag("v0", 2), a_tag("v1", 18))


def test_another_repository_has_tags_of_its_own(database: Database) -> None:
    save_run(database, a_run(20, git_tags=(a_tag("v1", 5),)))

    assert load_tags(database, "github.com/example/other") == ()


def test_only_tags_that_a_glob_names_are_releases() -> None:
    tags = (a_tag("v1.0", 3), a_tag("nightly-7", 4), a_tag("v1.0.1", 3), a_tag("r2", 6))

    assert releases(tags, ["v*"]) == {a_sha(3): "v1.0.1"}
    assert releases(tags, ["v*", "r?"]) == {a_sha(3): "v1.0.1", a_sha(6): "r2"}


def test_a_tag_on_no_commit_is_refused(database: Database) -> None:
    with pytest.raises(StoreInvalid, match="tag 'v1' points at 'HEAD', which is not a full commit id"):
        save_run(database, a_run(20, git_tags=(GitTag(name="v1", commit_sha="HEAD"),)))
