"""One run from checkout to record, in real worker processes with the host's clock."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from real_runs import Listener, a_plan, names_of
from real_workers import benchmarks, until
from suite_files import a_suite_file

from collector.errors import MachineError, NothingMeasuredError
from collector.run import collect_run, environment_key, gpu_lock
from collector.session import Session
from store.errors import NoRepository, UnknownRevision
from store.records import ClockRegime, Reading, Tier, Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trees import Tree

    from collector.loaded import CaseInfo


@pytest.fixture(name="project")
def _project(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository with a committed suite of two benchmarks; the user stands in it."""
    a_suite_file(tree.path, benchmarks("x", "y"))
    tree.git("add", "-A")
    tree.commit("Measure x and y")
    monkeypatch.chdir(tree.path)
    return tree


def test_a_run_says_what_was_measured_where_and_how(project: Tree, bare_python: str) -> None:
    listener = Listener()

    run = collect_run(a_plan(bare_python), listener)

    header = run.header
    assert (header.commit_sha, header.dirty) == (project.git("rev-parse", "HEAD"), False)
    assert (header.timer, header.clock_regime) == (Timer.WALL, ClockRegime.FREE)
    assert header.gpu_uuid.startswith("cpu:")
    assert (header.passes, header.seed, header.suites) == (3, 5, ("bench_example.py",))
    assert header.context["python.version"].value
    assert header.started_at < header.ended_at
    assert not header.interrupted
    assert names_of(run) == ["x", "y"]
    assert [m.tier for m in run.measurements] == [Tier.C, Tier.C]
    assert [len(m.windows) for m in run.measurements] == [3, 3]
    assert [commit.subject for commit in run.history] == ["Measure x and y"]
    assert (listener.size, listener.windows, listener.ended) == ((2, 3), 6, True)


def test_a_changed_checkout_is_measured_with_its_changes_and_marked(project: Tree, bare_python: str) -> None:
    a_suite_file(project.path, benchmarks("x", "changed"))

    run = collect_run(a_plan(bare_python), Listener())

    assert run.header.dirty
    assert names_of(run) == ["x", "changed"]


def test_another_revision_is_measured_as_it_was_committed(project: Tree, bare_python: str) -> None:
    first = project.git("rev-parse", "HEAD")
    for seconds in (0.001, 0.02):
        sleeping = f"import time\ndef bench_sleep(): return lambda: time.sleep({seconds})"
        a_suite_file(project.path, sleeping)
        project.git("add", "-A")
        project.commit(f"Sleep {seconds} s")
    a_suite_file(project.path, benchmarks("dirt"))

    new, old, oldest = (
        collect_run(a_plan(bare_python, revision=revision, passes=1), Listener())
        for revision in ("main", "main~1", first)
    )

    assert (names_of(new), names_of(old), names_of(oldest)) == (["sleep"], ["sleep"], ["x", "y"])
    medians = [run.measurements[0].interval.center for run in (old, new)]
    assert medians[0] is not None
    assert medians[1] is not None
    assert 1 <= medians[0] < 20 <= medians[1]
    assert [run.header.dirty for run in (new, old, oldest)] == [False, False, False]
    assert oldest.header.commit_sha == first
    assert project.git("worktree", "list").count("\n") == 0


def test_a_revision_that_does_not_exist_is_an_error_before_anything_is_measured(
    project: Tree, bare_python: str
) -> None:
    listener = Listener()

    with pytest.raises(UnknownRevision, match=rf"{project.path.name} has no commit 'gone': check the name"):
        collect_run(a_plan(bare_python, revision="gone"), listener)

    assert listener.size is None


