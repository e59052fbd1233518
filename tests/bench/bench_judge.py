"""What the judge says over a year of commits, beside other rules on the same series: simulated.

A run draws a level of its own (run sd) and eight windows around it (window sd); both are normal in
log units. The spreads of the windows are those of eight operations on one H200. Runs are folded,
pooled, judged and confirmed by the functions that judge real ones; nothing here decides anything.
Every commit is on the base branch and measured once, and every hundredth is a release.
docs/decisions/0008-baseline-cuts.md cites the tables. Takes about ten minutes.

    python tests/bench/bench_judge.py [--commits N]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402 - after the path is set
from builders import EPOCH, a_point, a_sha  # noqa: E402
from step_rules import OTAVA, asv_steps, fixed_steps, otava_steps  # noqa: E402

from alerts.baseline import form_baseline  # noqa: E402
from alerts.change_points import histories_along  # noqa: E402
from alerts.levels import Landmarks, choose_baseline  # noqa: E402
from alerts.policy import Policy  # noqa: E402
from alerts.standing import settle  # noqa: E402
from alerts.steps import find_steps  # noqa: E402
from alerts.verdicts import judge_point  # noqa: E402
from store.folding import fold_windows  # noqa: E402
from store.records import Outcome, Reason, SeriesPoint, Standing  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from store.change_points import ChangePoint
    from store.records import Verdict

SEED = 0xC0FFEE
WINDOWS = 8
BENCHMARKS = 50
COMMITS = 1000
CHUNK = 250  # commits that a rule for whole histories is given at a time
BEFORE = 60  # runs on the old level before a step or a drift
SERIES = 1000  # with a step, and with a drift
SERIES_SEARCHED = 200  # of these, by the rules for whole histories
RELEASE_EVERY = 100  # commits, the first of them RELEASE_FIRST
RELEASE_FIRST = 40
MARKS = (1, 2, 5, 10)  # commits after a step
SECOND_AFTER = 12  # commits between a first step and a second
POLICY = Policy()

# 62 runs on one H200, per operation between-window and between-run SD, in per cent. Windows: spread
# between the processes of one run, each process one window; 24 processes in four sessions, clocks not
# locked, calls paced. Runs: what the sessions add to that; 0 where the processes explain all of it.
RECORDED = {
    "add, 1024 elements, 1.0 us": (0.998, 0.0),
    "rms norm, 7.3 us": (0.516, 0.0),
    "softmax, 257 us": (0.156, 0.0),
    "matmul 4096, 176 us": (0.233, 0.035),
    "matmul 4096 x 4160, 178 us": (0.230, 0.0),
    "causal attention, 498 us": (0.306, 0.115),
    "top-k, 601 us": (0.067, 0.0),
    "gelu mlp, 364 us": (0.193, 0.0),
}
SCENES: dict[str, float | None] = {"0.5": 0.5, "1": 1.0, "2": 2.0, "as recorded": None}  # run sd / window sd
TEMPLATE = a_point()


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations in log units."""

    window_sd: float
    run_sd: float


class Series:
    """The runs of one series, one a commit, made as they are asked for."""

    def __init__(self, noise: Noise, *key: int) -> None:
        self.noise = noise
        self.rng = np.random.default_rng([SEED, *key])
        self.runs: list[SeriesPoint] = []

    def measure(self, level: float = 0.0) -> SeriesPoint:
        """One more run in a session of its own, at a log level."""
        own = level + self.rng.normal(0, self.noise.run_sd)
        commit = a_sha(len(self.runs) + 1)
        medians = tuple(np.exp(self.rng.normal(own, self.noise.window_sd, WINDOWS)).tolist())
        self.runs.append(
            replace(
                TEMPLATE,
                header=replace(
                    TEMPLATE.header, run_id=f"run-{len(self.runs)}", commit_sha=commit, merge_base=commit
                ),
                interval=fold_windows([[median] for median in medians], resolution=0.0),
                resolution_ms=0.0,
                window_medians_ms=medians,
            )
        )
        return self.runs[-1]


def released_before(runs: int) -> int:
    """The newest release among the first so many runs that their pool does not reach beyond."""
    return RELEASE_FIRST + (runs - POLICY.pool_size - RELEASE_FIRST) // RELEASE_EVERY * RELEASE_EVERY


def judged(
    candidate: SeriesPoint, before: Sequence[SeriesPoint], steps: Sequence[ChangePoint] | None = None
) -> Verdict:
    """The verdict against all earlier runs, oldest first, one a commit.

    Without steps, only the runs that pool and anchor are made of are handed on, which changes
    nothing and is quick.
    """
    release = released_before(len(before))
    places = set(range(len(before)))
    if steps is None:
        recent = set(range(len(before) - POLICY.pool_size, len(before)))
        places = recent | set(range(release - POLICY.pool_size, release))
    line = {before[place].header.commit_sha or "": len(before) - place for place in places}
    landmarks = Landmarks(releases={a_sha(release): f"v{release}"}, steps=steps or ())
    baseline = choose_baseline(candidate, [before[place] for place in places], line, POLICY, landmarks)
    assert baseline is not None
    return judge_point(candidate, baseline, POLICY, judged_at=EPOCH)


