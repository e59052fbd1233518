"""Filling the gaps of a history: the order, the bounds, and the command with real commits and workers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_commit, a_header, a_run, a_sha
from click.testing import CliRunner
from collect_command import LIMIT_S, Project
from hypothesis import given
from hypothesis import strategies as st
from real_workers import benchmarks
from suite_files import a_suite_file

from collector.attempts import Attempts
from collector.backfill import Ended, Order, measure_missing, midpoints, newest, outlook, to_judge
from collector.cli import collect
from collector.errors import MachineError
from store.errors import GitError
from store.runs import find_runs, load_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from trees import Tree

    from collector.backfill import Backfilled
    from collector.errors import CollectorError
    from store.errors import StoreError
    from store.records import Commit, Run

COMMITS = [a_commit(number) for number in range(1, 10)]
WALL = ("--timer", "wall", "--passes", "1")


def a_clock(*, step_s: float) -> Callable[[], float]:
    """Every look at it is so much later."""
    times: Iterator[float] = (step_s * number for number in range(10_000))
    return lambda: next(times)


def attempts_of(*, measured: tuple[int, ...] = (), failed: tuple[int, ...] = ()) -> Attempts:
    return Attempts(
        {a_sha(number): [a_header(number)] for number in (*measured, *failed)},
        frozenset(a_header(number).run_id for number in measured),
    )


def numbers(commits: Any) -> list[int]:
    return [int(commit.sha, 16) for commit in commits]


def test_the_newest_come_first() -> None:
    assert newest([False, True, False, False]) == [3, 2, 0]


def test_the_ends_come_first_and_then_the_middle_of_the_largest_gap() -> None:
    assert midpoints([False] * 9) == [8, 0, 4, 6, 2, 7, 5, 3, 1]


def test_what_is_known_already_makes_the_gaps() -> None:
    assert midpoints([True, False, True, False, False, False, True]) == [4, 5, 3, 1]


@given(st.lists(st.booleans(), max_size=60))
def test_every_missing_place_has_its_turn_once(done: list[bool]) -> None:
    missing = {place for place, is_done in enumerate(done) if not is_done}

    for order in (newest(done), midpoints(done)):
        assert len(order) == len(missing)
        assert set(order) == missing


@given(st.integers(2, 200))
def test_after_each_midpoint_no_gap_is_more_than_twice_as_large_as_another(size: int) -> None:
    order = midpoints([False] * size)
    for measured in range(2, size + 1):
        known = sorted(order[:measured])
        gaps = [after - before for before, after in pairwise(known)]
        assert max(gaps) <= 2 * min(gaps) + 1


def test_a_commit_that_failed_is_not_tried_again_unless_asked() -> None:
    attempts = attempts_of(measured=(9, 1), failed=(5,))

    first = outlook(COMMITS, attempts, order=Order.NEWEST, retry_failed=False)
    again = outlook(COMMITS, attempts, order=Order.NEWEST, retry_failed=True)

    assert numbers(first.todo) == [8, 7, 6, 4, 3, 2]
    assert numbers(again.todo) == [8, 7, 6, 5, 4, 3, 2]
    assert (first.measured, first.failed) == ({a_sha(1), a_sha(9)}, {a_sha(5)})


def measured(commit: Commit) -> Run:
    return a_run(int(commit.sha, 16))


def missing(
    measure: Callable[[Commit], Run],
    keep: Callable[[Run], bool] = lambda _: True,
    *,
    limit: int | None = None,
    budget_s: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
    turn: Callable[[Commit], AbstractContextManager[bool]] = lambda _: nullcontext(True),
    step_s: float = 10,
) -> Backfilled:
    """Measure what is missing of the nine commits, by a clock that every look moves on."""
    return measure_missing(
        COMMITS, measure, keep, limit=limit, budget_s=budget_s, stopped=stopped, turn=turn,
        clock=a_clock(step_s=step_s),
    )  # fmt: skip


def test_a_limit_counts_commits() -> None:
    done = missing(measured, limit=2)

    assert (done.ended, len(done.runs)) == (Ended.LIMIT, 2)


def test_no_commit_is_begun_that_would_outlast_the_budget() -> None:
    """The clock is looked at before, and at the start and the end of each commit: 10 s each time."""
    done = missing(measured, budget_s=55, step_s=10)

    assert (done.ended, len(done.runs)) == (Ended.TIME, 2)


def test_a_budget_that_is_long_enough_ends_nothing() -> None:
    done = missing(measured, budget_s=1e6)

    assert (done.ended, len(done.runs)) == (Ended.ALL_DONE, 9)


def test_an_interrupted_run_is_kept_and_counts_as_not_measured() -> None:
    kept: list[Run] = []

    def measure(commit: Commit) -> Run:
        return a_run(int(commit.sha, 16), header={"interrupted": len(kept) == 1})

    def keep(run: Run) -> bool:
        kept.append(run)
        return True

    done = missing(measure, keep)

    assert (done.ended, len(done.runs), len(kept)) == (Ended.INTERRUPTED, 1, 2)


def test_an_interrupt_between_two_commits_ends_it() -> None:
    answers = iter([False, False, False, True])

    done = missing(measured, stopped=lambda: next(answers))

    assert (done.ended, len(done.runs)) == (Ended.INTERRUPTED, 3)


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (MachineError("the GPU is gone"), Ended.MACHINE),
        (GitError("the disk is gone"), Ended.STORE),
    ],
)
def test_what_the_next_commit_would_meet_too_ends_it_with_the_reason(
    error: CollectorError | StoreError, ended: Ended
) -> None:
    def measure(_: Commit) -> Run:
        raise error

    done = missing(measure)

    assert (done.ended, done.error, done.runs) == (ended, error, [])


def test_a_run_that_cannot_be_kept_ends_it_and_counts_as_not_measured() -> None:
    tried: list[Run] = []

    def keep(run: Run) -> bool:
        tried.append(run)
        return len(tried) < 3

    done = missing(measured, keep)

    assert (done.ended, len(done.runs), len(tried)) == (Ended.STORE, 2, 3)


def test_what_another_call_measured_meanwhile_is_passed_over_and_counts_for_no_limit() -> None:
    done = missing(measured, limit=2, turn=lambda commit: nullcontext(commit not in COMMITS[:3]))

    assert numbers(done.elsewhere) == [1, 2, 3]
    assert numbers([commit for commit, _ in done.runs]) == [4, 5]


def test_runs_are_judged_in_the_order_of_first_parents_however_they_were_measured() -> None:
    attempts = attempts_of(measured=(9, 1, 5))

    assert to_judge(COMMITS, attempts, set()) == [a_header(number).run_id for number in (1, 5, 9)]


def test_runs_after_a_new_one_are_judged_again_and_those_before_it_are_not() -> None:
    attempts = attempts_of(measured=(1, 2, 5, 8, 9), failed=(3,))
    judged = {a_header(number).run_id for number in (1, 2, 8, 9)}

    assert to_judge(COMMITS, attempts, judged) == [a_header(number).run_id for number in (5, 8, 9)]


@pytest.fixture(name="project")
def _project(tree: Tree, bare_python: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Five commits; the second has no suite yet, the third is broken, the fifth has a name of its own."""
    (tree.path / "code.py").write_text("SPEED = 1")
    tree.git("add", "-A")
    tree.commit("Write code")
    (tree.path / "code.py").write_text("SPEED = 2")
    tree.git("commit", "-qam", "Write more code")
    a_suite_file(tree.path, f"import code_of_tomorrow\n{benchmarks('x')}")
    tree.git("add", "-A")
    tree.commit("Add a suite that cannot be imported")
    a_suite_file(tree.path, benchmarks("x"))
    tree.git("commit", "-qam", "Mend the suite")
    tree.commit("Change nothing")
    monkeypatch.chdir(tree.path)
    return Project(tree.path, bare_python)


