"""Eight recorded runs of the same eight calls on one H200, judged: ``tests/data/h200/study``.

One call is another one with 1.6 % more work. Whatever else differs between two runs is noise.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_header, a_line_of_commits, a_measurement, a_point, a_run, a_sha, a_window

from alerts.compare import compare
from alerts.judge import Evidence, judge_evidence
from alerts.judging import judge_run
from alerts.policy import Policy
from alerts.standing import settle
from store.database import Database
from store.records import BaselineKind, Case, Outcome, Standing, Tier
from store.runs import save_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.records import SeriesPoint, Verdict, Window

STUDY = json.loads((Path(__file__).parent / "data" / "h200" / "study" / "processes.json").read_text())
RUNS = range(8)
CALLS = tuple(STUDY["operations"])
MATMUL, MORE_WORK = "matmul", "matmul+1.6%"
POLICY = Policy()
SLOWER_COMMIT = 100  # commits after it hold the slower matmul, in the place of the other


def windows_of(run: int, call: str) -> tuple[Window, ...]:
    """The windows of a run: three processes with two each, one after the other."""
    samples = [
        window
        for process in STUDY["processes"]
        if process["run"] == run
        for window in process["samples_us"][call]
    ]
    return tuple(
        a_window(index, samples_ms=tuple(sample / 1000 for sample in window))
        for index, window in enumerate(samples)
    )


def recorded(run: int, call: str, *, under: str) -> dict[str, Any]:
    """A recorded call, under a name: what the builders need to know of it.

    Two windows of one process are no draws of their own, and the clock was not written down: tier B.
    """
    return {
        "windows": windows_of(run, call),
        "case": Case.of(under, {}),
        "tier": Tier.B,
        "tier_evidence": ("two windows a process; the clock was not written down",),
    }


def same_code(run: int) -> list[SeriesPoint]:
    """All calls of a run, on a commit of its own."""
    return [a_point(run + 1, **recorded(run, call, under=call)) for call in CALLS]


def slower_matmul(run: int) -> list[SeriesPoint]:
    """The matmul with more work, as if a later commit had made it that."""
    return [a_point(SLOWER_COMMIT + run, **recorded(run, MORE_WORK, under=MATMUL))]


@pytest.fixture(name="same", scope="module")
def _same() -> list[list[SeriesPoint]]:
    return [same_code(run) for run in RUNS]


@pytest.fixture(name="slower", scope="module")
def _slower() -> list[list[SeriesPoint]]:
    return [slower_matmul(run) for run in RUNS]


def judged(points: Sequence[SeriesPoint], against: Iterable[Sequence[SeriesPoint]]) -> list[Verdict]:
    """The verdicts on the calls of a run, where these other runs are its history, nearest first."""
    runs = list(against)
    judgement = judge_evidence(
        Evidence(
            header=points[0].header,
            candidates=tuple(points),
            failures=(),
            history=tuple(point for run in runs for point in run),
            line={run[0].header.commit_sha or "": distance for distance, run in enumerate(runs)},
        ),
        POLICY,
        judged_at=EPOCH,
    )
    return list(judgement.verdicts)


def others(same: Sequence[list[SeriesPoint]], *without: int) -> list[list[SeriesPoint]]:
    return [same[run] for run in RUNS if run not in without]


def flagged(verdicts: Iterable[Verdict]) -> list[str]:
    """The calls that are called changed, by name, with the change in per mille."""
    return sorted(
        f"{verdict.series.case.benchmark} {verdict.effect * 1000:+.1f}"
        for verdict in verdicts
        if verdict.standing is not Standing.NONE and verdict.effect is not None
    )


def confirmed(first: Sequence[Verdict], second: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts on a run after a second one was measured to confirm it."""
    return [
        settle(
            [one, other],
            resolution_ms=a_measurement().resolution_ms,
            policy=POLICY,
            confirms={other.run_id: one.run_id},
        )[0]
        for one, other in zip(first, second, strict=True)
    ]


def test_against_a_single_run_4_of_448_ordered_pairs_of_the_same_code_are_flagged(
    same: list[list[SeriesPoint]],
) -> None:
    verdicts = [v for base, run in permutations(RUNS, 2) for v in judged(same[run], [same[base]])]

    assert len(verdicts) == 448
    assert {verdict.baseline_kind for verdict in verdicts} == {BaselineKind.SINGLE}
    assert flagged(verdicts) == ["matmul +4.1", "matmul -4.0", "sdpa +5.6", "sdpa -5.6"]


def test_against_the_pool_of_the_other_runs_2_of_64_are_flagged_both_as_faster(
    same: list[list[SeriesPoint]],
) -> None:
    verdicts = [v for run in RUNS for v in judged(same[run], others(same, run))]

    assert len(verdicts) == 64
    assert {verdict.baseline_kind for verdict in verdicts} == {BaselineKind.POOL}
    assert flagged(verdicts) == ["matmul -4.0", "sdpa -5.6"]


