"""``collect`` measures again what it flagged: real repositories, real processes, the host's clock."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from email.policy import default
from typing import TYPE_CHECKING

import pytest
from collect_command import COLLECT, LIMIT_S, Project
from mailserver import Mailbox, listening
from real_runs import Listener, a_plan
from real_workers import benchmarks, until
from suite_files import a_suite_file

from collector.run import collect_run
from store.bundle import read_bundle
from store.git import measured_history
from store.records import Measurement, PairedRole, Run, RunHeader, Standing, Verdict
from store.runs import find_runs, save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from trees import Tree

# The n-th process that sets the benchmark up sleeps as long as the n-th line says, and those
# after the last line as long as the last. So a test says how fast each pass of each session is.
SLEEPING = """
import pathlib, time
PLAN, COUNT = (pathlib.Path({folder!r}, name) for name in ("seconds", "set-ups"))

def bench_sleep():
    lines = PLAN.read_text().split()
    before = COUNT.stat().st_size if COUNT.exists() else 0
    with COUNT.open("a") as stream:
        stream.write("x")
    seconds = float(lines[min(before, len(lines) - 1)])
    return lambda: time.sleep(seconds)
"""
LENIENT = '[judge]\nminimum_tier = "C"\n'  # the host's clock gives tier C, and is judged all the same
FAST, SLOW = "0.002", "0.012"
PASSES = 3
RUNS_APART = (0.8, 0.9, 0.95, 1.05, 1.1, 1.25)  # so that a busy machine makes no change of its own


class Sleeper:
    """A project whose one benchmark sleeps as long as the test says."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self._folder = folder

    def will_take(self, *seconds: str) -> None:
        """From the next process on, so many seconds each; the last for all that follow."""
        (self._folder / "seconds").write_text("\n".join(seconds))
        (self._folder / "set-ups").unlink(missing_ok=True)

    def set_ups(self) -> int:
        """Processes that have set the benchmark up since then."""
        count = self._folder / "set-ups"
        return count.stat().st_size if count.exists() else 0

    def collect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.project.collect("--passes", str(PASSES), *arguments)

    def confirm_run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A second session alone; the run says with which suite."""
        return subprocess.run(
            [*COLLECT, "--python", self.project.python, "--confirm-run", *arguments],
            cwd=self.project.path, capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip

    def headers(self) -> list[RunHeader]:
        """The runs in the store, oldest first."""
        return list(reversed(find_runs(self.project.store())))

    def newest_two(self) -> tuple[RunHeader, RunHeader]:
        first, again = self.headers()[-2:]
        return first, again

    def verdict(self, run_id: str) -> Verdict:
        """The verdict on the sleeping benchmark of a run."""
        (verdict,) = [
            v
            for v in load_verdicts(self.project.store(), run_ids=[run_id])
            if v.series.case.benchmark == "sleep"
        ]
        return verdict


@pytest.fixture(name="fast", scope="module")
def _fast(bare_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the fast benchmark gives on this machine, outside of any repository."""
    folder = tmp_path_factory.mktemp("fast")
    (folder / "seconds").write_text(FAST)
    suite = a_suite_file(folder, SLEEPING.format(folder=str(folder)))
    return collect_run(a_plan(bare_python, repository=folder, suites=(str(suite),)), Listener())


def moved(measurement: Measurement, factor: float) -> Measurement:
    """As if the run had taken so many times as long."""
    interval = measurement.interval
    low, center, high = (factor * (bound or 0.0) for bound in (interval.low, interval.center, interval.high))
    return replace(measurement, interval=replace(interval, low=low, center=center, high=high))


@pytest.fixture(name="sleeper")
def _sleeper(tree: Tree, bare_python: str, tmp_path: Path, fast: Run) -> Sleeper:
    """Six commits that were measured, each once, and a seventh that is checked out."""
    folder = tmp_path / "speeds"
    folder.mkdir()
    a_suite_file(tree.path, SLEEPING.format(folder=str(folder)))
    (tree.path / "kernelwatch.toml").write_text(LENIENT)
    tree.git("add", "-A")
    sleeper = Sleeper(Project(tree.path, bare_python), folder)
    for number, factor in enumerate(RUNS_APART):
        tree.commit(f"Commit {number}")
        known = measured_history(tree.path, "HEAD")
        header = replace(
            fast.header,
            run_id=str(uuid.uuid4()),
            repository=known.repository,
            commit_sha=known.commit_sha,
            base_ref=known.base_ref,
            merge_base=known.merge_base,
            history_note=None,
            started_at=fast.header.started_at - timedelta(hours=6 - number),
            suites=("bench_example.py",),
        )
        measured = tuple(moved(measurement, factor) for measurement in fast.measurements)
        save_run(sleeper.project.store(), Run(header=header, measurements=measured, history=known.history))
    tree.commit("Sleep longer")
    return sleeper