def test_code_without_git_is_measured_as_it_stands(
    bare_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "plain"
    a_suite_file(folder, benchmarks("x"))
    monkeypatch.chdir(folder)

    run = collect_run(a_plan(bare_python), Listener())

    assert (run.header.commit_sha, run.header.repository, run.history) == (None, "plain", ())
    assert run.header.history_note is not None
    with pytest.raises(NoRepository):
        collect_run(a_plan(bare_python, revision="main"), Listener())


def test_globs_choose_by_name_and_by_label(project: Tree, bare_python: str) -> None:
    a_suite_file(project.path, 'PARAMS = {"n": [1, 2]}\ndef bench_x(n): return lambda: n\n' + benchmarks("y"))

    by_label = collect_run(a_plan(bare_python, only=("*n=2*",)), Listener())
    by_name = collect_run(a_plan(bare_python, only=("y", "z*")), Listener())

    assert [m.case.label for m in by_label.measurements] == ["x[n=2]"]
    assert names_of(by_name) == ["y"]


def test_globs_that_match_nothing_are_an_error_that_shows_where_the_names_are(
    project: Tree, bare_python: str
) -> None:
    del project
    listener = Listener()

    with pytest.raises(
        NothingMeasuredError, match=r"no benchmark matches z\*, w: `collect list` shows the names"
    ):
        collect_run(a_plan(bare_python, only=("z*", "w")), listener)

    assert listener.windows == 0


def test_a_suite_without_a_usable_benchmark_is_an_error_that_says_why(
    project: Tree, bare_python: str
) -> None:
    a_suite_file(project.path, "import missing_module")

    with pytest.raises(
        NothingMeasuredError, match=r"bench_example.py:1: ModuleNotFoundError: .*missing_module"
    ):
        collect_run(a_plan(bare_python), Listener())


def test_a_suite_failure_is_named_before_the_globs_that_match_nothing_else(
    project: Tree, bare_python: str
) -> None:
    """What was asked for is probably in the suite that failed; some places show the beginning alone."""
    a_suite_file(project.path, "import missing_module")

    with pytest.raises(
        NothingMeasuredError,
        match=r"(?s)^1 suite failure:.*missing_module.*no other benchmark matches mlp: `collect list`",
    ):
        collect_run(a_plan(bare_python, only=("mlp",)), Listener())


def test_a_run_in_which_every_benchmark_fails_is_an_error_that_lists_them(
    project: Tree, bare_python: str
) -> None:
    a_suite_file(project.path, "def bench_x(): return 1\ndef bench_y(): raise ValueError('no')")

    with pytest.raises(NothingMeasuredError) as told:
        collect_run(a_plan(bare_python), Listener())

    lines = str(told.value).splitlines()
    assert lines[0] == "no benchmark gave a number; 2 failures:"
    assert sorted(line.split(": ")[1] for line in lines[1:]) == ["ValueError", "not-callable"]


def test_where_torch_is_missing_sentinels_are_a_reading_and_a_note_but_no_failure(
    project: Tree, bare_python: str
) -> None:
    del project
    listener = Listener()

    run = collect_run(a_plan(bare_python), listener)

    error = run.header.context["sentinels"].error
    assert run.failures == ()
    assert error is not None
    assert error.startswith("not measured: No module named 'torch'")
    assert listener.notes == [f"sentinels: {error}"]


def test_a_failure_is_part_of_the_run(project: Tree, bare_python: str) -> None:
    a_suite_file(project.path, benchmarks("x") + "\nimport os\ndef bench_bad(): os._exit(9)")

    run = collect_run(a_plan(bare_python), Listener())

    (failure,) = run.failures
    assert failure.case is not None
    assert (failure.case.benchmark, failure.kind, failure.pass_index) == ("bad", "exit-9", 0)
    assert names_of(run) == ["x"]


def test_an_interrupt_keeps_every_window_that_is_complete(project: Tree, bare_python: str) -> None:
    run = collect_run(a_plan(bare_python, passes=50), Listener(interrupt_after=7))

    assert run.header.interrupted
    assert run.header.passes == 50
    assert sum(len(m.windows) for m in run.measurements) == 7
    assert sorted(len(m.windows) for m in run.measurements) == [3, 4]
    assert project.git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize("revision", ["HEAD", "main"])
def test_an_interrupt_before_the_first_window_keeps_nothing_and_leaves_nothing(
    revision: str, project: Tree, bare_python: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        collect_run(a_plan(bare_python, revision=revision), Listener(interrupt_after=0))

    assert project.git("worktree", "list").count("\n") == 0
    assert list(Path(tempfile.gettempdir()).glob("kernelwatch-*/")) == []


def test_a_machine_that_gives_up_after_a_pass_leaves_that_pass_and_the_reason(
    project: Tree, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_process = Session._run_process

    def lose_the_gpu(
        session: Session,
        pass_index: int,
        waiting: list[tuple[int, CaseInfo]],
        finished: Callable[[CaseInfo], None],
    ) -> list[tuple[int, CaseInfo]]:
        if pass_index == 1:
            raise MachineError("the GPU is lost")
        return run_process(session, pass_index, waiting, finished)

    monkeypatch.setattr(Session, "_run_process", lose_the_gpu)

    run = collect_run(a_plan(bare_python), Listener())

    assert [len(m.windows) for m in run.measurements] == [1, 1]
    assert [failure.kind for failure in run.failures] == ["MachineError", "MachineError"]
    assert all("the GPU is lost" in failure.message for failure in run.failures)
    assert project.git("worktree", "list").count("\n") == 0


def test_passes_in_fresh_interpreters_are_announced(project: Tree, bare_python: str) -> None:
    threads = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    a_suite_file(project.path, threads + benchmarks("x"))
    listener = Listener()

    run = collect_run(a_plan(bare_python), listener)

    assert (
        "every pass starts a fresh interpreter, because importing the suites started threads"
        in listener.notes
    )
    assert len({window.pid for window in run.measurements[0].windows}) == 3


def test_the_seed_is_drawn_and_recorded_where_none_is_given(project: Tree, bare_python: str) -> None:
    del project
    first, second = (collect_run(a_plan(bare_python, seed=None, passes=1), Listener()) for _ in range(2))

    assert first.header.seed != second.header.seed


def test_the_same_seed_gives_the_same_positions(project: Tree, bare_python: str) -> None:
    a_suite_file(project.path, benchmarks(*"uvwxyz"))
    first, second = (collect_run(a_plan(bare_python, passes=2), Listener()) for _ in range(2))

    assert [[w.position for w in m.windows] for m in first.measurements] == [
        [w.position for w in m.windows] for m in second.measurements
    ]


def test_two_collectors_of_one_device_take_turns(tree: Tree) -> None:
    del tree  # its temporary files are this test's own
    waiting, entered = Listener(), threading.Event()

    def second() -> None:
        with gpu_lock("GPU-1", waiting):
            entered.set()

    with gpu_lock("GPU-1", Listener()):
        thread = threading.Thread(target=second)
        thread.start()
        until(lambda: waiting.notes)
        assert not entered.is_set()
        with gpu_lock("GPU-2", Listener()):
            pass  # another device is not waited for
    thread.join(20)

    assert entered.is_set()
    assert waiting.notes[0].startswith("another collect is measuring on this device; waiting until it ends")


def test_the_environment_names_what_can_be_read() -> None:
    context = {
        "torch.version": Reading(value="2.11.0"),
        "torch.cuda": Reading(error="torch is not installed"),
        "gpu.driver": Reading(value="580.159.04"),
    }

    assert environment_key(context) == "driver=580.159.04 torch=2.11.0"
