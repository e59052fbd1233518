"""Which runs make the pool and which the anchor, where changes and releases divide a history."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_header, a_point, a_sha
from judgements import JUDGED_AT, POLICY, a_line

from alerts.levels import Landmarks, choose_baseline
from alerts.verdicts import judge_point
from store.change_points import ChangePoint
from store.records import BISECTION, BaselineKind, Outcome, Reading, Reason, SeriesPoint, Standing

if TYPE_CHECKING:
    from alerts.baseline import Baseline
    from store.records import Verdict

NEWEST = 80
LINE = a_line(NEWEST)
JUDGED = NEWEST + 1
STUDY = "5b1e0c3d-0c3d-4e2f-9a7b-1c2d3e4f5a6b"


def a_history(*levels: tuple[int, float]) -> tuple[SeriesPoint, ...]:
    """One point on each of 80 commits; from each commit named on at a level in milliseconds."""
    return tuple(
        a_point(commit, median_ms=[level for first, level in levels if first <= commit][-1])
        for commit in range(1, NEWEST + 1)
    )


def a_step(commit: int, size: float, **changes: Any) -> ChangePoint:
    """A step between a commit and the one before it."""
    fields: dict[str, Any] = {
        "series": a_point(commit).series,
        "repository": "github.com/example/kernels",
        "commit_before": a_sha(commit - 1),
        "commit_sha": a_sha(commit),
        "run_id": a_header(commit).run_id,
        "size": size,
        "size_low": size,
        "size_high": size,
        "p_value": 0.0001,
        "method_version": 1,
        "found_at": EPOCH,
    }
    return ChangePoint(**fields | changes)


def candidate(level: float = 0.25, **header: Any) -> SeriesPoint:
    """A run of the main branch, on the commit after the history."""
    return a_point(JUDGED, median_ms=level, header=header)


def on_a_branch(level: float = 0.25) -> SeriesPoint:
    return candidate(level, merge_base=a_sha(NEWEST))


def choose(history: tuple[SeriesPoint, ...], **landmarks: Any) -> Baseline:
    baseline = choose_baseline(candidate(), history, LINE, POLICY, Landmarks(**landmarks))
    assert baseline is not None
    return baseline


def judged(point: SeriesPoint, history: tuple[SeriesPoint, ...], **landmarks: Any) -> Verdict:
    baseline = choose_baseline(point, history, LINE, POLICY, Landmarks(**landmarks))
    assert baseline is not None
    return judge_point(point, baseline, POLICY, judged_at=JUDGED_AT)


def commits_of(baseline: Baseline | None) -> range:
    """The commits of a baseline, which follow one another, as a range from the oldest on."""
    assert baseline is not None
    numbers = [int(point.header.commit_sha or "", 16) for point in baseline.points]
    assert numbers == list(range(numbers[0], numbers[-1] - 1, -1))
    return range(numbers[-1], numbers[0] + 1)


FLAT = a_history((1, 0.25))
SLOWER = a_history((1, 0.25), (60, 0.26))  # 4 % from commit 60 on
FASTER = a_history((1, 0.25), (60, 0.24))
# 0.2 % slower with each commit from 30 to 60: 6 % in all, and never a step.
DRIFTING = tuple(
    a_point(commit, median_ms=0.25 * (1 + 0.002 * min(max(commit - 30, 0), 30)))
    for commit in range(1, NEWEST + 1)
)
DRIFTED_MS = 0.25 * 1.06


def test_without_releases_the_anchor_is_the_oldest_runs() -> None:
    baseline = choose(FLAT)

    assert commits_of(baseline) == range(61, 81)
    assert commits_of(baseline.anchor) == range(1, 21)
    assert baseline.anchor is not None
    assert baseline.anchor.since == f"{a_sha(20)[:9]}"


def test_the_anchor_reaches_up_to_the_newest_release_before_the_pool() -> None:
    released = {a_sha(10): "v1.0", a_sha(40): "v1.1", a_sha(70): "v1.2"}

    anchor = choose(FLAT, releases=released).anchor

    assert commits_of(anchor) == range(21, 41)
    assert anchor is not None
    assert anchor.since == "v1.1"


def test_a_release_with_too_few_runs_before_it_gives_way_to_the_oldest_runs() -> None:
    anchor = choose(FLAT, releases={a_sha(5): "v1.0", "f" * 40: "v9"}).anchor

    assert commits_of(anchor) == range(1, 21)


def test_a_short_history_has_a_pool_and_no_anchor() -> None:
    assert choose(FLAT[-25:]).anchor is None
    assert choose(FLAT[-26:]).anchor is not None


def test_pool_and_anchor_share_what_they_know_about_the_spread() -> None:
    baseline = choose(FLAT)
    assert baseline.anchor is not None

    logs = [
        [math.log(point.interval.center or 0) for point in points]
        for points in (baseline.points, baseline.anchor.points)
    ]
    both = math.sqrt(statistics.fmean(map(statistics.variance, logs)))
    assert baseline.run_sd == pytest.approx(max(both, statistics.stdev(logs[0])))
    assert baseline.run_df == baseline.anchor.run_df == 38


def test_a_pool_that_became_less_steady_is_not_calmed_by_its_anchor() -> None:
    unsteady = tuple(
        a_point(commit, median_ms=0.25 * (1 + 0.01 * (commit % 2) * (commit > 60)))
        for commit in range(1, NEWEST + 1)
    )

    baseline = choose(unsteady)

    centers = [math.log(point.interval.center or 0) for point in baseline.points]
    assert baseline.run_sd == pytest.approx(statistics.stdev(centers))


def test_nothing_before_an_accepted_change_is_a_baseline() -> None:
    baseline = choose(SLOWER, accepted=a_sha(60))

    assert commits_of(baseline) == range(61, 81)
    assert baseline.anchor is None


def test_too_few_runs_after_an_accepted_change_leave_a_single_one() -> None:
    baseline = choose(SLOWER, accepted=a_sha(77))

    assert baseline.kind is BaselineKind.SINGLE


def test_an_improvement_that_lasted_moves_pool_and_anchor() -> None:
    step = a_step(50, -0.04)
    faster = a_history((1, 0.25), (50, 0.24))

    baseline = choose(faster, steps=[step])

    assert commits_of(baseline) == range(61, 81)
    assert commits_of(baseline.anchor) == range(50, 61)
    assert commits_of(choose(FASTER, steps=[a_step(70, -0.04)])) == range(70, 81)


def test_a_step_for_the_worse_cuts_the_pool_and_leaves_the_anchor_where_it_was() -> None:
    baseline = choose(a_history((1, 0.25), (70, 0.26)), steps=[a_step(70, 0.04)])

    assert commits_of(baseline) == range(70, 81)
    assert commits_of(baseline.anchor) == range(1, 21)


def test_a_step_for_the_worse_without_an_anchor_before_it_cuts_nothing() -> None:
    short = a_history((1, 0.25), (70, 0.26))[-16:]

    baseline = choose(short, steps=[a_step(70, 0.04)])

    assert commits_of(baseline) == range(65, 81)


def test_a_step_with_five_runs_after_it_cuts_nothing_yet() -> None:
    five, six = a_step(76, 0.04), a_step(75, 0.04)

    assert commits_of(choose(FLAT, steps=[five])) == range(61, 81)
    assert commits_of(choose(FLAT, steps=[six])) == range(75, 81)


def test_a_step_on_another_line_cuts_nothing() -> None:
    assert choose(FLAT, steps=[a_step(70, 0.04, commit_sha="f" * 40)]) == choose(FLAT)


def test_an_anchor_never_holds_two_levels() -> None:
    history = a_history((1, 0.25), (12, 0.26))

    anchor = choose(history, steps=[a_step(12, 0.04)]).anchor
    up_to_release = choose(history, steps=[a_step(12, 0.04)], releases={a_sha(25): "v1"}).anchor

    assert commits_of(anchor) == range(1, 12)
    assert commits_of(up_to_release) == range(12, 26)


def test_a_step_of_the_machine_divides_the_runs_of_its_commit() -> None:
    second = a_point(70, number=5)
    step = a_step(70, 0.04, commit_before=a_sha(70), run_id=second.header.run_id)

    baseline = choose((*FLAT, second), steps=[step])

    assert len(baseline.points) == 11
    assert baseline.points[-1] == second


def test_a_drift_that_no_single_commit_shows_is_a_regression_on_the_base_branch() -> None:
    verdict = judged(candidate(DRIFTED_MS), DRIFTING, releases={a_sha(30): "v1.2.0"})

    assert (verdict.outcome, verdict.reason) == (Outcome.REGRESSED, Reason.DRIFTED)
    assert verdict.standing is Standing.FLAGGED
    assert verdict.baseline_kind is BaselineKind.ANCHOR
    assert verdict.baseline_run_ids == tuple(a_header(number).run_id for number in range(30, 10, -1))
    assert verdict.effect == pytest.approx(0.06, abs=0.003)
    assert verdict.message.startswith("drift: +5.96 % ")
    assert "since v1.2.0 (95 %: " in verdict.message
    assert "; not distinguishable from 20 runs up to" in verdict.message


def test_a_drift_is_not_held_against_a_branch_and_is_said_there() -> None:
    verdict = judged(on_a_branch(DRIFTED_MS), DRIFTING, releases={a_sha(30): "v1.2.0"})

    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.drift is not None
    assert verdict.drift.apart
    assert verdict.message.endswith("; drift: +5.96 % since v1.2.0, which is judged on main")


def test_what_a_branch_adds_to_a_drift_is_held_against_it() -> None:
    verdict = judged(on_a_branch(DRIFTED_MS * 1.03), DRIFTING, releases={a_sha(30): "v1.2.0"})

    assert (verdict.outcome, verdict.reason) == (Outcome.REGRESSED, Reason.INTERVALS_APART)
    assert verdict.effect == pytest.approx(0.03, abs=0.003)
    assert "; drift: +9." in verdict.message


def test_uncommitted_changes_have_drifted_nowhere() -> None:
    assert judged(candidate(DRIFTED_MS, dirty=True), DRIFTING).outcome is Outcome.UNCHANGED


def test_a_series_that_stayed_where_it_was_has_not_drifted() -> None:
    verdict = judged(candidate(), FLAT)

    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.drift is not None
    assert not verdict.drift.apart
    assert "drift" not in verdict.message


def test_an_accepted_drift_is_the_new_normal() -> None:
    verdict = judged(candidate(DRIFTED_MS), DRIFTING, accepted=a_sha(60))

    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.drift is None


def test_a_regression_that_nobody_accepted_stays_one_when_its_step_has_cut_the_pool() -> None:
    verdict = judged(candidate(0.26), SLOWER, steps=[a_step(60, 0.04)])

    assert (verdict.outcome, verdict.reason) == (Outcome.REGRESSED, Reason.DRIFTED)


def test_a_series_that_became_faster_since_a_release_is_no_regression() -> None:
    verdict = judged(candidate(0.24), FASTER)

    assert verdict.outcome is Outcome.UNCHANGED
    assert "; drift: -4." in verdict.message


def a_study(commit: int, runs: int) -> tuple[SeriesPoint, ...]:
    """A commit measured several times, one right after another."""
    return tuple(a_point(commit, number=number, header={"aa_study": STUDY}) for number in range(runs))


def test_of_runs_in_one_sitting_the_nearest_alone_is_in_the_pool() -> None:
    study = a_study(NEWEST, 10)

    baseline = choose_baseline(candidate(), (*a_history((1, 0.25))[:-1], *study), LINE, POLICY)

    assert baseline is not None
    commits = [point.header.commit_sha for point in baseline.points]
    assert commits == [a_sha(commit) for commit in range(NEWEST, NEWEST - 20, -1)]
    assert baseline.points[0] == study[-1]


def test_runs_of_one_sitting_alone_are_a_single_baseline_however_many_they_are() -> None:
    baseline = choose_baseline(candidate(), a_study(NEWEST, 10), LINE, POLICY)

    assert baseline is not None
    assert baseline.kind is BaselineKind.SINGLE


def test_a_bisection_is_one_sitting_too() -> None:
    bisected = {"context": {BISECTION: Reading(value="from good to bad")}}
    points = tuple(a_point(NEWEST - number // 4, number=number, header=bisected) for number in range(12))

    baseline = choose_baseline(candidate(), points, LINE, POLICY)

    assert baseline is not None
    assert baseline.kind is BaselineKind.SINGLE
