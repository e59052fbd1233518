"""Points of which there is nothing to say: in columns they get the verdicts that judging one by one gives."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from builders import a_commit, a_header, a_line_of_commits, a_measurement, a_run, a_sha, a_window
from judgements import JUDGED_AT
from triage_events import an_event

from alerts.change_points import search
from alerts.judging import judge_run
from alerts.policy import Better, Override, Policies, Policy
from alerts.quiet import find_quiet
from alerts.rejudge import rejudge
from store.database import Database
from store.records import BaselineKind, GitTag, Outcome, Quantity, Reason, Tier
from store.runs import find_runs, save_run
from store.triage import save_triage_events
from store.triage_events import Scope
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from alerts.quiet import Quiet
    from store.records import Measurement, Run, Verdict

GPUS = tuple(f"GPU-{digit * 8}-0c3d-4e2f-9a7b-1c2d3e4f5a6b" for digit in "ab")
NEWEST = 42
BRANCH = 90  # commits beside the line
ACCEPTED = 80  # on a branch that 25 merged
SAT = 24  # measured again and again in one sitting
RELEASES = (9, 21, 29)
# Eight runs make a pool and twenty are near: what lies further back is reached through a release.
RULES = Policies(
    general=Policy(pool_size=8, reach_runs=20, drift_confidence=0.999),
    overrides=(
        Override(benchmarks=("matmul*",), minimum_tier=Tier.A, flag_effect=0.004),
        Override(benchmarks=("speed*",), ratio_better=Better.LARGER),
    ),
)


def measured(commit: int, gpu: int, *, scale: float = 1.0) -> tuple[Measurement, ...]:
    """A suite whose benchmarks step, drift, come late, are renamed, lose their tier and are left out."""
    rng = random.Random(f"{commit} {gpu}")
    levels: dict[str, dict[str, Any]] = {
        "plain": {},
        "softmax": {"median_ms": 0.25 if commit < 25 else 0.27},
        "matmul": {
            "median_ms": 1.5 if commit < 36 else 1.5045,
            "between": 0.0001,
            "tier": Tier.B if rng.random() < 0.2 else Tier.A,
        },
        "stepped": {"median_ms": 0.5 * (1.0 if commit < 17 else 0.95 if commit < 31 else 0.99)},
        "drifting": {"median_ms": 0.8 * (1 + 0.002 * commit)},
        "speed": {"median_ms": 1.2 if commit < 28 else 1.15, "quantity": Quantity.RATIO},
        "sentinel": {"median_ms": 0.6 * (1.03 if commit == 38 else 1), "tags": ("sentinel",)},
        "steady": {"windows": tuple(a_window(index, samples_ms=(0.4,) * 5) for index in range(6))},
        "older" if commit < 23 else "newer": {"renamed_from": None if commit < 23 else "older"},
    }
    if commit > 12:
        levels["late"] = {"tier": Tier.C if rng.random() < 0.3 else Tier.A}
    chosen = [name for name in levels if name == "sentinel" or rng.random() < 0.9]
    return tuple(
        a_measurement(
            name,
            **{
                "passes": 6,
                "seed": 100 * commit + gpu,
                **about,
                "median_ms": scale * about.get("median_ms", 0.3),
            },
        )
        for name in chosen
        for about in (levels[name],)
    )


def a_history() -> list[Run]:
    """A line of commits with gaps, measured on two GPUs, one of them several times, and branches off it."""
    merge = a_commit(25, parents=(a_sha(24), a_sha(ACCEPTED)))
    runs = []
    for commit in (*range(1, NEWEST), BRANCH, BRANCH + 1):
        on_branch = commit >= BRANCH
        base = 35 + (commit - BRANCH) if on_branch else commit
        line = tuple(merge if one.sha == merge.sha else one for one in a_line_of_commits(base))
        own = (a_commit(commit, parents=(a_sha(base),)),) if on_branch else ()
        tags = tuple(GitTag(name=f"v{tag}", commit_sha=a_sha(tag)) for tag in RELEASES if tag <= base)
        runs += [
            a_run(
                commit,
                number=gpu,
                header={"gpu_uuid": uuid, "merge_base": a_sha(base)},
                measurements=measured(min(commit, NEWEST), gpu, scale=1.03 if commit == BRANCH else 1.0),
                history=(*own, *line),
                git_tags=tags,
            )
            for gpu, uuid in enumerate(GPUS)
            if (commit % 7 != 3 if gpu == 0 else commit % 4 == 2)
        ]
    sitting = {"gpu_uuid": GPUS[0], "aa_study": "5b1e0c3d-0c3d-4e2f-9a7b-1c2d3e4f5a6b"}
    runs += [
        a_run(SAT, number=number, header=sitting, measurements=measured(SAT, number)) for number in (2, 3, 4)
    ]
    return runs


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The history judged run by run."""
    database = Database(tmp_path_factory.mktemp("history") / "runs.duckdb")
    for run in a_history():
        save_run(database, run)
    search(database, found_at=JUDGED_AT)
    accepted = an_event(scope=Scope(benchmark="softmax"), commit_sha=a_sha(ACCEPTED))
    save_triage_events(database, [accepted])
    # One GPU after the other: the second one counts its tests with what was judged on the first.
    for header in sorted(find_runs(database), key=lambda run: (run.gpu_uuid, run.started_at)):
        judge_run(database, header.run_id, RULES, judged_at=JUDGED_AT)
    return database