def judged_by_parent(candidate: SeriesPoint, parent: SeriesPoint) -> Verdict:
    """The verdict against one run."""
    baseline = form_baseline([parent], POLICY)
    assert baseline is not None
    return judge_point(candidate, baseline, POLICY, judged_at=EPOCH)


def steps_of(runs: Sequence[SeriesPoint]) -> Sequence[ChangePoint]:
    """What a search of the runs finds, one a commit, oldest first."""
    line = {run.header.commit_sha or "": len(runs) - place for place, run in enumerate(runs)}
    (history,) = histories_along(line, runs, rules=POLICY, rule=None, found_at=EPOCH)
    return history.changes


def is_slower(verdict: Verdict) -> bool:
    """Whether it is flagged as a regression."""
    return verdict.outcome is Outcome.REGRESSED


def center(point: SeriesPoint) -> float:
    """In milliseconds."""
    assert point.interval.center is not None
    return point.interval.center


def our_steps(durations: Sequence[float]) -> list[int]:
    """First points of the upward steps that ``alerts steps`` would store."""
    return [step.position for step in find_steps([math.log(x) for x in durations]) if step.size > 0]


HISTORY_RULES: dict[str, Callable[[tuple[float, ...]], list[int]]] = {
    "our steps": our_steps,
    "asv, threshold 5 % (its default)": lambda durations: asv_steps(durations, threshold=0.05),
    "asv, threshold 1 %": lambda durations: asv_steps(durations, threshold=0.01),
    "fixed 2 % against the parent's run": lambda durations: fixed_steps(durations, share=0.02),
}
FLAGGED, CONFIRMED = "flagged (amber)", "confirmed"
EITHER = "flagged"
POOL_RULES = ("flagged against the pool", "flagged against the anchor", EITHER)
FALSE_GOALS = {CONFIRMED: 15, FLAGGED: 500}  # regressions per 50,000 comparisons of the same code, at most
STEP_GOALS = {1: 80.0, 5: 97.0}  # percentage seen after so many commits, at least
DRIFT_GOALS = {20: 99.0}
if OTAVA:
    HISTORY_RULES["apache-otava, its defaults"] = otava_steps


def false_alarms(noise: Noise, commits: int, *key: int) -> Counter[str]:
    """Regressions that each rule sees in the same code, commit by commit."""
    series, found, history = Series(noise, *key), Counter[str](), []
    for _ in range(RELEASE_FIRST + POLICY.pool_size):
        series.measure()
    for _ in range(commits):
        before = list(series.runs)
        run = series.measure()
        history.append(center(run))
        flag = judged(run, before)
        found[FLAGGED] += is_slower(flag)
        found["of these, a drift"] += flag.reason is Reason.DRIFTED
        found["intervals apart from the parent's run"] += is_slower(judged_by_parent(run, before[-1]))
        if is_slower(flag):
            again = judged(series.measure(), before)
            both = settle([flag, again], resolution_ms=0.0, policy=POLICY)
            found[CONFIRMED] += any(is_slower(v) and v.standing is Standing.CONFIRMED for v in both)
    for start in range(0, commits, CHUNK):
        for name, rule in HISTORY_RULES.items():
            found[name] += len(rule(tuple(history[start : start + CHUNK])))
    return found


def noises(ratio: float | None) -> Iterable[Noise]:
    """The noise of each benchmark: the recorded operations in turn."""
    recorded = list(RECORDED.values())
    for index in range(BENCHMARKS):
        window_sd, run_sd = (per_cent / 100 for per_cent in recorded[index % len(recorded)])
        yield Noise(window_sd, run_sd if ratio is None else ratio * window_sd)


def seen(levels: Sequence[float], marks: Sequence[int]) -> dict[str, list[float]]:
    """By rule: the percentage of series in which it has seen a slowdown after so many commits.

    Args:
        levels: log level of each commit after the old level of 0.
        marks: numbers of commits after which is counted.
    """
    noise = Noise(window_sd=0.005, run_sd=0.005)
    counts = {name: Counter[int]() for name in (*POOL_RULES, *HISTORY_RULES)}
    for index in range(SERIES):
        series = Series(noise, len(levels), index)
        for _ in range(BEFORE):
            series.measure()
        first: dict[str, int] = {}
        for commit, level in enumerate(levels, start=1):
            before = list(series.runs)
            verdict = judged(series.measure(level), before)
            pool = is_slower(verdict) and verdict.reason is not Reason.DRIFTED
            anchor = verdict.drift is not None and verdict.drift.apart and verdict.drift.effect > 0
            now = dict(zip(POOL_RULES, (pool, anchor, is_slower(verdict)), strict=True))
            if commit in marks and index < SERIES_SEARCHED:
                durations = tuple(center(point) for point in series.runs)
                for name, rule in HISTORY_RULES.items():
                    now[name] = any(position >= BEFORE - 1 for position in rule(durations))
            for name, is_seen in now.items():
                if is_seen:
                    first.setdefault(name, commit)
        for name, commit in first.items():
            counts[name].update(mark for mark in marks if commit <= mark)
    series_of = dict.fromkeys(POOL_RULES, SERIES) | dict.fromkeys(HISTORY_RULES, SERIES_SEARCHED)
    return {
        name: [100 * counted[mark] / series_of[name] for mark in marks] for name, counted in counts.items()
    }


