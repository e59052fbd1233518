"""Comparisons of a bisection are kept, found again, and never mistaken for others: a real store and judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_commit, a_failure, a_header, a_measurement, a_run, a_sha
from real_runs import a_plan

from alerts.judging import judge_run
from collector.attempts import Machine, earlier_attempts
from collector.bisect_names import Names, only_of
from collector.bisect_pairs import PairedCompare
from collector.errors import BaselineError, CollectorError, NothingMeasuredError, WorkerError
from collector.keeping import Kept
from collector.paired import Pair
from collector.run import SUITE_FROM_READING, suites_of
from store.database import Database
from store.older_names import Renames
from store.records import BISECTION, Case, Outcome, PairedRole, Reading
from store.runs import find_runs, load_run, save_run

if TYPE_CHECKING:
    from pathlib import Path

    from trees import Tree

    from collector.run import Plan
    from store.records import Run

GOOD, BAD = a_commit(1), a_commit(2)
HEADER = a_header()
MACHINE = Machine(
    HEADER.gpu_uuid, HEADER.gpu_name, HEADER.timer, HEADER.clock_regime, HEADER.environment
)  # fmt: skip
STUDY = "0a1b2c3d-0000-4000-8000-00000000000b"


@dataclass
class World:
    """Pairs as a machine would measure them, a store, and a judge in this process.

    Attributes:
        names: which benchmarks are asked about.
        slower: how much slower the candidate's benchmark is.
        pair: changes of the next pair's runs: of the candidate's, and of the baseline's.
        error: what measuring ends with instead.
        whole: whether pairs are of the whole suite, as others measure them.
    """

    database: Database
    repository: Path
    slower: float = 1.04
    names: Names = field(default_factory=lambda: Names(only_of("softmax")))
    pair: tuple[dict[str, Any], dict[str, Any]] = field(default_factory=lambda: ({}, {}))
    error: Exception | None = None
    whole: bool = False
    measured: int = 0

    def collect(self, plan: Plan, against: str) -> Pair:
        self.measured += 1
        if self.error is not None:
            raise self.error
        runs = [
            a_run(
                int(sha, 16),
                number=2 * self.measured + side,
                measurements=changes.get(
                    "measurements", (a_measurement(median_ms=scale, seed=side, passes=plan.passes),)
                ),
                failures=changes.get("failures", ()),
                header={
                    "passes": plan.passes,
                    "suites": suites_of(plan),
                    "context": changes.get("context", {}) | self.left_out(plan),
                    "paired_role": role,
                    "paired_with": a_header(int(other, 16), number=2 * self.measured + 1 - side).run_id,
                    "interrupted": changes.get("interrupted", False),
                },
            )
            for side, (sha, other, scale, role, changes) in enumerate(
                (
                    (plan.revision, against, self.slower, PairedRole.CANDIDATE, self.pair[0]),
                    (against, plan.revision, 1.0, PairedRole.BASELINE, self.pair[1]),
                )
            )
        ]
        return Pair(candidate=runs[0], baseline=runs[1], against=against)

    def left_out(self, plan: Plan) -> dict[str, Reading]:
        return {} if self.whole else {"collect.only": Reading(value=" ".join(sorted(plan.only)))}

    def keep(self, run: Run, judged: bool) -> Kept:  # noqa: FBT001 - as the command passes it
        save_run(self.database, run)
        return self.judge(run.header.run_id) if judged else Kept()

    def judge(self, run_id: str) -> Kept:
        return Kept(verdicts=list(judge_run(self.database, run_id).verdicts))

    def compare(self, *, retry_failed: bool = False) -> PairedCompare:
        """As a call of the command begins: it looks at the store once."""
        plan = a_plan("python", repository=self.repository, only=self.names.only)
        return PairedCompare(
            plan=plan,
            names=self.names,
            machine=MACHINE,
            database=self.database,
            attempts=earlier_attempts(self.database, HEADER.repository, plan, MACHINE),
            study_id=STUDY,
            retry_failed=retry_failed,
            collect=self.collect,
            keep=self.keep,
            judge=self.judge,
        )


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> World:
    return World(Database(tmp_path / "runs.duckdb"), tmp_path)


def test_a_pair_is_measured_kept_judged_and_marked_with_its_study(world: World) -> None:
    answer = world.compare()(BAD, GOOD, 8, None)

    assert answer.verdict is not None
    assert answer.verdict.outcome is Outcome.REGRESSED
    assert not answer.reused
    kept = [load_run(world.database, run_id) for run_id in answer.run_ids]
    assert [run.header.commit_sha for run in kept] == [BAD.sha, GOOD.sha]
    assert {run.header.context[BISECTION].value for run in kept} == {STUDY}


def test_the_next_call_takes_what_this_one_measured(world: World) -> None:
    first = world.compare()(BAD, GOOD, 8, None)
    again = world.compare()(BAD, GOOD, 8, None)

    assert (again.reused, world.measured) == (True, 1)
    assert (again.verdict, again.run_ids) == (first.verdict, first.run_ids)


def test_a_pair_that_was_kept_and_not_judged_is_judged(world: World) -> None:
    pair = world.collect(
        a_plan("python", repository=world.repository, revision=BAD.sha, passes=8, only=only_of("softmax")),
        GOOD.sha,
    )
    for run in (pair.baseline, pair.candidate):
        world.keep(run, judged=False)

    answer = world.compare()(BAD, GOOD, 8, None)

    assert answer.reused
    assert answer.verdict is not None


def test_a_pair_of_too_few_passes_or_the_other_way_round_will_not_do(world: World) -> None:
    world.compare()(BAD, GOOD, 8, None)

    assert not world.compare()(BAD, GOOD, 16, None).reused
    assert not world.compare()(GOOD, BAD, 8, None).reused
    assert world.compare()(BAD, GOOD, 8, None).passes == 16, "of two the one with more passes"


def test_a_pair_with_another_revision_s_suite_will_not_do(world: World) -> None:
    world.pair = ({"context": {SUITE_FROM_READING: Reading(value=GOOD.sha)}}, {})
    world.compare()(BAD, GOOD, 8, None)
    world.pair = ({}, {})

    assert not world.compare()(BAD, GOOD, 8, None).reused


def test_an_interrupted_pair_is_kept_and_measured_anew_by_the_next_call(world: World) -> None:
    world.pair = ({"interrupted": True}, {"interrupted": True})
    with pytest.raises(KeyboardInterrupt):
        world.compare()(BAD, GOOD, 8, None)
    world.pair = ({}, {})

    assert len(find_runs(world.database)) == 2
    assert not world.compare()(BAD, GOOD, 8, None).reused


def test_a_verdict_that_had_to_go_by_other_runs_is_no_answer(world: World) -> None:
    """The good commit fails; an ancestor was measured, and the judge falls back on it."""
    save_run(world.database, a_run(1, measurements=(a_measurement(median_ms=1.0),)))
    world.pair = ({}, {"measurements": (), "failures": (a_failure("softmax", case=None),)})

    answer = world.compare()(BAD, GOOD, 8, None)

    assert answer.verdict is None
    assert answer.reason == f"{GOOD.sha[:9]} beside it gave no number: ValueError: shapes do not match"


def test_the_series_that_changed_most_is_followed_and_the_others_are_named(world: World) -> None:
    slower = {1: 1.02, 2: 1.3, 3: 1.0}  # by rows
    candidates, baselines = (
        [a_measurement(parameters={"rows": rows}, median_ms=scale(rows)) for rows in slower]
        for scale in (slower.__getitem__, lambda _rows: 1.0)
    )
    world.pair = ({"measurements": candidates}, {"measurements": baselines})

    answer = world.compare()(BAD, GOOD, 8, None)

    assert answer.verdict is not None
    assert answer.verdict.series.case == Case.of("softmax", {"rows": 2})
    assert answer.others == ("softmax[rows=1]",)


def test_a_case_that_failed_on_the_commit_is_the_reason(world: World) -> None:
    series = world.compare()(BAD, GOOD, 8, None)
    world.pair = (
        {"measurements": (), "failures": (a_failure(case=Case.of("softmax", {"rows": 1024})),)},
        {},
    )
    assert series.verdict is not None

    answer = world.compare()(a_commit(3), GOOD, 8, series.verdict.series)

    assert (answer.verdict, answer.reason) == (None, "ValueError: shapes do not match")


@pytest.mark.parametrize(
    "pair", [({"measurements": ()}, {}), ({}, {"measurements": (a_measurement("norm"),)})]
)
def test_a_benchmark_that_one_side_lacks_is_no_answer_and_another_suite_is_offered(
    pair: tuple[dict[str, Any], dict[str, Any]], world: World
) -> None:
    """The judge has another remedy for a benchmark that is new, which is none for who looks for a commit."""
    world.pair = pair

    answer = world.compare()(BAD, GOOD, 8, None)

    assert answer.verdict is None
    assert "--suite-from REV measures both with the suite of one revision" in (answer.reason or "")


def test_a_series_is_followed_through_a_rename(world: World) -> None:
    renamed = [("soft_max", "softmax")]
    world.names = Names((*only_of("softmax"), "soft_max"), Renames.of(renamed, ["softmax"]))
    new = {"measurements": (a_measurement(median_ms=1.04, renamed_from="soft_max"),)}
    old_slow, old = (
        {"measurements": (a_measurement("soft_max", median_ms=ms, seed=seed),)}
        for seed, ms in enumerate((1.04, 1.0), 2)
    )

    world.pair = (new, old)
    across = world.compare()(BAD, GOOD, 8, None)
    assert across.verdict is not None
    world.pair = (old_slow, old)
    before = world.compare()(a_commit(3), GOOD, 8, across.verdict.series)
    assert before.verdict is not None

    assert [v.series.case.benchmark for v in (across.verdict, before.verdict)] == ["softmax", "soft_max"]
    assert {v.outcome for v in (across.verdict, before.verdict)} == {Outcome.REGRESSED}


def test_a_failure_under_the_older_name_is_the_reason(world: World) -> None:
    world.names = Names(("softmax", "soft_max"), Renames.of([("soft_max", "softmax")], ["softmax"]))
    asked = world.compare()(BAD, GOOD, 8, None).verdict
    assert asked is not None
    failures = (
        a_failure(case=Case("other"), message="something else"),
        a_failure(case=Case.of("soft_max", {"rows": 1024})),
    )
    world.pair = ({"measurements": (), "failures": failures}, {})

    answer = world.compare()(a_commit(3), GOOD, 8, asked.series)

    assert answer.reason == "ValueError: shapes do not match"


def test_of_a_stored_pair_only_what_was_asked_about_counts(world: World) -> None:
    """Somebody measured the pair in full before, and another benchmark changed more."""
    world.whole = True
    candidates, baselines = (
        {"measurements": (a_measurement(median_ms=asked), a_measurement("norm", median_ms=other))}
        for asked, other in ((1.04, 1.9), (1.0, 1.0))
    )
    world.pair = (candidates, baselines)
    world.compare()(BAD, GOOD, 8, None)

    answer = world.compare()(BAD, GOOD, 8, None)

    assert answer.reused
    assert answer.verdict is not None
    assert (answer.verdict.series.case.benchmark, answer.others) == ("softmax", ())


def test_a_commit_that_cannot_be_built_is_remembered_with_its_reason(world: World, tree: Tree) -> None:
    broken = a_commit(1, sha=tree.commit("1"), parents=())
    tree.git("remote", "add", "origin", f"https://{HEADER.repository}")
    world.repository = tree.path
    world.error = NothingMeasuredError("the suite cannot be imported")

    first = world.compare()(broken, GOOD, 8, None)
    again = world.compare()(broken, GOOD, 8, None)
    retried = world.compare(retry_failed=True)(broken, GOOD, 8, None)

    assert [answer.reason for answer in (first, again, retried)] == [
        "NothingMeasuredError: the suite cannot be imported"
    ] * 3
    assert [answer.reused for answer in (first, again, retried)] == [False, True, False]
    assert world.measured == 2


def test_a_base_that_cannot_be_measured_is_no_failure_of_the_commit_beside_it(
    world: World, tree: Tree
) -> None:
    """Otherwise the same commit beside another base would count as tried."""
    crashing = a_commit(1, sha=tree.commit("1"), parents=())
    tree.git("remote", "add", "origin", f"https://{HEADER.repository}")
    world.repository = tree.path
    world.error = BaselineError(crashing.sha, WorkerError("it ended with status 7"))

    first = world.compare()(BAD, crashing, 8, None)
    again = world.compare()(BAD, crashing, 8, None)
    retried = world.compare(retry_failed=True)(BAD, crashing, 8, None)
    world.error = None
    elsewhere = world.compare()(BAD, GOOD, 8, None)

    said = f"{crashing.sha[:9]} beside it gave no number: WorkerError: it ended with status 7"
    assert [answer.reason for answer in (first, again, retried)] == [said] * 3
    assert [answer.reused for answer in (first, again, retried)] == [False, True, False]
    assert load_run(world.database, first.run_ids[0]).header.commit_sha == crashing.sha
    assert elsewhere.verdict is not None


def test_what_cannot_be_kept_ends_it_with_the_reason(world: World) -> None:
    compare = world.compare()
    compare.keep = lambda _run, _judged: Kept(problem="the disk is full")

    with pytest.raises(CollectorError, match="the disk is full"):
        compare(BAD, GOOD, 8, None)


def test_a_label_with_brackets_chooses_itself() -> None:
    assert only_of("softmax") == ("softmax",)
    assert only_of("softmax[rows=8]") == ("softmax[rows=8]", "softmax[[]rows=8]")
    assert a_sha(1) == GOOD.sha