def stored(project: Project) -> list[tuple[str, bool]]:
    """Subject, and whether there is a number, of each run; the oldest run first."""
    database = project.store()
    runs = [load_run(database, header.run_id) for header in reversed(find_runs(database))]
    return [(run.history[0].subject, bool(run.measurements)) for run in runs]


def test_the_command_fills_a_range_and_goes_on_where_it_ended(project: Project) -> None:
    first = project.collect(*WALL, "backfill", "HEAD~4..HEAD", "--order", "newest", "--limit", "2")
    second = project.collect(*WALL, "backfill", "HEAD~4..", "--order", "newest", "--format", "json")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "2 left to measure, ended by --limit" in first.stdout
    assert stored(project) == [
        ("Change nothing", True),
        ("Mend the suite", True),
        ("Add a suite that cannot be imported", False),
        ("Write more code", True),  # with the suite of this checkout
    ]
    told = json.loads(second.stdout)
    assert (len(told["measured_before"]), len(told["left"]), told["ended"]) == (2, 0, "all_done")
    assert [run["measured"] for run in told["runs"]] == [True, False]
    assert "code_of_tomorrow" in told["runs"][1]["failures"][0]
    judged = {verdict.run_id for verdict in load_verdicts(project.store())}
    assert len(judged) == 3, "every run with a number is judged, also those of the first call"


