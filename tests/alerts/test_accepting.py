"""From measuring to accepting to judging the next commit: real commits, a real store, the real commands."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run
from click.testing import CliRunner
from trees import SETTINGS, Tree

from alerts.cli import alerts
from store.database import Database
from store.git import measured_history
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

OLD_MS, NEW_MS = 0.25, 0.26


class Project:
    """A repository whose commits are measured into a store, one run after another."""

    def __init__(self, folder: Path, *, runs: int = 0) -> None:
        self.tree = Tree(folder / "kernels")
        self.store = str(folder / "runs.duckdb")
        self.runs = runs

    def measure(self, median_ms: float, *, anew: bool = True) -> str:
        """Measure a fresh commit, or the same once more; the run's id."""
        if anew:
            self.tree.commit(f"Change number {self.runs}")
        known = measured_history(self.tree.path, "HEAD", base_ref="main")
        self.runs += 1
        # Runs are numbered, and begin a minute after one another.
        run = a_run(
            number=self.runs,
            measurements=(a_measurement(median_ms=median_ms, seed=self.runs),),
            header={
                name: getattr(known, name)
                for name in ("repository", "commit_sha", "dirty", "base_ref", "merge_base", "history_note")
            },
            history=known.history,
        )
        save_run(Database(self.store), run)
        return run.header.run_id

    def judge(self, run_id: str) -> tuple[dict[str, Any], int]:
        """The verdict on its one benchmark, and the exit code of the check."""
        done = self.alerts("judge", "--run", run_id, "--format", "json", "--fail-on", "regression")
        (verdict,) = json.loads(done[0])["verdicts"]
        return verdict, done[1]

    def alerts(self, *words: str) -> tuple[str, int]:
        done = CliRunner().invoke(alerts, [*words, "--store", self.store])
        return done.stdout, done.exit_code


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen commits at one level, then one that is 4 % slower, confirmed in two sessions; only copied."""
    folder = tmp_path_factory.mktemp("slowed")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        made = Project(folder)
        for _ in range(18):
            made.measure(OLD_MS)
        made.judge(made.measure(NEW_MS))
        verdict, code = made.judge(made.measure(NEW_MS, anew=False))
    assert (verdict["outcome"], verdict["standing"], code) == ("REGRESSED", "confirmed", 1)
    return folder


@pytest.fixture
def project(slowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(slowed, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path, runs=20)


def accept(project: Project, at: str) -> None:
    words = ("triage", "accept", "softmax", "--at", at, "--repo", str(project.tree.path), "--as", "Ada")
    assert project.alerts(*words)[1] == 0


def test_without_a_decision_the_next_commit_is_slower_too(project: Project) -> None:
    verdict, _ = project.judge(project.measure(NEW_MS))

    assert verdict["outcome"] == "REGRESSED"


def test_after_accepting_the_next_commit_is_judged_against_the_new_level(project: Project) -> None:
    accept(project, "HEAD")

    verdict, code = project.judge(project.measure(NEW_MS))

    assert (verdict["outcome"], code) == ("UNCHANGED", 0)
    assert (verdict["baseline_kind"], len(verdict["baseline_run_ids"])) == ("single", 1)
    assert "provisional" in verdict["message"]
    assert "since the change accepted at" in verdict["message"]


def test_once_enough_runs_followed_an_accepted_change_they_are_a_pool(project: Project) -> None:
    accept(project, "HEAD")
    for _ in range(4):
        project.measure(NEW_MS)

    same, _ = project.judge(project.measure(NEW_MS))
    slower, _ = project.judge(project.measure(NEW_MS * 1.04))

    assert (same["outcome"], same["baseline_kind"], len(same["baseline_run_ids"])) == ("UNCHANGED", "pool", 6)
    assert (slower["outcome"], slower["baseline_kind"]) == ("REGRESSED", "pool")
    assert 0.03 < slower["effect"] < 0.05


def test_the_accepted_commit_itself_keeps_its_verdict_and_fails_no_check_any_more(project: Project) -> None:
    accept(project, "HEAD")

    text, code = project.alerts("judge", "--fail-on", "regression")

    assert code == 0
    assert "1 regressed (1 confirmed, 1 of them accepted)" in text


def test_taking_an_acceptance_back_brings_the_old_baseline_back(project: Project) -> None:
    accept(project, "HEAD")
    event = json.loads(project.alerts("triage", "list", "--history", "--format", "json")[0])[0]
    project.alerts("triage", "revoke", event["event_id"][:8], "--as", "Ada")

    verdict, _ = project.judge(project.measure(NEW_MS))

    assert verdict["outcome"] == "REGRESSED"


def test_what_was_accepted_on_a_branch_holds_from_the_merge_on(project: Project) -> None:
    tree = project.tree
    tree.git("checkout", "-q", "-b", "exact")
    project.measure(NEW_MS * 1.05)
    accept(project, "exact")
    tree.git("checkout", "-q", "main")
    accept(project, "main")
    project.tree.commit("Something else")
    tree.git("merge", "-q", "--no-ff", "-m", "Merge exact", "exact")
    project.measure(NEW_MS * 1.05, anew=False)

    verdict, _ = project.judge(project.measure(NEW_MS * 1.05))

    assert verdict["outcome"] == "UNCHANGED"
