"""The verdicts on a whole run, from what was measured on it and on its ancestors: pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from alerts.absence import explain_absence, history_unknown
from alerts.baseline import SENTINEL, Baseline, Doubt, describe
from alerts.completeness import missing_cases, never_measured, new_series, renamed_cases
from alerts.effects import benjamini_hochberg
from alerts.levels import NO_LANDMARKS, Landmarks, choose_baseline
from alerts.partner import choose_partner
from alerts.policy import Policy, Rules
from alerts.verdicts import CHANGES, judge_point
from store import shown
from store.older_names import NO_RENAMES, Renames
from store.records import (
    BaselineKind,
    Case,
    Failure,
    Outcome,
    Reason,
    RunHeader,
    SeriesPoint,
    Standing,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from store.records import SeriesKey
    from store.triage_events import TriageEvent

__all__ = [
    "SENTINEL", "Baseline", "Doubt", "Evidence", "JudgedPoint", "Policy", "RunJudgement", "judge_evidence",
    "judge_point",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything a run is judged by.

    Attributes:
        candidates: the points of the run.
        failures: what gave no number in it.
        history: points of other runs, of any series and in any order.
        line: first-parent distance from the merge-base of every commit that may serve as a
            baseline; the merge-base is 0. The judged commit itself is not on it, unless what
            was measured are uncommitted changes to it.
        paired: points of the run whose passes took turns with those of this one.
        paired_failures: what gave no number in that run.
        landmarks: by series, what divides its history: accepted changes, steps and releases.
        renames: the older names under which some of the history was measured; the points of
            history and of the paired run have the names of today.
    """

    header: RunHeader
    candidates: tuple[SeriesPoint, ...]
    failures: tuple[Failure, ...]
    history: tuple[SeriesPoint, ...]
    line: Mapping[str, int]
    paired: tuple[SeriesPoint, ...] = ()
    paired_failures: tuple[Failure, ...] = ()
    landmarks: Mapping[SeriesKey, Landmarks] = field(default_factory=dict)
    renames: Renames = NO_RENAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPoint:
    """A verdict with the points it rests on, so that a reader can be shown what changed.

    Attributes:
        before: the nearest point of the baseline, or None without one.
        policy: the thresholds that decided.
        muted: the mute that holds for the series, or None.
        accepted: the decision that accepts this change on this commit, or None.
    """

    point: SeriesPoint
    verdict: Verdict
    before: SeriesPoint | None
    policy: Policy
    muted: TriageEvent | None = None
    accepted: TriageEvent | None = None

    @property
    def is_sentinel(self) -> bool:
        """Whether this is one of the tool's own calls, which watch the machine."""
        return SENTINEL in self.point.tags

    @property
    def is_test(self) -> bool:
        """Whether its p-value counts among those of the suite: not that of a sentinel, nor one taken back."""
        return (
            not self.is_sentinel
            and self.verdict.p_value is not None
            and self.verdict.reason is not Reason.MACHINE_MOVED
        )

    @property
    def is_excused(self) -> bool:
        """Whether people decided that a regression here is no alarm: it is shown, and fails nothing."""
        return self.muted is not None or self.accepted is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJudgement:
    """What was decided about a run, and what could not be.

    Attributes:
        failures: benchmarks that gave no number.
        missing: cases with a number in the paired run, or else in the last runs on ancestors, and
            no word in this run.
        baseline: what most of the run was compared with, in words.
        last_measured: of each missing case, the commit that was measured last.
        never_measured: failed cases that no ancestor has a number of either.
        renamed: older names whose history a case of this run carries on.
        new_series: what to know where another environment began new series lately, or None.
    """

    header: RunHeader
    judged: tuple[JudgedPoint, ...]
    failures: tuple[Failure, ...]
    missing: tuple[Case, ...]
    baseline: str
    last_measured: Mapping[Case, str] = field(default_factory=dict)
    never_measured: tuple[Case, ...] = ()
    renamed: tuple[tuple[str, Case], ...] = ()
    new_series: str | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts alone, by benchmark."""
        return tuple(item.verdict for item in self.judged)

    @property
    def has_confirmed_regression(self) -> bool:
        """Whether a regression held in a fresh session and nobody excused it. It alone fails a check."""
        return any(
            item.verdict.outcome is Outcome.REGRESSED
            and item.verdict.standing is Standing.CONFIRMED
            and not item.is_excused
            for item in self.judged
        )

    @property
    def is_conclusive(self) -> bool:
        """Whether anything at all could be judged."""
        return any(
            item.verdict.outcome is not Outcome.INCONCLUSIVE for item in self.judged if not item.is_sentinel
        )

    @property
    def unanswered(self) -> str | None:
        """What is no pass because nobody knows, in counts; None where every benchmark has an answer.

        A benchmark that is new has nothing to be compared with, and is no gap.
        """
        open_rows = sum(
            item.verdict.outcome is Outcome.INCONCLUSIVE
            and item.verdict.reason is not Reason.NEW_BENCHMARK
            and not item.is_sentinel
            for item in self.judged
        )
        gaps = (
            (len(self.failures), "failed"), (len(self.missing), "missing"), (open_rows, "inconclusive"),
        )  # fmt: skip
        said = ", ".join(f"{number} {word}" for number, word in gaps if number)
        if said:
            return said
        return None if self.judged else "nothing was measured"

    def with_verdicts(self, verdicts: Sequence[Verdict]) -> RunJudgement:
        """The same judgement with verdicts of another standing, matched by series."""
        by_series = {verdict.series: verdict for verdict in verdicts}
        return replace(
            self,
            judged=tuple(
                replace(item, verdict=by_series.get(item.point.series, item.verdict)) for item in self.judged
            ),
        )


def judge_evidence(evidence: Evidence, rules: Rules, *, judged_at: datetime) -> RunJudgement:
    """Judge every point of a run against its ancestors, and say what is missing."""
    by_series: dict[SeriesKey, list[SeriesPoint]] = defaultdict(list)
    for point in evidence.history:
        by_series[point.series].append(point)
    baselines = {
        point.series: _baseline_of(point, by_series[point.series], evidence, rules)
        for point in evidence.candidates
    }
    missing = missing_cases(evidence, runs=rules.general.pool_size)
    return RunJudgement(
        header=evidence.header,
        judged=judge_points(evidence.candidates, baselines, rules, judged_at=judged_at),
        failures=evidence.failures,
        missing=tuple(missing),
        baseline=describe_baselines(
            baselines[point.series] for point in evidence.candidates if SENTINEL not in point.tags
        ),
        last_measured=missing,
        never_measured=never_measured(evidence),
        renamed=renamed_cases(evidence),
        new_series=new_series(evidence, runs=rules.general.pool_size),
    )


def _baseline_of(
    point: SeriesPoint, own: Sequence[SeriesPoint], evidence: Evidence, rules: Rules
) -> Baseline | Doubt:
    """The baseline of a point from the evidence on its run."""
    policy = policy_for(point, rules)
    return strongest_baseline(
        point.header,
        choose_partner(point, evidence.paired, policy, evidence.paired_failures),
        choose=lambda: choose_baseline(
            point,
            own,
            evidence.line,
            policy,
            evidence.landmarks.get(point.series, NO_LANDMARKS),
        ),
        explain=lambda: explain_absence(point, evidence.history, evidence.line, policy),
    )


def strongest_baseline(
    header: RunHeader,
    partner: Baseline | Doubt | None,
    *,
    choose: Callable[[], Baseline | None],
    explain: Callable[[], Doubt],
) -> Baseline | Doubt:
    """The paired run, which needs no history; else the pool or single run; else why there is none.

    Args:
        header: of the run that is judged.
        partner: what ``choose_partner`` says.
        choose: looks through the history; asked only where the history is known.
        explain: says why nothing was found there.
    """
    if isinstance(partner, Baseline):
        return partner
    found = history_unknown(header) or choose()
    if isinstance(found, Baseline):
        return found
    return partner or found or explain()


def policy_for(point: SeriesPoint, rules: Rules) -> Policy:
    """The thresholds that decide about a point.

    A sentinel watches the machine for every benchmark: what is not worth a flag in one of them
    is no reason to look away here, and a glob that matches it by accident is none either.
    """
    return policy_by(point.series.case, point.tags, rules)


def policy_by(case: Case, tags: Sequence[str], rules: Rules) -> Policy:
    """As ``policy_for``, from the case of a point and its tags."""
    return replace(rules.general, flag_effect=0.0) if SENTINEL in tags else rules.of(case)


def judge_points(
    candidates: Iterable[SeriesPoint],
    baselines: Mapping[SeriesKey, Baseline | Doubt],
    rules: Rules,
    *,
    judged_at: datetime,
) -> tuple[JudgedPoint, ...]:
    """Judge the points of one run, each against its own baseline, by label.

    A sentinel that moved takes every verdict back; q-values are over the whole suite.
    """
    return tuple(_with_q_values(decide_points(candidates, baselines, rules, judged_at=judged_at)))


def decide_points(
    candidates: Iterable[SeriesPoint],
    baselines: Mapping[SeriesKey, Baseline | Doubt],
    rules: Rules,
    *,
    judged_at: datetime,
) -> list[JudgedPoint]:
    """As ``judge_points``, without q-values."""
    judged = [
        JudgedPoint(
            point=point,
            verdict=judge_point(point, baseline, policy, judged_at=judged_at),
            before=baseline.nearest if isinstance(baseline, Baseline) else None,
            policy=policy,
        )
        for point in sorted(candidates, key=lambda point: (point.series.case.label, point.series.id))
        for baseline, policy in ((baselines[point.series], policy_for(point, rules)),)
    ]
    return [_with_policy_named(item) for item in _void_if_machine_moved(judged, rules.general)]


def _with_policy_named(item: JudgedPoint) -> JudgedPoint:
    """Say beside the verdict by which thresholds other than the defaults it was decided."""
    if item.policy.note is None:
        return item
    message = with_policy_named(item.verdict.message, item.policy)
    return replace(item, verdict=replace(item.verdict, message=message))


def with_policy_named(message: str, policy: Policy) -> str:
    """A sentence, and by which thresholds other than the defaults it came to that."""
    return message if policy.note is None else f"{message}; judged by {policy.note}"


def describe_baselines(baselines: Iterable[Baseline | Doubt]) -> str:
    """The baseline that most points of a run share, in words."""
    words = sorted(describe(baseline) for baseline in baselines if isinstance(baseline, Baseline))
    return Counter(words).most_common(1)[0][0] if words else "no baseline"


def _void_if_machine_moved(judged: list[JudgedPoint], policy: Policy) -> list[JudgedPoint]:
    """Take every verdict back when a sentinel moved: then the machine did, not the code."""
    moved = [item for item in judged if item.is_sentinel and _moved(item.verdict, policy)]
    at_once = [item for item in moved if item.verdict.reason is not Reason.DRIFTED]
    if not moved:
        return judged
    said = ", ".join(
        f"{shown.visible(item.point.series.case.label)} {shown.change(item.verdict.effect or 0.0)}"
        for item in moved
    )
    message = (
        f"the machine moved, not the code: its own reference calls changed ({said}). "
        "Let it settle, look at its clocks and other processes, and measure again"
    )
    return [
        replace(
            item,
            verdict=replace(
                item.verdict,
                outcome=Outcome.INCONCLUSIVE,
                reason=Reason.MACHINE_MOVED,
                message=message,
                standing=Standing.NONE,
            ),
        )
        # A verdict that was inconclusive on its own account keeps its own reason and remedy; and a
        # machine that drifted itself speaks against drifts, and not against changes from run to run.
        if item.verdict.outcome is not Outcome.INCONCLUSIVE
        and (at_once or item.verdict.reason is Reason.DRIFTED)
        else item
        for item in judged
    ]


def _moved(verdict: Verdict, policy: Policy) -> bool:
    if verdict.outcome not in CHANGES or verdict.effect is None:
        return False
    return (
        verdict.baseline_kind in (BaselineKind.POOL, BaselineKind.ANCHOR)
        or abs(verdict.effect) >= policy.sentinel_effect
    )


def _with_q_values(judged: Sequence[JudgedPoint]) -> list[JudgedPoint]:
    """Add q-values over the suite; what is no test of it gets none."""
    p_values = {item.point.series: item.verdict.p_value or 0.0 for item in judged if item.is_test}
    q_values = dict(zip(p_values, benjamini_hochberg(list(p_values.values())), strict=True))
    return [
        replace(item, verdict=replace(item.verdict, q_value=q_values.get(item.point.series)))
        for item in judged
    ]
