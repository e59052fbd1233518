"""Bisection: which commit of a line changed a benchmark, asked of paired runs. Pure.

Every commit is compared with the same good one, so that each answer stays true whatever
the next one is: the search keeps a commit that shows the change and an earlier one that
does not, and halves what lies between. The last word has the commit beside its own parent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from store import shown
from store.records import Outcome, Reason, Timer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.records import Commit, SeriesKey, Verdict

MORE_PASSES = 2  # times that an unsure comparison is made again, each with twice the passes
CHANGES = (Outcome.REGRESSED, Outcome.IMPROVED)
# Measuring again may help with these; anything else would be the same again.
_PASSING = (Reason.MACHINE_MOVED, Reason.TOO_FEW_WINDOWS, Reason.TIER_TOO_LOW, Reason.BASELINE_TIER_TOO_LOW)


class Says(StrEnum):
    """What a comparison with the good commit says about the change that is looked for."""

    CHANGED = "changed"
    SAME = "same"
    UNSURE = "unsure"
    UNTESTABLE = "untestable"


class Finding(StrEnum):
    """How a search ended."""

    FOUND = "found"  # one commit, and beside its parent it shows the change
    NARROWED = "narrowed"  # one of several: those between could not be measured
    UNPROVEN = "unproven"  # one commit, and beside its parent alone it does not show it
    NO_CHANGE = "no-change"  # good and bad do not differ in the first place
    UNCLEAR = "unclear"  # good and bad could not be compared
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Answer:
    """One comparison of two commits on the benchmark.

    Attributes:
        commit: the candidate; ``base`` is what it was measured beside.
        passes: passes on either side.
        verdict: on the series; None where the candidate gave no number.
        reason: why there is none, or None.
        run_ids: the candidate's run and the baseline's, as far as there are any.
        reused: it was measured by an earlier call.
        others: labels of other cases that changed, where no series was asked for.
    """

    commit: Commit
    base: Commit
    passes: int
    verdict: Verdict | None
    reason: str | None = None
    run_ids: tuple[str, ...] = ()
    reused: bool = False
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A comparison and what it was taken to say."""

    answer: Answer
    says: Says


@dataclass
class Search:
    """A search along one line; true whenever it is looked at.

    Attributes:
        good: shows no change.
        line: the commits after it, oldest first; the last one shows the change.
        whole: the last beside the good one.
        steps: all comparisons, in the order in which they were made.
        candidates: the commits of which one made the change, oldest first.
        proof: the commit found beside its parent.
        inside: searches in the branches that the commit merged.
    """

    good: Commit
    line: Sequence[Commit]
    finding: Finding = Finding.UNCLEAR
    whole: Step | None = None
    steps: list[Step] = field(default_factory=list)
    candidates: Sequence[Commit] = ()
    proof: Step | None = None
    inside: list[Search] = field(default_factory=list)

    @property
    def skipped(self) -> list[Step]:
        """Comparisons that told nothing."""
        return [step for step in self.steps if step.says in (Says.UNTESTABLE, Says.UNSURE)]

    @property
    def found(self) -> Commit | None:
        """The commit, where there is one."""
        one = self.finding in (Finding.FOUND, Finding.UNPROVEN)
        return self.candidates[0] if one else None

    @property
    def is_partial(self) -> bool:
        """Whether what the commit did is less than what happened between good and bad."""
        whole = None if self.whole is None else self.whole.answer.verdict
        part = None if self.proof is None else self.proof.answer.verdict
        if self.finding is not Finding.FOUND or whole is None or part is None:
            return False
        ends = (whole.effect_low, whole.effect_high, part.effect_low, part.effect_high)
        if any(end is None for end in ends):
            return False
        whole_low, whole_high, part_low, part_high = (end or 0.0 for end in ends)
        return part_high < whole_low if whole.outcome is Outcome.REGRESSED else part_low > whole_high


