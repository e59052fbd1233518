"""Which flags get a second session, how it is asked for, and what is said about it."""

from __future__ import annotations

import fnmatch
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_header, a_measurement, a_run, a_second_session, a_verdict
from click.testing import CliRunner
from real_runs import Listener, a_plan, names_of
from suite_files import a_suite_file

from collector.cli import collect
from collector.confirm_stored import Stored, choose_stored, load_first, plan_of_first
from collector.confirmation import (
    Chosen,
    Confirmation,
    choose,
    confirmation_json,
    confirmation_text,
    plan_again,
)
from collector.confirming import Request, TimedInterrupts, confirm, unconfirmed
from collector.errors import NothingMeasuredError
from collector.run import collect_run
from store.bundle import write_bundle
from store.database import Database
from store.errors import RunNotFound
from store.records import Case, ClockRegime, Outcome, PairedRole, Quantity, Reading, Run, Standing, Timer
from store.runs import save_run
from store.sessions import both_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trees import Tree

    from store.records import Verdict

RUN_ID = a_header().run_id
FLAGGED: dict[str, Any] = {"standing": Standing.FLAGGED}


def a_run_of(*benchmarks: str, **changes: Any) -> Run:
    return a_run(measurements=tuple(a_measurement(name, parameters={}) for name in benchmarks), **changes)


def flags(run: Run, *effects: float, **changes: Any) -> list[Verdict]:
    """A flag on each measurement, slower or faster by so much."""
    return [
        a_verdict(
            run,
            series=run.series_key(measurement),
            outcome=Outcome.REGRESSED if effect > 0 else Outcome.IMPROVED,
            effect=effect,
            **FLAGGED | changes,
        )
        for measurement, effect in zip(run.measurements, effects, strict=True)
    ]


def labels(cases: tuple[Case, ...]) -> list[str]:
    return [case.label for case in cases]


def test_regressions_come_first_and_large_ones_before_small_ones() -> None:
    run = a_run_of("small", "faster", "large", "middle")

    chosen = choose(run, flags(run, 0.01, -0.5, 0.09, 0.04), limit=3)

    assert labels(chosen.again) == ["large", "middle", "small"]
    assert labels(chosen.beyond) == ["faster"]


@pytest.mark.parametrize("standing", [Standing.NONE, Standing.CONFIRMED, Standing.WITHDRAWN])
def test_what_no_session_has_to_settle_is_not_measured_again(standing: Standing) -> None:
    run = a_run_of("softmax")

    assert choose(run, flags(run, 0.1, standing=standing), limit=10) == Chosen((), ())


def test_a_sentinel_is_no_flag_of_the_suite() -> None:
    run = a_run(measurements=(a_measurement("sentinel_copy", tags=("sentinel",)),))

    assert choose(run, flags(run, 0.005), limit=10).again == ()


def test_the_second_session_has_the_same_passes_and_the_flagged_cases_alone() -> None:
    run = a_run(
        measurements=(
            a_measurement("softmax", parameters={"rows": 8}),
            a_measurement("softmax", parameters={"rows": 80}),
            a_measurement("sentinel_copy", tags=("sentinel",)),
        )
    )
    plan = a_plan("python", passes=8, seed=5, traces="raw", only=("soft*",))

    again = plan_again(plan, "abc", run, [run.measurements[0].case])

    assert again == replace(plan, revision="abc", seed=6, traces=None, only=again.only)
    (pattern,) = again.only
    assert [fnmatch.fnmatchcase(m.case.label, pattern) for m in run.measurements] == [True, False, False]


def test_a_ratio_is_measured_again_with_all_implementations_of_its_workload() -> None:
    def implementation(name: str, **changes: Any) -> Any:
        return a_measurement("mul", parameters={"n": 8, "implementation": name}, **changes)

    run = a_run(
        measurements=(
            implementation("ours"),
            implementation("theirs"),
            implementation("ours / theirs", quantity=Quantity.RATIO),
            a_measurement("mul", parameters={"n": 9, "implementation": "ours"}),
        )
    )

    again = plan_again(a_plan("python"), "HEAD", run, [run.measurements[2].case])

    chosen = [
        m.case.label
        for m in run.measurements
        if any(fnmatch.fnmatchcase(m.case.label, p) for p in again.only)
    ]
    assert chosen == ["mul[implementation=ours, n=8]", "mul[implementation=theirs, n=8]"]


def test_the_text_says_what_became_of_each_flag_and_names_those_beyond_the_limit() -> None:
    run = a_run_of("softmax", "matmul", "gather")
    again = a_run_of("softmax", number=1)
    first, second, third = flags(run, 0.04, 0.03, 0.02)
    settled = replace(first, standing=Standing.CONFIRMED, second=a_second_session())
    told = Confirmation(
        first_run_id=RUN_ID,
        chosen=choose(run, [first, second, third], limit=2),
        verdicts=[third, second, settled],
        again=again,
    )

    assert confirmation_text(told).splitlines() == [
        f"Measured again in a fresh session (run {again.header.run_id[:8]}, 40 s):",
        f"  softmax: {both_sessions(settled)}",
        "  matmul: no number in the second session: flagged",
        "Stay flagged, for there are more than --confirm-benchmarks (1): gather",
    ]
    assert confirmation_json(told)["beyond_the_limit"] == ["gather"]


