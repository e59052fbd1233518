"""Judging every run of a store again leaves what judging one after another does."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_commit, a_failure, a_header, a_line_of_commits, a_measurement, a_run, a_sha
from click.testing import CliRunner
from judgements import JUDGED_AT
from triage_events import an_event

from alerts.change_points import search
from alerts.cli import alerts
from alerts.errors import NothingToJudge
from alerts.judging import judge_run
from alerts.policy import Override, Policies, Policy
from alerts.rejudge import rejudge
from store.database import Database
from store.records import BaselineKind, GitTag, Outcome, PairedRole, Reason, Standing, Tier, Verdict
from store.runs import find_runs, save_run
from store.triage import save_triage_events
from store.triage_events import Action, Scope
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Measurement, Run, RunHeader

OTHER_GPU = "GPU-bbbbbbbb-0c3d-4e2f-9a7b-1c2d3e4f5a6b"
RULES = Policies(
    general=Policy(pool_size=6, reach_runs=16),
    overrides=(Override(benchmarks=("matmul*",), confirm_effect=0.02, flag_effect=0.004),),
)
BRANCH = 100  # a commit beside the line
HISTORY_ALONE = {a_sha(commit) for commit in range(2, 13)} - {
    a_sha(7),
    a_sha(9),
}  # others are judged, to save time


def measured(commit: int, number: int, **medians: float) -> tuple[Measurement, ...]:
    """The suite as it was at a commit: one benchmark came at 7 and was renamed at 13."""
    late = {} if commit < 7 else {"older" if commit < 13 else "newer": 0.4}
    levels = {"softmax": 0.25 if commit < 11 else 0.26, "matmul": 1.5, "sentinel": 0.5} | late | medians
    return tuple(
        a_measurement(
            name,
            median_ms=median,
            seed=100 * commit + number,
            tags=("sentinel",) if name == "sentinel" else (),
            tier=Tier.C if name == "matmul" and commit in (2, 9) else Tier.A,
            renamed_from="older" if name == "newer" else None,
        )
        for name, median in levels.items()
    )


def a_whole_run(commit: int, number: int = 0, *, header: dict[str, Any] | None = None, **changes: Any) -> Run:
    medians = changes.pop("medians", {})
    return a_run(
        commit,
        number=number,
        header=header or {},
        measurements=measured(min(commit, 20), number, **medians),
        **changes,
    )


def is_judged(run: RunHeader) -> bool:
    return run.commit_sha not in HISTORY_ALONE


def a_pair() -> list[Run]:
    """Two commits whose passes took turns, and a candidate whose other side never arrived."""
    ids = [a_header(commit, number=7).run_id for commit in (14, 16)]
    sides = zip((14, 16), (PairedRole.BASELINE, PairedRole.CANDIDATE), reversed(ids), strict=True)
    lost = {"paired_with": a_header(3, number=9).run_id, "paired_role": PairedRole.CANDIDATE}
    return [
        *(
            a_whole_run(
                commit,
                7,
                header={"paired_with": other, "paired_role": role},
                medians={"softmax": 0.2 if role is PairedRole.BASELINE else 0.204},
            )
            for commit, role, other in sides
        ),
        a_whole_run(15, 8, header=lost),
    ]


def some_runs() -> list[Run]:
    """Sixteen commits, and around them whatever makes a judge think."""
    slow = a_whole_run(15, medians={"matmul": 1.6})
    tags = (GitTag(name="v1", commit_sha=a_sha(4)),)
    branch = (a_commit(BRANCH, parents=(a_sha(12),)), *a_line_of_commits(12))
    return [
        *(a_whole_run(commit) for commit in range(1, 15)),
        slow,
        a_whole_run(15, 1, header={"confirms_run_id": slow.header.run_id}, medians={"matmul": 1.61}),
        a_whole_run(16, git_tags=tags, failures=(a_failure(),)),
        a_whole_run(16, 1, medians={"softmax": 0.3}),
        a_whole_run(16, 2, header={"dirty": True}, medians={"softmax": 0.24}),
        a_whole_run(16, 3, medians={"sentinel": 0.6}),
        *(a_whole_run(commit, 4, header={"gpu_uuid": OTHER_GPU}) for commit in (14, 15, 16)),
        a_whole_run(16, 5, header={"environment": "cuda=13.1 driver=590.1 torch=2.12.0"}),
        a_whole_run(16, 6, header={"history_note": "this clone is shallow"}),
        a_whole_run(BRANCH, header={"merge_base": a_sha(12)}, history=branch, medians={"newer": 0.43}),
        a_run(None, header={"merge_base": None}),
        *a_pair(),
    ]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing in it is judged; copied, never changed."""
    database = Database(tmp_path_factory.mktemp("stored") / "runs.duckdb")
    for run in some_runs():
        save_run(database, run)
    search(database, found_at=JUDGED_AT)
    accepted = an_event(action=Action.ACCEPT, scope=Scope(benchmark="softmax"), commit_sha=a_sha(11))
    save_triage_events(database, [accepted])
    return database.path