@pytest.fixture(scope="module")
def one_by_one(database: Database) -> dict[tuple[str, str], Verdict]:
    return {(v.run_id, v.series.id): v for v in load_verdicts(database)}


@pytest.fixture(scope="module")
def quiet(database: Database, one_by_one: dict[tuple[str, str], Verdict]) -> list[Quiet]:
    """What was found to be quiet while everything was judged again."""
    assert one_by_one  # read before it is replaced
    found: list[Quiet] = []

    def noted(*about: Any) -> Quiet:
        found.append(find_quiet(*about))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("alerts.rejudge.find_quiet", noted)
        rejudge(database, RULES, judged_at=JUDGED_AT)
    return found


def test_the_verdicts_are_those_of_judging_one_by_one_to_the_last_digit(
    database: Database, one_by_one: dict[tuple[str, str], Verdict], quiet: list[Quiet]
) -> None:
    at_once = {(v.run_id, v.series.id): v for v in load_verdicts(database)}

    assert at_once.keys() == one_by_one.keys()
    assert [place for place, verdict in one_by_one.items() if at_once[place] != verdict] == []
    assert quiet


def test_the_history_has_something_of_everything(one_by_one: dict[tuple[str, str], Verdict]) -> None:
    verdicts = one_by_one.values()
    assert {v.baseline_kind for v in verdicts} >= {
        BaselineKind.POOL,
        BaselineKind.ANCHOR,
        BaselineKind.SINGLE,
    }
    assert {v.outcome for v in verdicts} == set(Outcome)
    assert {v.reason for v in verdicts} >= {Reason.DRIFTED, Reason.MACHINE_MOVED, Reason.BELOW_FLAG_EFFECT}
    assert {v.drift.since for v in verdicts if v.drift is not None} >= {f"v{tag}" for tag in RELEASES}
    assert any("since the change accepted at" in v.message for v in verdicts)
    assert any(v.p_value is None and v.baseline_kind is BaselineKind.POOL for v in verdicts)


def test_most_points_of_a_history_are_quiet_and_none_that_changed_is(
    one_by_one: dict[tuple[str, str], Verdict], quiet: list[Quiet]
) -> None:
    rows = np.sum([each.is_quiet for each in quiet], axis=0)
    pooled = [v for v in one_by_one.values() if v.baseline_kind is BaselineKind.POOL]
    unchanged = [v for v in pooled if v.outcome is Outcome.UNCHANGED and not (v.drift and v.drift.apart)]

    assert rows.max() == 1
    assert 0.8 * len(unchanged) < rows.sum() <= len(unchanged)


def test_a_run_whose_sentinel_moved_has_no_quiet_point(quiet: list[Quiet]) -> None:
    moved = {a_header(38, number=gpu).run_id for gpu in range(len(GPUS))}
    found = {run_id for each in quiet for run_id in runs_of(each)}

    assert found
    assert not found & moved


def runs_of(quiet: Quiet) -> set[str]:
    return {
        batch.points.headers[run].run_id for batch in quiet.batches for run in batch.points.run[batch.rows]
    }
