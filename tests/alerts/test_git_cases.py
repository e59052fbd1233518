"""What git does to a history, from measuring to the verdict: real repositories, a real store, the command.

Each test measures commits of a repository that it builds, and reads what `alerts judge` says.
The table of these cases is docs/git.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_measurement, a_run
from click.testing import CliRunner
from trees import SETTINGS, Tree

from alerts.cli import alerts
from store.database import Database
from store.git import Repository, measured_history
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

SLOWER = 1.05


@dataclass
class Lab:
    """A machine beside a repository: it measures what it is told, stores it, and has it judged."""

    tree: Tree
    database: Database
    measured: int = 0

    def measure(
        self, revision: str = "HEAD", *, at: Path | None = None, slower: float = 1.0, base: str | None = None
    ) -> str:
        """Measure a revision of the repository, or of another checkout of it; the run's id."""
        self.measured += 1
        found = measured_history(at or self.tree.path, revision, base_ref=base)
        started = EPOCH + timedelta(hours=self.measured)
        run = a_run(
            1,
            number=self.measured,
            measurements=(a_measurement(median_ms=0.25 * slower, seed=self.measured),),
            history=found.history,
            git_tags=found.git_tags,
            header={
                "repository": found.repository,
                "commit_sha": found.commit_sha,
                "dirty": found.dirty,
                "base_ref": found.base_ref,
                "merge_base": found.merge_base,
                "history_note": found.history_note,
                "started_at": started,
                "ended_at": started,
            },
        )
        save_run(self.database, run)
        return run.header.run_id

    def judge(self, run_id: str) -> dict[str, Any]:
        """The only verdict on a run."""
        result = CliRunner().invoke(
            alerts, ["judge", "--run", run_id, "--store", self.database.url, "--format", "json"]
        )
        assert result.exit_code in (0, 3), result.output
        verdict: dict[str, Any]
        (verdict,) = json.loads(result.stdout)["verdicts"]
        return verdict

    def verdict(self, revision: str = "HEAD", **how: Any) -> dict[str, Any]:
        """The verdict on a run that is measured now."""
        return self.judge(self.measure(revision, **how))


@pytest.fixture(name="lab")
def _lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return Lab(Tree(tmp_path / "kernels"), Database(tmp_path / "runs.duckdb"))


def compared_with(verdict: dict[str, Any]) -> tuple[str, list[str]]:
    return verdict["outcome"], verdict["baseline_run_ids"]


def branch(tree: Tree, name: str, *subjects: str, start: str = "HEAD") -> str:
    """A branch with these commits, checked out; its tip."""
    tree.git("checkout", "-q", "-b", name, start)
    for subject in subjects:
        tree.commit(subject)
    return tree.git("rev-parse", "HEAD")


def test_a_shallow_clone_gets_no_verdict_until_it_is_deepened(lab: Lab, tmp_path: Path) -> None:
    lab.tree.commit("1")
    before = lab.measure()
    lab.tree.commit("2")
    clone = lab.tree.clone(tmp_path / "elsewhere" / "kernels", "--depth", "1")

    shallow = lab.verdict(at=clone.path)
    Repository(clone.path).deepen()
    whole = lab.verdict(at=clone.path, slower=SLOWER)

    assert (shallow["outcome"], shallow["reason"]) == ("INCONCLUSIVE", "history-missing")
    assert "git fetch --unshallow" in shallow["message"]
    assert compared_with(whole) == ("REGRESSED", [before])


def test_a_merge_is_compared_with_its_first_parent_and_not_with_what_it_merged(lab: Lab) -> None:
    lab.tree.commit("1")
    branch(lab.tree, "feature", "f")
    feature = lab.measure(slower=SLOWER)
    lab.tree.git("checkout", "-q", "main")
    lab.tree.commit("2")
    first_parent = lab.measure()
    lab.tree.git("merge", "-q", "--no-ff", "-m", "3", "feature")

    merge = lab.verdict(slower=SLOWER)

    assert compared_with(merge) == ("REGRESSED", [first_parent])
    assert feature not in merge["baseline_run_ids"]


