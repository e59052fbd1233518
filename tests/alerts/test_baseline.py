"""Which earlier runs a candidate is compared with, and what is said when there are none."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_commit, a_header, a_line_of_commits, a_point, a_sha
from judgements import POLICY, a_candidate, a_history, a_line

from alerts.absence import explain_absence, history_unknown
from alerts.gathering import baseline_line
from alerts.levels import choose_baseline
from store.folding import fold_windows
from store.records import (
    BaselineKind,
    CacheState,
    ClockRegime,
    FoldStatus,
    Interval,
    Quantity,
    Reason,
    SeriesPoint,
    Tier,
    Timer,
)

if TYPE_CHECKING:
    from alerts.baseline import Baseline, Doubt
    from store.records import RunHeader


def choose(history: tuple[SeriesPoint, ...], candidate: SeriesPoint | None = None) -> Baseline | None:
    return choose_baseline(candidate or a_candidate(), history, a_line(), POLICY)


def explain(history: tuple[SeriesPoint, ...], **changes: Any) -> Doubt:
    return explain_absence(a_candidate(**changes), history, a_line(), POLICY)


def commits_of(baseline: Baseline | None) -> list[str | None]:
    assert baseline is not None
    return [point.header.commit_sha for point in baseline.points]


def test_twenty_runs_nearest_to_the_merge_base_make_the_pool() -> None:
    history = tuple(a_point(commit) for commit in range(30, 0, -1))

    baseline = choose_baseline(a_candidate(commit=31), history, a_line(25), POLICY)

    assert commits_of(baseline) == [a_sha(number) for number in range(25, 5, -1)]


def test_the_pool_is_the_same_in_whatever_order_the_store_returns_rows() -> None:
    history = [point for commit in range(1, 21) for point in (a_point(commit), a_point(commit, number=1))]
    shuffled = random.Random(4).sample(history, len(history))

    plain, mixed = choose(tuple(history)), choose(tuple(shuffled))

    assert plain == mixed


def test_six_runs_make_a_pool_and_five_leave_the_nearest_alone() -> None:
    six, five = choose(a_history(length=6)), choose(a_history(length=5))

    assert six is not None
    assert six.kind is BaselineKind.POOL
    assert five is not None
    assert five.kind is BaselineKind.SINGLE
    assert commits_of(five) == [a_sha(20)]


def test_of_two_runs_on_one_commit_the_newer_comes_first() -> None:
    older, newer = a_point(20), a_point(20, number=5)

    baseline = choose((older, newer))

    assert baseline is not None
    assert baseline.nearest == newer


def test_commit_dates_do_not_matter() -> None:
    """Commit 19 was measured, and says it was made, long after commit 20."""
    late = EPOCH + timedelta(days=900)
    near = a_point(20)
    far = a_point(19, header={"started_at": late, "ended_at": late})

    baseline = choose((far, near))

    assert baseline is not None
    assert baseline.nearest == near


def test_the_pool_interval_is_the_order_statistic_interval_of_its_run_centres() -> None:
    history = a_history()
    centers = [point.interval.center for point in history]

    baseline = choose(history)

    assert baseline is not None
    assert baseline.interval == fold_windows(
        [[center] for center in centers if center is not None], resolution=3.2e-5
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"header": {"dirty": True}},
        {"header": {"repository": "github.com/example/fork"}},
        {"tier": Tier.C},
        {"interval": Interval(0.25, None, None, 2, FoldStatus.REFUSED)},
    ],
    ids=["uncommitted", "other repository", "tier C", "refused fold"],
)
def test_what_cannot_be_trusted_or_is_other_code_is_never_a_baseline(changes: dict[str, Any]) -> None:
    assert choose(a_history(**changes)) is None


def test_a_commit_off_the_line_is_never_a_baseline() -> None:
    assert choose((a_point(22), a_point(23))) is None


def test_a_run_is_never_its_own_baseline() -> None:
    candidate = a_point(20)

    assert choose((candidate,), candidate) is None


def test_the_judged_commit_is_not_on_its_own_line() -> None:
    commits = {commit.sha: commit for commit in a_line_of_commits(20)}

    line = baseline_line(a_header(20), commits)

    assert a_sha(20) not in line
    assert min(line, key=line.__getitem__) == a_sha(19)


def test_uncommitted_changes_are_compared_with_their_own_commit() -> None:
    commits = {commit.sha: commit for commit in a_line_of_commits(20)}

    line = baseline_line(a_header(20, dirty=True), commits)

    assert min(line, key=line.__getitem__) == a_sha(20)


def test_a_merged_side_branch_is_not_on_the_line() -> None:
    merge = a_commit(20, parents=(a_sha(19), a_sha(99)))
    commits = {commit.sha: commit for commit in (merge, a_commit(99), *a_line_of_commits(19))}

    line = baseline_line(a_header(21, merge_base=a_sha(20)), commits)

    assert a_sha(99) not in line
    assert line[a_sha(19)] == 1


def test_a_merge_base_that_the_store_has_no_history_of_is_still_a_baseline() -> None:
    assert baseline_line(a_header(21, merge_base=a_sha(20)), {}) == {a_sha(20): 0}


@pytest.mark.parametrize("header", [a_header(20, commit_sha=None), a_header(20, merge_base=None)])
def test_without_history_there_is_no_line(header: RunHeader) -> None:
    assert baseline_line(header, {}) == {}


def test_nothing_measured_asks_for_the_merge_base() -> None:
    doubt = explain(())

    assert doubt.reason is Reason.NO_BASELINE
    assert doubt.message == (
        "000000000, the commit to compare with, was not measured, and none of its ancestors was: "
        "run `collect --commit 000000000`"
    )


def test_only_uncommitted_measurements_ask_for_a_clean_one() -> None:
    doubt = explain(a_history(header={"dirty": True}))

    assert doubt.reason is Reason.NO_BASELINE
    assert "measured only with uncommitted changes" in doubt.message


def test_the_first_commit_has_nothing_to_be_compared_with() -> None:
    doubt = explain_absence(a_candidate(), (), {}, POLICY)

    assert doubt.reason is Reason.NO_BASELINE
    assert "no known ancestor" in doubt.message


def test_a_case_that_no_ancestor_has_is_new() -> None:
    doubt = explain(a_history(benchmark="matmul"))

    assert doubt.reason is Reason.NEW_BENCHMARK


@pytest.mark.parametrize(
    ("reason", "changes", "said"),
    [
        (Reason.OTHER_GPU, {"header": {"gpu_uuid": "GPU-other"}}, "measured on GPU-other"),
        (Reason.OTHER_TIMER, {"header": {"timer": Timer.EVENTS}}, "timed by events, this run by cupti"),
        (
            Reason.OTHER_ENVIRONMENT,
            {"header": {"environment": "cuda=13.0 driver=570.1 torch=2.11.0"}},
            "another environment began a new series here (driver 570.1 -> 580.159.04), and what was measured",
        ),
        (
            Reason.OTHER_CONDITIONS,
            {"cache_state": CacheState.WARM},
            "cache state warm, in this run cold",
        ),
        (
            Reason.OTHER_CONDITIONS,
            {"header": {"clock_regime": ClockRegime.LOCKED}},
            "clock regime locked, in this run held",
        ),
        (
            Reason.OTHER_CONDITIONS,
            {"quantity": Quantity.DEVICE_BUSY_AND_COPIES},
            "quantity device_busy_and_copies, in this run device_busy",
        ),
    ],
)
def test_ancestors_under_another_key_are_named_with_what_differs(
    reason: Reason, changes: dict[str, Any], said: str
) -> None:
    doubt = explain(a_history(**changes))

    assert doubt.reason is reason
    assert said in doubt.message
    assert "run `collect --commit 000000000` under the conditions of this run" in doubt.message


def test_the_closest_key_is_the_one_that_is_named() -> None:
    far = a_history(header={"gpu_uuid": "GPU-other", "timer": Timer.EVENTS})
    close = a_history(length=1, newest=5, cache_state=CacheState.WARM)

    assert explain((*far, *close)).reason is Reason.OTHER_CONDITIONS


def test_ancestors_of_tier_c_are_named_with_their_evidence() -> None:
    doubt = explain(a_history(tier=Tier.C, tier_evidence=("power cap reached",)))

    assert doubt.reason is Reason.BASELINE_TIER_TOO_LOW
    assert "20 earlier runs" in doubt.message
    assert "power cap reached" in doubt.message


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (a_header(None), "no git repository"),
        (a_header(20, merge_base=None), "left its base branch is not known"),
        (a_header(20, merge_base=None, history_note="main was not found"), "main was not found"),
        (a_header(20, history_note="this clone is shallow: run this"), "this clone is shallow: run this"),
    ],
    ids=["no repository", "no merge-base", "no base branch", "shallow"],
)
def test_a_history_that_is_not_known_for_sure_says_why_and_what_to_do(header: RunHeader, said: str) -> None:
    doubt = history_unknown(header)

    assert doubt is not None
    assert doubt.reason is Reason.HISTORY_MISSING
    assert said in doubt.message
    assert doubt.message.endswith("then measure again")


def test_a_history_that_is_known_raises_no_doubt() -> None:
    assert history_unknown(a_header(20)) is None
