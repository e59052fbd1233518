"""A paired run: two commits measured in one session, their passes taking turns A B B A.

Whatever the machine does while they are measured meets both sides alike, so that their ratio
is known better than two runs of different hours could tell it. The rule by which a pair is
judged, and why, is in docs/decisions/0006-paired-runs.md.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from collector.attempts import COMMIT_ERRORS
from collector.checkout import top_folder
from collector.clock_guard import clocks_as_asked, undo_left_lock
from collector.errors import BaselineError
from collector.loaded import SENTINEL_TAG
from collector.run import (
    announce,
    deepen_as_asked,
    gpu_lock,
    history_of,
    open_session,
    refuse_empty,
    refuse_nothing,
    run_of,
)
from store.git import Repository
from store.records import PairedRole, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from collector.run import Plan, Watcher
    from collector.session import Collected, Session
    from store.git import MeasuredHistory
    from store.records import Case


@dataclass(frozen=True)
class Pair:
    """The two runs of one session.

    Attributes:
        against: the baseline's revision as the user wrote it.
    """

    candidate: Run
    baseline: Run
    against: str

    @property
    def new(self) -> list[Case]:
        """Cases that the candidate alone knows."""
        return sorted(_cases(self.candidate) - _cases(self.baseline))

    @property
    def missing(self) -> list[Case]:
        """Cases that the baseline alone knows."""
        return sorted(_cases(self.baseline) - _cases(self.candidate))


@dataclass(frozen=True)
class _Side:
    """One commit of the pair, laid out and loaded.

    Attributes:
        blame: entered around what its code may fail in, so that the error says whose it is.
    """

    plan: Plan
    history: MeasuredHistory
    session: Session
    blame: Callable[[], AbstractContextManager[None]]


def collect_pair(plan: Plan, against: str, watcher: Watcher) -> Pair:
    """Measure two revisions in turn.

    Either has a worktree and a worker host of its own, and its own suites where it has them. A
    benchmark that fails on one side costs that side alone. An interrupt keeps the passes
    that both sides have finished.

    Args:
        plan: what to measure, as for a plain run; its revision is the candidate.
        against: revision of the baseline. Even ``HEAD`` means the commit, without the
            changes that the checkout may hold.
        watcher: told how it goes.

    Raises:
        BaselineError: the baseline's code cannot be laid out, or brings its worker down.
        CollectorError: nothing could be measured of the candidate, for the reason given.
        StoreError: git does not know one of the revisions.
        KeyboardInterrupt: it came before the first pass of both was finished.
    """
    started_at = datetime.now(UTC)
    seed = secrets.randbits(32) if plan.seed is None else plan.seed
    deepen_as_asked(plan)
    repository = Repository(top_folder(plan.repository))
    base_sha = repository.resolve(repository.base(against))
    base_plan = replace(plan, revision=base_sha, traces=None)  # traces are of the candidate
    with contextlib.ExitStack() as stack:
        candidate = _open(stack, plan)
        with _blaming(base_sha):
            baseline = _open(stack, base_plan, blame=lambda: _blaming(base_sha))
        stack.enter_context(gpu_lock(candidate.session.loaded.gpu_uuid, watcher))
        _get_ready(candidate, baseline, watcher)
        with clocks_as_asked(candidate.session, plan, watcher):
            _tell_about_clocks(candidate.session.collected, baseline.session.collected)
            interrupted = _take_turns(candidate, baseline, seed, watcher)
    runs = [
        run_of(
            side.session, side.plan, side.history, started_at=started_at, seed=seed, interrupted=interrupted
        )
        for side in (candidate, baseline)
    ]
    refuse_nothing(runs[0])
    return _linked(*runs, against=against)


@contextlib.contextmanager
def _blaming(base_sha: str) -> Iterator[None]:
    """What a commit brings on itself is said of the baseline, so that nobody takes it for the candidate's."""
    try:
        yield
    except COMMIT_ERRORS as error:
        raise BaselineError(base_sha, error) from error


def _open(
    stack: contextlib.ExitStack,
    plan: Plan,
    blame: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> _Side:
    history = history_of(plan)
    return _Side(plan, history, stack.enter_context(open_session(plan, history)), blame)


def _get_ready(candidate: _Side, baseline: _Side, watcher: Watcher) -> None:
    """Prove that both sides can be measured, and say what is unusual about them."""
    refuse_empty(candidate.session.loaded, candidate.plan)
    undo_left_lock(candidate.session, watcher)
    for side in (candidate, baseline):
        with side.blame():
            side.session.probe()
        side.session.step_aside()
        announce(side.session, watcher)
    baseline.session.share_pacing(candidate.session)
    if all(SENTINEL_TAG in case.tags for case in baseline.session.loaded.known.values()):
        watcher.note(
            "no benchmark of the suites could be loaded at the baseline's commit: "
            "the candidate is measured with nothing beside it"
        )


def _tell_about_clocks(source: Collected, other: Collected) -> None:
    """What was proven about the clocks of the one GPU holds for both sides."""
    other.context.update(
        {name: reading for name, reading in source.context.items() if name.startswith("clocks.")}
    )


def _take_turns(candidate: _Side, baseline: _Side, seed: int, watcher: Watcher) -> bool:
    """Run all passes of both, A B B A; returns whether they were interrupted."""
    sides = (candidate, baseline)
    watcher.started(sum(len(side.session.loaded.cases) for side in sides), candidate.plan.passes)
    finished = 0
    try:
        for pass_index in range(candidate.plan.passes):
            for side in sides if pass_index % 2 == 0 else reversed(sides):
                with side.blame():
                    side.session.run_pass(pass_index, seed, watcher.window_done)
                side.session.step_aside()
            finished = pass_index + 1
        watcher.measured()
    except KeyboardInterrupt:
        for side in sides:
            _keep_passes(side.session.collected, finished)
        return True
    return False


def _keep_passes(collected: Collected, finished: int) -> None:
    """Leave out the windows of a pass that only one side, or neither, came to the end of."""
    for key, windows in list(collected.windows.items()):
        kept = [window for window in windows if window["pass_index"] < finished]
        if kept:
            collected.windows[key] = kept
        else:
            del collected.windows[key]


def _linked(candidate: Run, baseline: Run, *, against: str) -> Pair:
    """The runs, each with the other's id and its own role."""
    return Pair(
        candidate=_with_partner(candidate, baseline.header.run_id, PairedRole.CANDIDATE),
        baseline=_with_partner(baseline, candidate.header.run_id, PairedRole.BASELINE),
        against=against,
    )


def _with_partner(run: Run, partner: str, role: PairedRole) -> Run:
    return replace(run, header=replace(run.header, paired_with=partner, paired_role=role))


def _cases(run: Run) -> set[Case]:
    """What a run has a number for, or a failure of; sentinels are no part of a suite."""
    measured = {m.case for m in run.measurements if SENTINEL_TAG not in m.tags}
    return measured | {failure.case for failure in run.failures if failure.case is not None}