def test_no_pair_of_runs_of_the_same_code_confirms_a_change(same: list[list[SeriesPoint]]) -> None:
    standings = Counter(
        verdict.standing
        for first, second in permutations(RUNS, 2)
        for pool in (others(same, first, second),)
        for verdict in confirmed(judged(same[first], pool), judged(same[second], pool))
    )

    assert standings == {Standing.NONE: 439, Standing.FLAGGED: 5, Standing.WITHDRAWN: 4}


def test_what_is_flagged_against_a_single_run_is_confirmed_by_no_other_run_against_the_same(
    same: list[list[SeriesPoint]],
) -> None:
    against = {(base, run): judged(same[run], [same[base]]) for base, run in permutations(RUNS, 2)}

    standings = Counter(
        verdict.standing
        for (base, first), verdicts in against.items()
        if flagged(verdicts)
        for second in RUNS
        if second not in (base, first)
        for verdict in confirmed(verdicts, against[base, second])
    )

    assert standings[Standing.FLAGGED] + standings[Standing.WITHDRAWN] == 4 * 6
    assert Standing.CONFIRMED not in standings


def test_every_pair_with_more_work_in_a_matmul_is_flagged_as_slower(
    same: list[list[SeriesPoint]], slower: list[list[SeriesPoint]]
) -> None:
    verdicts = [v for base, run in product(RUNS, RUNS) for v in judged(slower[run], [same[base]])]

    assert [verdict.outcome for verdict in verdicts] == [Outcome.REGRESSED] * 64


def test_every_pair_with_less_work_in_a_matmul_is_flagged_as_faster(
    same: list[list[SeriesPoint]], slower: list[list[SeriesPoint]]
) -> None:
    pairs = product(RUNS, RUNS)
    verdicts = [
        v
        for base, run in pairs
        for v in judged([p for p in same[run] if p.series.case.benchmark == MATMUL], [slower[base]])
    ]

    assert [verdict.outcome for verdict in verdicts] == [Outcome.IMPROVED] * 64


def test_against_a_pool_more_work_in_a_matmul_is_flagged_in_every_run_as_1_00_to_1_45_percent(
    same: list[list[SeriesPoint]], slower: list[list[SeriesPoint]]
) -> None:
    verdicts = [v for run in RUNS for v in judged(slower[run], same)]

    effects = sorted(verdict.effect or 0.0 for verdict in verdicts)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.REGRESSED] * 8
    assert (effects[0], effects[-1]) == pytest.approx((0.0100, 0.0145), abs=0.00005)


def test_more_work_is_confirmed_by_every_two_runs_that_both_show_one_percent(
    same: list[list[SeriesPoint]], slower: list[list[SeriesPoint]]
) -> None:
    """One run shows 0.9996 %: below what can be confirmed, so that it stays flagged beside each other run."""
    found = Counter(
        (verdict.outcome, verdict.standing, 2 in pair)
        for pair in permutations(RUNS, 2)
        for verdict in confirmed(*(judged(slower[run], same) for run in pair))
    )

    assert found == {
        (Outcome.REGRESSED, Standing.CONFIRMED, False): 42,
        (Outcome.REGRESSED, Standing.FLAGGED, True): 14,
    }


@pytest.fixture(name="database", scope="module")
def _database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The recorded matmul on a straight history, and two sessions on a commit after it with more work."""
    database = Database(tmp_path_factory.mktemp("study") / "study.duckdb")
    for run in RUNS:
        matmul = a_measurement(**recorded(run, MATMUL, under=MATMUL))
        save_run(database, a_run(run + 1, measurements=(matmul,)))
    first = a_header(9).run_id
    for session, header in enumerate(({}, {"confirms_run_id": first})):
        slower = a_measurement(**recorded(session, MORE_WORK, under=MATMUL))
        slower_run = a_run(
            9,
            number=session,
            header={"merge_base": a_sha(8)} | header,
            measurements=(slower,),
            history=a_line_of_commits(9),
        )
        save_run(database, slower_run)
    return database


def test_the_judge_of_stored_runs_confirms_more_work_against_the_recorded_history(database: Database) -> None:
    judgement = judge_run(database, a_header(9).run_id)

    (verdict,) = judgement.verdicts
    assert judgement.has_confirmed_regression
    assert (verdict.outcome, verdict.standing) == (Outcome.REGRESSED, Standing.CONFIRMED)
    assert verdict.baseline_kind is BaselineKind.POOL
    assert len(verdict.baseline_run_ids) == 8


def test_comparing_stored_runs_gives_the_verdicts_of_the_pairs(
    database: Database, same: list[list[SeriesPoint]], tmp_path: Path
) -> None:
    base, candidate = a_header(3).run_id, a_header(6).run_id  # one of the two pairs that are apart

    judgement = compare(database, base, candidate, checkout=tmp_path)

    assert flagged(judgement.verdicts) == flagged(judged(same[5], [same[2]])) == ["matmul +4.1"]