def test_a_second_session_for_a_run_that_was_judged_elsewhere_settles_nothing_here() -> None:
    told = Confirmation(
        first_run_id=RUN_ID,
        chosen=Chosen((Case.of("softmax", {}),), ()),
        verdicts=(),
        again=a_run_of("softmax", number=1),
    )

    assert confirmation_text(told).splitlines()[1:] == [
        "  softmax: no flag of the first run is stored here to be settled"
    ]


def test_without_a_second_session_all_stay_flagged_by_name() -> None:
    run = a_run_of("softmax", "matmul")
    told = unconfirmed(run, flags(run, 0.04, 0.03), a_request(), interrupted=False)

    assert told is not None
    assert confirmation_text(told).splitlines() == [
        "No second session (--no-confirm).",
        f"`collect --confirm-run {RUN_ID[:8]}` measures what is flagged again.",
        "Stay flagged (2): softmax, matmul",
    ]
    assert (
        unconfirmed(run, flags(run, 0.04, 0.03, standing=Standing.CONFIRMED), a_request(), interrupted=False)
        is None
    )


def a_request(**changes: Any) -> Request:
    fields: dict[str, Any] = {
        "benchmarks": 10, "minutes": 10.0, "against": None, "output": None, "url": None,
        "say": lambda _text: None,
    }  # fmt: skip
    return Request(**fields | changes)


@pytest.mark.parametrize("header", [{"dirty": True}, {"commit_sha": None, "merge_base": None}])
def test_code_that_is_in_no_commit_is_not_measured_again(header: dict[str, Any]) -> None:
    run = a_run_of("softmax", header=header)

    told = confirm(run, flags(run, 0.04), a_plan("/no/such/python"), a_request())

    assert told is not None
    assert told.again is None
    said = [
        "Uncommitted code is never confirmed: commit it, and measure the commit.",
        "Stay flagged (1): softmax",
    ]
    assert confirmation_text(told).splitlines() == said, "and nobody is sent to --confirm-run"
    left = unconfirmed(run, flags(run, 0.04), a_request(), interrupted=False)
    assert left is not None
    assert confirmation_text(left).splitlines() == said


@pytest.fixture(name="_handlers")
def _own_handlers() -> Iterator[None]:
    """Whatever listened to signals before does so afterwards."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers")
def test_the_end_of_the_time_ends_the_measuring_as_an_interrupt_does() -> None:
    interrupts = TimedInterrupts(0.01)

    with pytest.raises(KeyboardInterrupt):
        time.sleep(20)
    assert interrupts.out_of_time
    assert not interrupts.asked


@pytest.mark.usefixtures("_handlers")
def test_the_end_of_the_time_does_not_disturb_the_keeping() -> None:
    interrupts = TimedInterrupts(0.01)
    interrupts.end_of_measuring()

    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    signal.raise_signal(signal.SIGALRM)
    assert not interrupts.out_of_time


SLOWER_AND_SLOWER = """
import time
def bench_short(): return lambda: None
def bench_long(): return lambda: time.sleep(0.2)
"""


@pytest.fixture(name="measured")
def _measured(tree: Tree, bare_python: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    a_suite_file(tree.path, SLOWER_AND_SLOWER)
    tree.git("add", "-A")
    tree.commit("Measure two")
    monkeypatch.chdir(tree.path)
    return collect_run(a_plan(bare_python, passes=1, only=("short",)), Listener())


@pytest.mark.usefixtures("_handlers")
def test_a_second_session_that_takes_too_long_is_ended_and_its_flags_stay(
    measured: Run, bare_python: str
) -> None:
    slow = replace(measured, measurements=(a_measurement("long", parameters={}),))

    told = confirm(slow, flags(slow, 0.04), a_plan(bare_python, passes=500), a_request(minutes=0.02))

    assert told is not None
    assert told.missing is not None
    assert told.missing.startswith("The second session was ended after 0.02 minutes (--confirm-minutes)")
    assert not told.interrupted
    assert [v.standing for v in told.verdicts] == [Standing.FLAGGED]


@pytest.mark.usefixtures("_handlers")
def test_a_second_session_that_fails_costs_nothing_but_the_confirmation(measured: Run) -> None:
    told = confirm(measured, flags(measured, 0.04), a_plan("/no/such/python"), a_request())

    assert told is not None
    (kept,) = told.kept
    assert kept.problem is not None
    assert kept.problem.startswith("nothing was confirmed, for the second session failed: cannot start")
    assert told.again is None


@pytest.mark.usefixtures("_handlers")
def test_a_checkout_that_changed_is_left_alone_and_the_commit_measured(
    measured: Run, bare_python: str, tree: Tree
) -> None:
    a_suite_file(tree.path, "raise SystemExit('somebody is working here')")
    judged_elsewhere = a_request(output=Path("again.kernelwatch.gz"))

    told = confirm(measured, flags(measured, 0.04), a_plan(bare_python), judged_elsewhere)

    assert told is not None
    assert told.again is not None
    assert names_of(told.again) == ["short"]
    header = told.again.header
    assert (header.commit_sha, header.dirty) == (measured.header.commit_sha, False)
    assert header.confirms_run_id == measured.header.run_id


def options(**changes: Any) -> dict[str, Any]:
    return {"confirm_run": RUN_ID[:8], "url": "runs.duckdb", "against": None} | changes


def test_a_run_of_the_store_says_how_it_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its suite is named from the top folder, and looked for from the current one."""
    (tmp_path / "code").mkdir()
    monkeypatch.chdir(tmp_path / "code")
    header = {
        "clock_regime": ClockRegime.LOCKED,
        "context": {"clocks.sm_mhz": Reading(value=1500)},
        "suites": ("benchmarks",),
    }
    database = Database(tmp_path / "runs.duckdb")
    save_run(database, a_run(header=header))

    stored = load_first(options(url=database.url))
    plan = plan_of_first(a_plan("python", repository=tmp_path), stored.run)

    assert stored.against is None
    assert (plan.suites, plan.passes, plan.timer) == (("../benchmarks",), 8, Timer.CUPTI)
    assert (plan.clocks, plan.clock_mhz, plan.gpu) == (ClockRegime.LOCKED, 1500, a_header().gpu_uuid)