@pytest.fixture(scope="module")
def one_by_one(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judged run by run, oldest first; copied, never changed."""
    path = tmp_path_factory.mktemp("single") / "runs.duckdb"
    database = Database(shutil.copy(stored, path))
    # The other GPU first: an older session counts its tests with what was judged there before.
    runs = filter(is_judged, find_runs(database))
    for run in sorted(runs, key=lambda run: (run.gpu_uuid != OTHER_GPU, run.started_at)):
        judge_run(database, run.run_id, RULES, judged_at=JUDGED_AT)
    return path


@pytest.fixture
def database(stored: Path, tmp_path: Path) -> Database:
    return Database(shutil.copy(stored, tmp_path / "copy.duckdb"))


@pytest.fixture
def judged(one_by_one: Path, tmp_path: Path) -> Database:
    return Database(shutil.copy(one_by_one, tmp_path / "judged.duckdb"))


def by_place(database: Database) -> dict[tuple[str, str], Verdict]:
    return {(v.run_id, v.series.id): v for v in load_verdicts(database)}


def test_all_at_once_is_what_one_after_another_comes_to(database: Database, judged: Database) -> None:
    result = rejudge(database, RULES, is_chosen=is_judged, judged_at=JUDGED_AT)

    single, bulk = by_place(judged), by_place(database)
    assert result.verdicts == len(bulk) == len(single)
    assert [place for place in single if single[place] != bulk.get(place)] == []
    kinds = {verdict.baseline_kind for verdict in bulk.values()}
    assert kinds >= {BaselineKind.PAIRED, BaselineKind.POOL, BaselineKind.SINGLE, BaselineKind.NONE}
    assert {v.standing for v in bulk.values()} >= {Standing.NONE, Standing.FLAGGED, Standing.CONFIRMED}
    assert {v.reason for v in bulk.values()} >= {
        Reason.MACHINE_MOVED, Reason.HISTORY_MISSING, Reason.OTHER_ENVIRONMENT, Reason.NEW_BENCHMARK,
        Reason.TIER_TOO_LOW, Reason.NO_BASELINE,
    }  # fmt: skip
    assert any(v.drift is not None for v in bulk.values())
    assert any(v.second is not None for v in bulk.values())
    assert any("since the change accepted at" in v.message for v in bulk.values())


def test_judging_again_by_the_same_rules_changes_nothing(judged: Database) -> None:
    before = by_place(judged)

    result = rejudge(judged, RULES, is_chosen=is_judged, judged_at=JUDGED_AT)

    assert result.changed == ()
    assert by_place(judged) == before


def test_other_rules_change_verdicts_and_are_counted_from_what_to_what(judged: Database) -> None:
    before = by_place(judged)

    result = rejudge(judged, Policy(flag_effect=0.5), is_chosen=is_judged, judged_at=JUDGED_AT)

    after = by_place(judged)
    moved = [place for place, verdict in after.items() if _said(verdict) != _said(before[place])]
    assert sum(item.number for item in result.changed) == len(moved) > 0
    assert not any(v.outcome in (Outcome.REGRESSED, Outcome.IMPROVED) for v in after.values())


def test_one_gpu_alone_leaves_the_verdicts_of_others_but_for_their_q_values(judged: Database) -> None:
    before = by_place(judged)

    result = rejudge(judged, Policy(flag_effect=0.5), gpu="GPU-bbbb", judged_at=JUDGED_AT)

    after = by_place(judged)
    assert result.runs == 3
    elsewhere = [place for place, verdict in after.items() if verdict.series.gpu_uuid != OTHER_GPU]
    assert all(_said(after[place]) == _said(before[place]) for place in elsewhere)


def test_a_run_of_the_chosen_ones_takes_the_session_along_that_confirms_it(judged: Database) -> None:
    slow = a_header(15).run_id

    result = rejudge(judged, RULES, is_chosen=lambda run: run.run_id == slow, judged_at=JUDGED_AT)

    assert result.runs == 2
    assert result.changed == ()


def test_where_no_run_is_chosen_that_is_said(database: Database) -> None:
    with pytest.raises(NothingToJudge, match="holds no such run on a GPU that begins with GPU-9"):
        rejudge(database, gpu="GPU-9")


def test_the_command_counts_and_names_what_changed(database: Database) -> None:
    first = command(database, "--all")
    again = command(database, "--all")

    assert first.exit_code == again.exit_code == 0
    assert "not judged -> UNCHANGED" in first.output
    assert again.output.endswith("again: none changed\n")


@pytest.mark.parametrize(
    ("since", "runs"), [("2026-03-03T01:00", 9), (a_sha(16), 8), (a_sha(BRANCH), 1), ("2030-01-01", 0)]
)
def test_since_takes_a_day_or_a_commit_with_what_came_after_it(
    database: Database, since: str, runs: int
) -> None:
    done = command(database, "--all", "--since", since, "--format", "json")

    assert done.exit_code == (0 if runs else 3)
    if runs:
        assert json.loads(done.output)["runs"] == runs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "2026-03-02"), "give --all as well"),
        (("--gpu", "GPU-5"), "give --all as well"),
        (("--all", "--run", "abc"), "give one of the two"),
        (("--all", "--fail-on", "regression"), "judge that run with --run"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    database: Database, words: tuple[str, ...], said: str
) -> None:
    done = command(database, *words)

    assert done.exit_code == 2
    assert said in done.output


def test_a_word_that_is_neither_day_nor_commit_is_refused_with_what_it_could_be(
    database: Database, tmp_path: Path
) -> None:
    done = command(database, "--all", "--since", "yesterday", "--repo", str(tmp_path))

    assert done.exit_code == 3
    assert "'yesterday' is no date such as 2026-03-02, no measured commit" in done.output


def _said(verdict: Verdict) -> tuple[Outcome, Standing]:
    return verdict.outcome, verdict.standing


def command(database: Database, *words: str) -> Any:
    return CliRunner().invoke(alerts, ["judge", "--store", database.url, *words])
