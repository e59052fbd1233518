"""The comparisons of a bisection: paired runs that are measured once, kept, and found again."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from collector.attempts import COMMIT_ERRORS, failed_run, has_suite_of
from collector.bisect import CHANGES, Answer
from collector.errors import BaselineError, CollectorError
from collector.loaded import SENTINEL_TAG
from collector.run import choices_of, suites_of
from store import shown
from store.records import BISECTION, BaselineKind, Outcome, PairedRole, Reading, Reason
from store.runs import load_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.attempts import Attempts, Machine
    from collector.bisect_names import Names
    from collector.keeping import Kept
    from collector.paired import Pair
    from collector.run import Plan
    from store.database import Database
    from store.records import Commit, Failure, Run, RunHeader, SeriesKey, Verdict


def study_id_of(plan: Plan, machine: Machine, repository: str, good: str, bad: str) -> str:
    """The same for the same question on the same machine."""
    parts = (
        repository, good, bad, *plan.only, *suites_of(plan), plan.suite_from or "", machine.gpu_uuid,
        machine.timer, machine.clock_regime, machine.environment,
    )  # fmt: skip
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"kernelwatch-bisect:{'|'.join(parts)}"))


@dataclass
class PairedCompare:
    """Compares two commits by a paired run, from the store where it is there already.

    Attributes:
        plan: what to measure; its globs are those of ``names``.
        names: which benchmarks are meant.
        machine: where.
        database: where runs are kept.
        attempts: what the store held at the beginning.
        study_id: marks the runs.
        retry_failed: try commits again that gave no number before.
        collect: measures a pair: the candidate's plan and the baseline's commit.
        keep: stores a run, and has it judged where asked.
        judge: has a stored run judged.
    """

    plan: Plan
    names: Names
    machine: Machine
    database: Database
    attempts: Attempts
    study_id: str
    retry_failed: bool
    collect: Callable[[Plan, str], Pair]
    keep: Callable[[Run, bool], Kept]
    judge: Callable[[str], Kept]

    def __call__(self, commit: Commit, base: Commit, passes: int, series: SeriesKey | None) -> Answer:
        """Compare a commit with another.

        Args:
            commit: the candidate.
            base: what it is measured beside.
            passes: on either side; a stored pair of as many or more will do.
            series: what to answer about; None for the one that changed most.

        Raises:
            CollectorError: the machine cannot measure, or a run could not be kept or judged.
            StoreError: the store cannot be read.
            KeyboardInterrupt: somebody wants to end it.
        """
        stored = self._stored(commit, base, passes)
        if stored is not None:
            verdicts = load_verdicts(self.database, run_ids=[stored.run_id]) or _verdicts(
                self.judge(stored.run_id)
            )
            runs = (
                load_run(self.database, stored.run_id),
                load_run(self.database, stored.paired_with or ""),
            )
            return self._answer(runs, verdicts, (commit, base), series, reused=True)
        if not self.retry_failed and self.attempts.has_failed(commit.sha):
            failed = load_run(self.database, self.attempts.by_commit[commit.sha][0].run_id)
            return self._answer((failed, None), [], (commit, base), series, reused=True)
        if not self.retry_failed and self.attempts.has_failed(base.sha):
            failed = load_run(self.database, self.attempts.by_commit[base.sha][0].run_id)
            return self._without_base(failed, (commit, base), series, reused=True)
        return self._measure(commit, base, passes, series)

    def _measure(self, commit: Commit, base: Commit, passes: int, series: SeriesKey | None) -> Answer:
        plan = replace(self.plan, revision=commit.sha, passes=passes)
        started_at = datetime.now(UTC)
        try:
            pair = self.collect(plan, base.sha)
        except BaselineError as error:
            failed = self._keep_failed(replace(plan, revision=base.sha), error.why, started_at)
            return self._without_base(failed, (commit, base), series)
        except COMMIT_ERRORS as error:
            failed = self._keep_failed(plan, error, started_at)
            return self._answer((failed, None), [], (commit, base), series)
        _refuse_unkept(self.keep(self._marked(pair.baseline), False))
        interrupted = pair.candidate.header.interrupted
        kept = self.keep(self._marked(pair.candidate), not interrupted)
        if interrupted:
            raise KeyboardInterrupt
        runs = (pair.candidate, pair.baseline)
        return self._answer(runs, _verdicts(kept), (commit, base), series)

    def _keep_failed(self, plan: Plan, error: CollectorError, started_at: datetime) -> Run:
        failed = self._marked(failed_run(plan, self.machine, error, started_at=started_at))
        _refuse_unkept(self.keep(failed, False))
        return failed

    def _stored(self, commit: Commit, base: Commit, passes: int) -> RunHeader | None:
        """The stored candidate's run with the most passes, where it has enough."""
        choices = choices_of(self.plan)
        bases = {header.run_id for header in self.attempts.by_commit.get(base.sha, ())}
        found = [
            header
            for header in self.attempts.by_commit.get(commit.sha, ())
            if header.paired_role is PairedRole.CANDIDATE
            and header.paired_with in bases
            and header.passes >= passes
            and has_suite_of(choices, header)
        ]
        return max(found, key=lambda header: header.passes, default=None)

    def _marked(self, run: Run) -> Run:
        context = {**run.header.context, BISECTION: Reading(value=self.study_id)}
        return replace(run, header=replace(run.header, context=context))

    def _answer(
        self,
        runs: tuple[Run, Run | None],
        verdicts: Sequence[Verdict],
        commits: tuple[Commit, Commit],
        series: SeriesKey | None,
        *,
        reused: bool = False,
    ) -> Answer:
        """What a judged candidate's run says about a series, beside the baseline's.

        A verdict that had to go by other runs, since the baseline gave no number, is no answer, and
        neither is one that calls the benchmark new, since the baseline lacks it. The run may hold more
        than was asked about, and the series under an older name.
        """
        run, partner = runs
        own = {run.series_key(m) for m in run.measurements if SENTINEL_TAG not in m.tags}
        about = [
            v
            for v in verdicts
            if v.series in own
            and self.names.means(v.series.case)
            and (series is None or self.names.alike(series, v.series))
            and (v.baseline_kind is BaselineKind.PAIRED or v.outcome is Outcome.INCONCLUSIVE)
            and v.reason is not Reason.NEW_BENCHMARK
        ]
        verdict = max(about, key=_weight, default=None)
        others = sorted(v.series.case.label for v in about if v is not verdict and v.outcome in CHANGES)
        return Answer(
            commit=commits[0],
            base=commits[1],
            passes=run.header.passes,
            verdict=verdict,
            reason=None if verdict is not None else self._why_none(run, partner, series),
            run_ids=tuple(each.header.run_id for each in runs if each is not None),
            reused=reused,
            others=tuple(others),
        )

    def _without_base(
        self, failed: Run, commits: tuple[Commit, Commit], series: SeriesKey | None, *, reused: bool = False
    ) -> Answer:
        """What a commit says where the one beside it gave no number."""
        return Answer(
            commit=commits[0],
            base=commits[1],
            passes=failed.header.passes,
            verdict=None,
            reason=self._why_none(None, failed, series),
            run_ids=(failed.header.run_id,),
            reused=reused,
        )

    def _why_none(self, run: Run | None, partner: Run | None, series: SeriesKey | None) -> str:
        failure = None if run is None else self._failure(run, series)
        if failure is not None:
            return _said(failure)
        failure = None if partner is None else self._failure(partner, series)
        if failure is not None and partner is not None:
            return f"{shown.short(partner.header.commit_sha)} beside it gave no number: {_said(failure)}"
        return (
            "one of the two commits does not have the benchmark, under this name or one that `renamed_from` "
            "gives it: --suite-from REV measures both with the suite of one revision"
        )

    def _failure(self, run: Run, series: SeriesKey | None) -> Failure | None:
        """The failure of the series, or of a whole suite, or any."""
        today = self.names.renames.case
        own = [f for f in run.failures if series and f.case and today(f.case) == today(series.case)]
        whole = [failure for failure in run.failures if failure.case is None]
        return next(iter([*own, *whole, *run.failures]), None)


def _refuse_unkept(kept: Kept) -> None:
    if kept.problem is not None:
        raise CollectorError(kept.problem)


def _verdicts(kept: Kept) -> Sequence[Verdict]:
    _refuse_unkept(kept)
    return kept.verdicts or ()


def _weight(verdict: Verdict) -> tuple[bool, float]:
    """The larger change first; what changed before what did not."""
    return verdict.outcome in CHANGES, abs(verdict.effect or 0.0)


def _said(failure: Failure) -> str:
    return shown.one_line(f"{failure.kind}: {failure.message}")