class Bisection:
    """Searches lines of commits for the one that changed a benchmark.

    Args:
        compare: measures a commit beside another, or remembers that. Raises ``KeyboardInterrupt``
            to end the search.
        passes: passes of a first comparison.
        note: told what is done next.
    """

    def __init__(
        self,
        compare: Callable[[Commit, Commit, int, SeriesKey | None], Answer],
        *,
        passes: int,
        note: Callable[[str], None],
    ) -> None:
        self._compare = compare
        self._passes = passes
        self._note = note
        self._series: SeriesKey | None = None
        self._sought: Verdict | None = None

    @property
    def series(self) -> SeriesKey | None:
        """What was followed: chosen by the first comparison, which shows the change."""
        return self._series

    def search(self, good: Commit, line: Sequence[Commit]) -> Search:
        """Find the commit of a line that made the change.

        Args:
            good: the commit before the line.
            line: oldest first; at least one.
        """
        search = Search(good, line, candidates=line)
        try:
            self._run(search)
        except KeyboardInterrupt:
            search.finding = Finding.INTERRUPTED
        return search

    def _run(self, search: Search) -> None:
        search.whole = self._settled(search, search.line[-1], search.good)
        verdict = search.whole.answer.verdict
        if search.whole.says is not Says.CHANGED or verdict is None:
            same = search.whole.says is Says.SAME
            search.finding = Finding.NO_CHANGE if same else Finding.UNCLEAR
            return
        self._series, self._sought = verdict.series, verdict
        same_at, changed_at = self._halve(search)
        search.candidates = search.line[same_at + 1 : changed_at + 1]
        if len(search.candidates) > 1:
            search.finding = Finding.NARROWED
            return
        commit = search.candidates[0]
        if same_at < 0:  # its parent is the good commit
            search.proof = next(
                step
                for step in reversed(search.steps)
                if step.answer.commit == commit and step.says is Says.CHANGED
            )
        else:
            search.proof = self._settled(search, commit, search.line[same_at])
        search.finding = Finding.FOUND if search.proof.says is Says.CHANGED else Finding.UNPROVEN

    def _halve(self, search: Search) -> tuple[int, int]:
        """Places of the last commit that is the same and of the first that changed; -1 is the good one."""
        same_at, changed_at = -1, len(search.line) - 1
        told_nothing: set[int] = set()
        while places := [place for place in range(same_at + 1, changed_at) if place not in told_nothing]:
            search.candidates = search.line[same_at + 1 : changed_at + 1]
            middle = min(places, key=lambda place: abs(2 * place - same_at - changed_at))
            step = self._settled(search, search.line[middle], search.good)
            if step.says is Says.CHANGED:
                changed_at = middle
            elif step.says is Says.SAME:
                same_at = middle
            else:
                told_nothing.add(middle)
        return same_at, changed_at

    def _settled(self, search: Search, commit: Commit, base: Commit) -> Step:
        """Compare, and again with more passes as long as the answer is unsure."""
        passes = self._passes
        self._note(
            f"{shown.count(len(search.candidates), 'commit')} to choose from: {shown.short(commit.sha)} "
            f"beside {shown.short(base.sha)}, {passes} passes each"
        )
        for again in range(MORE_PASSES + 1):
            answer = self._compare(commit, base, passes, self._series)
            step = Step(answer, says_of(answer, self._sought))
            search.steps.append(step)
            if step.says is not Says.UNSURE or again == MORE_PASSES:
                break
            passes *= 2
            self._note(f"that was not sure enough: again with {passes} passes each")
        return step


def says_of(answer: Answer, sought: Verdict | None) -> Says:
    """What a comparison says about a change.

    Args:
        answer: the comparison.
        sought: the verdict on the whole range; None where the answer is the one that gives it.
    """
    verdict = answer.verdict
    if verdict is None:
        return Says.UNTESTABLE
    if verdict.outcome is Outcome.INCONCLUSIVE:
        passing = verdict.reason in _PASSING and verdict.series.timer is not Timer.WALL
        return Says.UNSURE if passing else Says.UNTESTABLE
    if sought is None:
        return Says.CHANGED if verdict.outcome in CHANGES else Says.SAME
    if verdict.outcome in CHANGES:
        return Says.CHANGED if verdict.outcome is sought.outcome else Says.SAME
    return Says.SAME if _would_have_shown(verdict, sought) else Says.UNSURE


def _would_have_shown(verdict: Verdict, sought: Verdict) -> bool:
    """Whether a comparison without a change was sharp enough for the one that is looked for."""
    if verdict.smallest_seen is None or sought.effect is None:
        return False
    return math.log1p(verdict.smallest_seen) <= abs(math.log1p(sought.effect))