def test_a_failed_commit_is_left_alone_until_it_is_asked_for(project: Project) -> None:
    broken = ("backfill", "HEAD~3..HEAD~2")
    first = project.collect(*WALL, *broken)
    second = project.collect(*WALL, *broken)
    third = project.collect(*WALL, *broken, "--retry-failed")
    mended = project.collect(*WALL, *broken, "--suite-from", "HEAD")

    assert [done.returncode for done in (first, second, third, mended)] == [3, 0, 3, 0], mended.stderr
    assert "1 failed before, 0 to measure" in second.stdout
    assert "--retry-failed tries the 1 that failed again" in second.stdout
    assert "0 failed before, 1 to measure" in mended.stdout, "with another suite it was never tried"
    assert stored(project) == [
        ("Add a suite that cannot be imported", has_number) for has_number in (False, False, True)
    ]


def test_a_dry_run_says_which_suite_each_commit_would_get(project: Project) -> None:
    plain = project.collect(*WALL, "backfill", "HEAD~4..HEAD", "--dry-run", "--order", "newest")
    fixed = project.collect(*WALL, "backfill", "HEAD~4..HEAD~3", "--dry-run", "--suite-from", "HEAD")

    assert [re.split("  +", line)[1:] for line in plain.stdout.splitlines()[3:]] == [
        ["its own suite", "Change nothing"],
        ["its own suite", "Mend the suite"],
        ["its own suite", "Add a suite that cannot be imported"],
        ["a copy of the suite in this checkout, for it has none", "Write more code"],
    ]
    assert "the suite of HEAD" in fixed.stdout
    (project.path / "bench_example.py").unlink()
    without = project.collect(*WALL, "backfill", "HEAD~4..HEAD", "--dry-run", "--format", "json")
    told = json.loads(without.stdout)
    assert [each["measured_with"] for each in told["to_measure"] if each["subject"] == "Write more code"] == [
        "nothing: neither it nor this checkout has the suite"
    ]
    assert len(told["commits"]) == 4
    assert not (project.path / "kernelwatch.duckdb").exists()


def test_two_backfills_of_one_device_share_the_commits(project: Project) -> None:
    """They take turns, and each looks again before it measures."""
    command = project.command(*WALL, "backfill", "HEAD~2..HEAD", "--format", "json")
    together = [
        subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = []
    for process in together:
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, err
        told.append(json.loads(out))

    assert len(stored(project)) == 2, "each commit once"
    assert sum(len(each["runs"]) for each in told) == 2
    assert [len(each["left"]) for each in told] == [0, 0]


def test_a_store_that_cannot_be_written_ends_it_after_one_commit(project: Project) -> None:
    """There is no such folder, so nothing that follows could be kept either."""
    result = project.collect(*WALL, "--store", "nowhere/runs.duckdb", "backfill", "HEAD~2..HEAD")

    assert result.returncode == 3
    assert result.stderr.count("measuring ") == 1
    assert "2 left to measure, ended by an error of the store" in result.stdout
    assert "The run is not lost" in result.stderr


def test_an_interrupt_keeps_what_was_measured_and_says_so(project: Project) -> None:
    slow = "import time\ndef bench_slow():\n    time.sleep(60)\n    return lambda: None"
    a_suite_file(project.path, slow, "slow_bench.py")
    with subprocess.Popen(
        project.command(*WALL, "--suite", "slow_bench.py", "backfill", "HEAD~2..HEAD"),
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("measuring"):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert "2 left to measure, ended by an interrupt" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["main"], "write OLD..NEW"),
        (["a...b"], "write OLD..NEW"),
        (["a..b", "--for", "soon"], "write 2h, 90m or 1h30m"),
        (["a..b", "--for", "0h"], "write 2h, 90m or 1h30m"),
        (["a..b", "--against", "main"], "No such option"),
        (["a..b", "--commit", "main"], "its arguments name the commits"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_measured(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(collect, ["backfill", *arguments])

    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("other", [(), ("--suite-from", "HEAD~4")])
def test_a_suite_that_no_commit_has_is_refused_before_every_commit_is_marked_as_failed(
    project: Project, other: tuple[str, ...]
) -> None:
    command = [*WALL, "--suite", "bench_exmaple.py", *other, "backfill", "HEAD~4..HEAD"]
    result = CliRunner().invoke(collect, command)

    assert result.exit_code == 3
    assert "there is no suite at bench_exmaple.py" in result.output
    assert not (project.path / "kernelwatch.duckdb").exists()


def test_a_range_that_is_no_line_is_an_error_with_what_to_do(project: Project) -> None:
    result = project.collect(*WALL, "backfill", "HEAD..HEAD~1")

    assert result.returncode == 3
    assert "name the older commit first" in result.stderr