def test_the_builtin_suite_and_a_machine_without_a_gpu_are_no_paths_and_no_gpu() -> None:
    plan = plan_of_first(a_plan("python"), a_run(header={"gpu_uuid": "cpu:here"}))

    assert (plan.suites, plan.gpu) == ((), None)


def test_a_pair_is_measured_again_beside_the_same_commit(tmp_path: Path) -> None:
    ids = [a_header(commit).run_id for commit in (5, 10)]
    candidate = a_run(10, header={"paired_with": ids[0], "paired_role": PairedRole.CANDIDATE})
    baseline = a_run(5, header={"paired_with": ids[1], "paired_role": PairedRole.BASELINE})
    database = Database(tmp_path / "runs.duckdb")
    bundle = tmp_path / "run.kernelwatch.gz"
    write_bundle(candidate, bundle)
    for run in (candidate, baseline):
        save_run(database, run)

    assert load_first(options(url=database.url)).against == baseline.header.commit_sha
    with pytest.raises(NothingMeasuredError, match="name its commit with --against"):
        load_first(options(confirm_run=str(bundle)))
    assert load_first(options(confirm_run=str(bundle), against="main")).against == "main"
    write_bundle(baseline, tmp_path / "baseline-run.kernelwatch.gz")
    assert load_first(options(confirm_run=str(bundle))).against == baseline.header.commit_sha


def test_a_run_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    save_run(database, a_run())

    with pytest.raises(RunNotFound, match="no run in"):
        load_first(options(confirm_run="ffff", url=database.url))


@pytest.mark.parametrize(
    ("verdicts", "only", "words"),
    [
        ([], (), "nobody has judged run .* here: `alerts judge --run .*` does, or name the flagged"),
        ([], ("nothing*",), "has no benchmark that matches nothing"),
        ([a_verdict()], (), "has no flag that waits for a second session"),
    ],
)
def test_nothing_to_measure_again_is_said_with_the_way_out(
    verdicts: list[Verdict], only: tuple[str, ...], words: str
) -> None:
    with pytest.raises(NothingMeasuredError, match=words):
        choose_stored(Stored(a_run(), verdicts, None), only, limit=10)


def test_what_is_named_is_measured_again_whatever_was_judged() -> None:
    chosen = choose_stored(Stored(a_run_of("a", "ab", "b"), (), None), ("a*",), limit=1)

    assert (labels(chosen.again), labels(chosen.beyond)) == (["a"], ["ab"])


@pytest.mark.parametrize("word", ["--suite", "--passes", "--commit", "--timer"])
def test_conditions_cannot_be_chosen_for_a_second_session(word: str) -> None:
    value = {"--passes": "3", "--timer": "wall"}.get(word, "x")
    done = CliRunner().invoke(collect, ["--confirm-run", "abcd", word, value], prog_name="collect")

    assert done.exit_code == 2
    assert f"{word} has no meaning with --confirm-run" in done.stderr


def test_a_check_needs_a_store_for_the_second_session_too() -> None:
    words = ["--confirm-run", "abcd", "--output", "again.kernelwatch.gz", "--fail-on", "regression"]
    done = CliRunner().invoke(collect, words, prog_name="collect")

    assert done.exit_code == 2
    assert "--fail-on needs a store" in done.stderr


def test_a_study_has_no_second_session() -> None:
    done = CliRunner().invoke(collect, ["--confirm-run", "abcd", "aa"], prog_name="collect")

    assert done.exit_code == 2
    assert "--confirm-run has no meaning for `collect aa`" in done.stderr