def test_a_regression_is_measured_again_confirmed_and_fails_the_check(sleeper: Sleeper) -> None:
    sleeper.will_take(SLOW)

    done = sleeper.collect("--fail-on", "regression")

    first, again = sleeper.newest_two()
    assert done.returncode == 1, done.stderr
    assert again.confirms_run_id == first.run_id
    assert (again.commit_sha, again.passes, again.suites) == (first.commit_sha, first.passes, first.suites)
    verdicts = [sleeper.verdict(run.run_id) for run in (first, again)]
    assert [v.standing for v in verdicts] == [Standing.CONFIRMED] * 2
    assert verdicts[0].baseline_run_ids == verdicts[1].baseline_run_ids
    assert first.run_id not in verdicts[1].baseline_run_ids
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("sleep ")]
    assert row.endswith("confirmed")
    assert f"Measured again in a fresh session (run {again.run_id[:8]}" in done.stdout
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("  sleep: ")]
    assert f"in run {first.run_id[:8]}" in told
    assert told.endswith(f"in run {again.run_id[:8]}: confirmed")


def test_what_the_second_session_does_not_show_is_withdrawn(sleeper: Sleeper) -> None:
    sleeper.will_take(*[SLOW] * PASSES, FAST)

    done = sleeper.collect("--fail-on", "regression", "--format", "json")

    first, again = sleeper.newest_two()
    assert done.returncode == 0, done.stderr
    assert sleeper.verdict(first.run_id).standing is Standing.WITHDRAWN
    document = json.loads(done.stdout)
    assert document["run_id"] == first.run_id
    assert document["confirmation"] == {
        "run_id": again.run_id,
        "confirms_run_id": first.run_id,
        "measured_again": ["sleep"],
        "beyond_the_limit": [],
        "missing": None,
        "interrupted": False,
    }
    (told,) = document["measurements"]
    assert told["verdict"]["standing"] == "withdrawn"
    assert told["verdict"]["second"]["run_id"] == again.run_id


def test_what_did_not_change_is_not_measured_again_and_no_confirm_leaves_flags(sleeper: Sleeper) -> None:
    before = len(sleeper.headers())
    sleeper.will_take(SLOW)

    done = sleeper.collect("--no-confirm", "--fail-on", "regression")

    assert done.returncode == 0
    assert len(sleeper.headers()) == before + 1
    newest = sleeper.headers()[-1]
    assert sleeper.verdict(newest.run_id).standing is Standing.FLAGGED
    assert "No second session (--no-confirm)." in done.stdout
    assert f"`collect --confirm-run {newest.run_id[:8]}`" in done.stdout
    assert "Stay flagged (1): sleep" in done.stdout

    later = sleeper.confirm_run(newest.run_id[:8], "--fail-on", "regression")

    assert later.returncode == 1, later.stderr
    assert sleeper.headers()[-1].confirms_run_id == newest.run_id
    assert sleeper.headers()[-1].passes == PASSES
    assert sleeper.verdict(newest.run_id).standing is Standing.CONFIRMED


def test_an_interrupt_keeps_the_first_session_and_says_what_is_missing(sleeper: Sleeper) -> None:
    sleeper.will_take(*[SLOW] * PASSES, "0.5")
    command = sleeper.project.command("--passes", str(PASSES))
    with subprocess.Popen(
        command, cwd=sleeper.project.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        until(lambda: sleeper.set_ups() > PASSES)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=LIMIT_S)

    newest = sleeper.headers()[-1]
    assert running.returncode == 130
    assert newest.confirms_run_id is None
    assert sleeper.verdict(newest.run_id).standing is Standing.FLAGGED
    assert "The second session was interrupted before its first window was finished." in output
    assert "Stay flagged (1): sleep" in output
    assert f"`collect --confirm-run {newest.run_id[:8]}` measures what is flagged again." in output
    assert "interrupted: the first session is kept" in errors