def test_what_ci_checks_out_of_a_pull_request_is_compared_with_the_main_it_merges(
    lab: Lab, tmp_path: Path
) -> None:
    """A detached merge of main and the branch, in a clone without branches of its own."""
    lab.tree.commit("1")
    lab.measure(slower=0.5)
    branch(lab.tree, "feature", "f")
    lab.tree.git("checkout", "-q", "main")
    lab.tree.commit("2")
    main = lab.measure()
    lab.tree.git("checkout", "-q", "--detach")
    lab.tree.git("merge", "-q", "--no-ff", "-m", "Merge for the check", "feature")
    lab.tree.git("update-ref", "refs/pull/7/merge", "HEAD")
    lab.tree.git("checkout", "-q", "main")
    clone = lab.tree.clone(tmp_path / "elsewhere" / "kernels")
    clone.git("fetch", "-q", "origin", "refs/pull/7/merge")
    clone.git("checkout", "-q", "--detach", "FETCH_HEAD")
    clone.git("branch", "-q", "-D", "main")

    found = lab.verdict(at=clone.path, slower=SLOWER, base="main")

    assert found["outcome"] == "REGRESSED"
    assert found["baseline_run_ids"][0] == main


def test_a_squash_merge_is_compared_with_main_and_not_with_the_branch_it_came_from(lab: Lab) -> None:
    lab.tree.commit("1")
    main = lab.measure()
    branch(lab.tree, "feature", "f1", "f2")
    lab.measure(slower=SLOWER)
    lab.tree.git("checkout", "-q", "main")
    lab.tree.git("merge", "-q", "--squash", "feature")
    lab.tree.commit("f1 and f2 (#7)")

    assert compared_with(lab.verdict(slower=SLOWER)) == ("REGRESSED", [main])


def test_a_rebased_branch_is_compared_with_where_it_stands_now(lab: Lab) -> None:
    lab.tree.commit("1")
    lab.measure(slower=0.8)
    branch(lab.tree, "feature", "f")
    before_rebase = lab.measure(slower=0.8)
    lab.tree.git("checkout", "-q", "main")
    lab.tree.commit("2")
    newer_main = lab.measure()
    lab.tree.git("checkout", "-q", "feature")
    lab.tree.git("rebase", "-q", "main", date="2026-04-01T09:00:00+01:00")

    found = lab.verdict()

    assert found["outcome"] == "UNCHANGED"
    assert found["baseline_run_ids"][0] == newer_main
    assert before_rebase not in found["baseline_run_ids"]


def test_runs_of_a_main_branch_that_was_rewritten_are_no_ancestors(lab: Lab) -> None:
    kept = lab.tree.commit("1")
    common = lab.measure()
    lab.tree.commit("2")
    lab.measure(slower=SLOWER)
    lab.tree.git("reset", "-q", "--hard", kept)
    lab.tree.commit("2, written again")
    lab.tree.commit("3")

    assert compared_with(lab.verdict(slower=SLOWER)) == ("REGRESSED", [common])


def test_a_rewritten_main_without_a_measured_ancestor_is_no_pass(lab: Lab) -> None:
    lab.tree.commit("1")
    lab.measure()
    lab.tree.git("checkout", "-q", "--orphan", "fresh")
    lab.tree.commit("Start again")
    lab.tree.git("branch", "-q", "-M", "main")
    lab.tree.commit("2")

    found = lab.verdict()

    assert (found["outcome"], found["reason"]) == ("INCONCLUSIVE", "no-baseline")
    assert "collect --commit" in found["message"]


def test_a_commit_measured_twice_is_not_its_own_baseline(lab: Lab) -> None:
    lab.tree.commit("1")
    before = lab.measure()
    lab.tree.commit("2")
    lab.judge(lab.measure(slower=SLOWER))

    assert compared_with(lab.verdict(slower=SLOWER)) == ("REGRESSED", [before])


def test_of_an_ancestor_measured_twice_the_newer_run_comes_first(lab: Lab) -> None:
    lab.tree.commit("1")
    lab.measure(slower=0.5)
    newer = lab.measure()
    lab.tree.commit("2")

    found = lab.verdict()

    assert (found["outcome"], found["baseline_run_ids"][0]) == ("UNCHANGED", newer)


def test_changes_in_the_tree_are_compared_with_the_commit_under_them_and_never_serve_others(lab: Lab) -> None:
    (lab.tree.path / "kernel.py").write_text("x = 1")
    lab.tree.git("add", ".")
    lab.tree.commit("1")
    commit = lab.measure()
    (lab.tree.path / "kernel.py").write_text("x = 2")
    dirty = lab.verdict(slower=SLOWER)
    lab.tree.git("commit", "-qam", "2")

    committed = lab.verdict(slower=SLOWER)

    assert compared_with(dirty) == ("REGRESSED", [commit])
    assert "uncommitted changes" in dirty["message"]
    assert compared_with(committed) == ("REGRESSED", [commit])
    assert committed["standing"] == "flagged"