def seen_after_a_step(first: float, second: float, *, cut: bool) -> list[float]:
    """The percentage of series in which a second step is flagged against the pool, after each mark.

    Args:
        first: log size of a step that nobody accepts.
        second: log size of one that follows SECOND_AFTER commits later.
        cut: whether the judge is told of the steps that a search of the history finds.
    """
    counts = Counter[int]()
    for index in range(SERIES_SEARCHED):
        series = Series(Noise(window_sd=0.005, run_sd=0.005), 7, index)
        for level in (*[0.0] * BEFORE, *[first] * SECOND_AFTER):
            series.measure(level)
        seen = False
        for commit in range(1, max(MARKS) + 1):
            before = list(series.runs)
            verdict = judged(series.measure(first + second), before, steps_of(before) if cut else None)
            seen = seen or (is_slower(verdict) and verdict.reason is not Reason.DRIFTED)
            counts[commit] += seen
    return [100 * counts[mark] / SERIES_SEARCHED for mark in MARKS]


def print_false_alarms(commits: int) -> None:
    """Counts per 50,000 comparisons, how many times those of our flags, and the worst beside its goal."""
    columns = []
    for place, ratio in enumerate(SCENES.values()):
        total = Counter[str]()
        for index, noise in enumerate(noises(ratio)):
            total += false_alarms(noise, commits, place, index)
        columns.append(total)
    scale = COMMITS / commits
    names = [CONFIRMED, FLAGGED, "of these, a drift", "intervals apart from the parent's run", *HISTORY_RULES]
    print(f"Regressions seen in the same code, per {COMMITS} commits x {BENCHMARKS} benchmarks;")
    print(f"counted over {commits} commits each.\n")
    print("| run sd / window sd | " + " | ".join(SCENES) + " | goal | times our flags, at 1 |")
    print("|---" * (len(SCENES) + 3) + "|")
    flags = max(columns[1][FLAGGED], 1)
    for name in names:
        cells = " | ".join(f"{column[name] * scale:,.0f}" for column in columns)
        print(f"| {name} | {cells} | {FALSE_GOALS.get(name, '')} | {columns[1][name] / flags:,.2f} |")
    for name, goal in FALSE_GOALS.items():
        worst = max(column[name] for column in columns) * scale
        print(f"\n{name}, worst: {worst:,.0f} of at most {goal}: ratio {worst / goal:.2f}", flush=True)


def print_seen(title: str, levels: Sequence[float], marks: Sequence[int], goals: Mapping[int, float]) -> None:
    """Percentages after each of the marks, those of our flags beside their goals."""
    print(f"\n{title}; window sd 0.5 %, run sd 0.5 %; seen after so many commits, in %.\n")
    print("| rule | " + " | ".join(map(str, marks)) + " |")
    print("|---" * (len(marks) + 1) + "|")
    shares_by_rule = seen(levels, marks)
    for name, shares in shares_by_rule.items():
        print(f"| {name} | " + " | ".join(f"{share:.1f}" for share in shares) + " |")
    for mark, goal in goals.items():
        share = shares_by_rule[EITHER][marks.index(mark)]
        print(
            f"\n{EITHER} after {mark}: {share:.1f} of at least {goal:.0f}: ratio {share / goal:.2f}",
            flush=True,
        )


def print_second_steps() -> None:
    """What it is worth to cut the pool at a step that nobody accepted."""
    print(f"\nA second step of 2 %, {SECOND_AFTER} commits after one that nobody accepted; flagged, in %.\n")
    print("| first step | pool | " + " | ".join(map(str, MARKS)) + " |")
    print("|---" * (len(MARKS) + 2) + "|")
    for size in (0.03, -0.03):
        for cut in (False, True):
            shares = seen_after_a_step(math.log1p(size), math.log1p(0.02), cut=cut)
            cells = " | ".join(f"{share:.1f}" for share in shares)
            print(f"| {size:+.0%} | {'cut at the step' if cut else 'not cut'} | {cells} |", flush=True)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=COMMITS, help=f"of each benchmark [{COMMITS}]")
    print_false_alarms(parser.parse_args().commits)
    print_seen("A step of 2 %", [math.log(1.02)] * 10, MARKS, STEP_GOALS)
    drift = [math.log(1.003) * min(commit, 10) for commit in range(1, 21)]
    print_seen("A drift of 0.3 % x 10 commits", drift, (5, 10, 20), DRIFT_GOALS)
    print_second_steps()


if __name__ == "__main__":
    main()