MAILING = """
[mail]
smtp = "localhost:{port}"
security = "none"
to = ["team@example.org"]
min_tier = "C"
after_collect = true
"""


def test_mail_goes_out_once_after_the_second_session_and_not_about_what_it_withdrew(
    sleeper: Sleeper, tree: Tree
) -> None:
    mailbox = Mailbox()
    with listening(mailbox) as port:
        (tree.path / "kernelwatch.toml").write_text(LENIENT + MAILING.format(port=port))
        tree.git("commit", "-qam", "Send mail")
        sleeper.will_take(*[SLOW] * PASSES, FAST)
        withdrawn = sleeper.collect()
        after_the_withdrawal = list(mailbox.received)
        sleeper.will_take(SLOW)
        confirmed = sleeper.collect()

    assert (withdrawn.returncode, confirmed.returncode) == (0, 0), withdrawn.stderr + confirmed.stderr
    assert after_the_withdrawal == []
    assert "no confirmed regression of tier C or better to tell" in withdrawn.stderr
    ((recipients, content, _),) = mailbox.received
    mail = message_from_bytes(content, policy=default)
    first, _ = sleeper.newest_two()
    assert recipients == ["team@example.org"]
    assert "sleep is " in mail["Subject"]
    body = mail.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert text.startswith("1 regressed (1 confirmed)")
    assert f"--at {(first.commit_sha or '')[:9]}" in text
    assert confirmed.stderr.count("to team@example.org") == 1


def test_a_pair_is_confirmed_by_a_second_pair(sleeper: Sleeper, tree: Tree) -> None:
    suite = benchmarks("other") + "\nfrom pauses import SECONDS\nimport time\n"
    suite += "def bench_sleep(): return lambda: time.sleep(SECONDS)\n"
    a_suite_file(tree.path, suite)
    a_suite_file(tree.path, f"SECONDS = {FAST}", "pauses.py")
    tree.git("add", "-A")
    base = tree.commit("Sleep a little")
    a_suite_file(tree.path, f"SECONDS = {SLOW}", "pauses.py")
    tree.git("commit", "-qam", "Sleep longer")
    before = len(sleeper.headers())

    done = sleeper.collect("--against", base, "--fail-on", "regression", "--only", "sleep")

    assert done.returncode == 1, done.stderr
    runs = sleeper.headers()[before:]
    candidates = [run for run in runs if run.paired_role is PairedRole.CANDIDATE]
    baselines = [run for run in runs if run.paired_role is PairedRole.BASELINE]
    first, again = candidates
    assert (first.confirms_run_id, again.confirms_run_id) == (None, first.run_id)
    assert [run.commit_sha for run in baselines] == [base] * 2
    verdicts = [sleeper.verdict(run.run_id) for run in candidates]
    assert [v.standing for v in verdicts] == [Standing.CONFIRMED] * 2
    assert [v.baseline_run_ids for v in verdicts] == [(run.paired_with,) for run in candidates]
    # Measuring left compiled files in the checkout, which is none of the candidate's code.
    assert "the checkout has changed" in done.stderr
    assert tree.git("worktree", "list").count("\n") == 0


def test_without_a_store_the_bundle_is_confirmed_once_it_was_judged_elsewhere(sleeper: Sleeper) -> None:
    """What a runner without access to the store does: measure, wait for the verdict, measure again."""
    sleeper.will_take(SLOW)
    before = len(sleeper.headers())

    first = sleeper.collect("--output", "run.kernelwatch.gz")
    again = sleeper.confirm_run("run.kernelwatch.gz", "--only", "sleep", "--output", "again.kernelwatch.gz")

    assert "not judged: without a store nothing can be flagged or confirmed." in first.stderr
    assert again.returncode == 0, again.stderr
    assert len(sleeper.headers()) == before
    run, second = (read_bundle(sleeper.project.path / f"{name}.kernelwatch.gz") for name in ("run", "again"))
    assert second.header.confirms_run_id == run.header.run_id
    database = sleeper.project.store()
    for each in (run, second):
        save_run(database, each)
    judge = [sys.executable, "-P", "-m", "alerts", "judge", "--run", run.header.run_id]
    judged = subprocess.run(
        [*judge, "--fail-on", "regression"],
        cwd=sleeper.project.path, check=False, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert judged.returncode == 1, judged.stderr
    assert judged.stdout.startswith("1 regressed (1 confirmed)")
    assert f"in run {second.header.run_id[:8]}: confirmed" in judged.stdout