def test_commits_that_were_never_measured_are_passed_over_to_the_nearest_that_was(lab: Lab) -> None:
    lab.tree.commit("1")
    lab.measure(slower=0.5)
    lab.tree.commit("2")
    nearest = lab.measure()
    for number in range(3, 9):
        lab.tree.commit(str(number))

    found = lab.verdict(slower=SLOWER)

    assert (found["outcome"], found["baseline_run_ids"][0]) == ("REGRESSED", nearest)


def test_a_parent_that_was_never_measured_is_named_where_nothing_was(lab: Lab) -> None:
    parent = lab.tree.commit("1")
    lab.tree.commit("2")

    found = lab.verdict()

    assert (found["outcome"], found["reason"]) == ("INCONCLUSIVE", "no-baseline")
    assert f"run `collect --commit {parent[:9]}`" in found["message"]


def test_clocks_that_run_backwards_change_nothing_about_the_order(lab: Lab) -> None:
    """By date the first commit is the newest, and the judged one the oldest."""
    lab.tree.commit("1", date="2031-01-01T00:00:00+00:00")
    lab.measure(slower=0.5)
    lab.tree.commit("2", date="2030-01-01T00:00:00+00:00")
    parent = lab.measure()
    lab.tree.commit("3", date="2001-01-01T00:00:00+00:00")

    found = lab.verdict(slower=SLOWER)

    assert (found["outcome"], found["baseline_run_ids"][0]) == ("REGRESSED", parent)


def test_a_new_version_of_a_submodule_is_a_change_like_any_other(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    part = Tree(tmp_path / "part")
    part.commit("p1")
    lab.tree.git("submodule", "add", "-q", str(part.path), "part")
    lab.tree.commit("Use a part")
    before = lab.measure()
    part.commit("p2")
    lab.tree.git("submodule", "update", "-q", "--remote")
    uncommitted = lab.verdict(slower=SLOWER)
    lab.tree.git("commit", "-qam", "Use the newer part")

    assert "uncommitted changes" in uncommitted["message"]
    assert compared_with(uncommitted) == ("REGRESSED", [before])
    assert compared_with(lab.verdict(slower=SLOWER)) == ("REGRESSED", [before])


def test_a_worktree_shares_the_history_of_its_repository(lab: Lab, tmp_path: Path) -> None:
    lab.tree.commit("1")
    before = lab.measure()
    lab.tree.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "another name"))
    worktree = Tree(tmp_path / "another name")
    worktree.commit("f")

    assert compared_with(lab.verdict(at=worktree.path, slower=SLOWER)) == ("REGRESSED", [before])


def test_a_detached_head_is_judged_like_the_branch_it_is_on(lab: Lab) -> None:
    lab.tree.commit("1")
    before = lab.measure()
    lab.tree.commit("2")
    lab.tree.commit("3")
    lab.tree.git("checkout", "-q", "--detach", "HEAD~1")

    assert compared_with(lab.verdict(slower=SLOWER)) == ("REGRESSED", [before])


def test_code_in_no_repository_is_measured_and_not_judged(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    loose = tmp_path / "loose"
    loose.mkdir()
    lab.measure(at=loose)

    found = lab.verdict(at=loose)

    assert (found["outcome"], found["reason"]) == ("INCONCLUSIVE", "history-missing")
    assert "put the code into one" in found["message"]


def test_a_repository_without_a_commit_is_measured_and_not_judged(lab: Lab) -> None:
    found = lab.verdict()

    assert (found["outcome"], found["reason"]) == ("INCONCLUSIVE", "history-missing")
    assert "commit the code" in found["message"]


def test_a_branch_without_a_known_main_is_not_judged_and_told_how_to_be(lab: Lab) -> None:
    lab.tree.git("checkout", "-q", "-b", "trunk")
    lab.tree.commit("1")
    lab.measure()
    lab.tree.commit("2")

    unknown = lab.verdict(slower=SLOWER)
    named = lab.verdict(slower=SLOWER, base="trunk")

    assert (unknown["outcome"], unknown["reason"]) == ("INCONCLUSIVE", "history-missing")
    assert "--base" in unknown["message"]
    assert named["outcome"] == "REGRESSED"
