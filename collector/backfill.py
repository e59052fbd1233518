"""Backfill: measure the commits of a range that have no run yet, the most telling first."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from collector.attempts import COMMIT_ERRORS, failed_run
from collector.checkout import refuse_unknown_suites, top_folder
from collector.errors import CollectorError
from store.errors import StoreError
from store.git import Repository
from store.git_ranges import commits_between

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from collector.attempts import Attempts, Machine
    from collector.run import Plan
    from store.records import Commit, Run


class Order(StrEnum):
    """Which missing commit comes first."""

    NEWEST = "newest"
    MIDPOINTS = "midpoints"


class Ended(StrEnum):
    """Why a backfill came to its end."""

    ALL_DONE = "all done"
    LIMIT = "--limit"
    TIME = "--for"
    INTERRUPTED = "an interrupt"
    MACHINE = "an error of the machine"
    STORE = "an error of the store or of git"


@dataclass(frozen=True)
class Outlook:
    """What there is to do.

    Attributes:
        commits: of the range, oldest first.
        measured: ids of those that have a number.
        failed: ids of those that were tried and gave none.
        todo: those to measure, in the order in which that is to happen.
    """

    commits: Sequence[Commit]
    measured: Collection[str]
    failed: Collection[str]
    todo: Sequence[Commit]


@dataclass
class Backfilled:
    """What was done; true whenever it is looked at.

    Attributes:
        runs: what was measured and kept, in the order in which that happened.
        elsewhere: commits that another call measured meanwhile.
        error: why measuring could not go on; None where it could, and where ``keep`` has said it.
    """

    runs: list[tuple[Commit, Run]] = field(default_factory=list)
    elsewhere: list[Commit] = field(default_factory=list)
    ended: Ended = Ended.ALL_DONE
    error: CollectorError | StoreError | None = None


def outlook(commits: Sequence[Commit], attempts: Attempts, *, order: Order, retry_failed: bool) -> Outlook:
    """Which commits of a range are to be measured, and in which order.

    Args:
        commits: oldest first.
        attempts: what the store holds.
        order: see ``newest`` and ``midpoints``.
        retry_failed: try those again that gave no number.
    """
    measured = {commit.sha for commit in commits if attempts.is_measured(commit.sha)}
    failed = {commit.sha for commit in commits if attempts.has_failed(commit.sha)}
    known = measured if retry_failed else measured | failed
    done = [commit.sha in known for commit in commits]
    places = newest(done) if order is Order.NEWEST else midpoints(done)
    return Outlook(commits, measured, failed, [commits[place] for place in places])


def newest(done: Sequence[bool]) -> list[int]:
    """The places that are not done, the last first."""
    return [place for place in range(len(done) - 1, -1, -1) if not done[place]]


def midpoints(done: Sequence[bool]) -> list[int]:
    """The places that are not done: both ends, then the middle of the largest gap, again and again.

    Of equal gaps the later comes first, and of two middles the earlier. A change is then
    bracketed after few measurements, wherever it lies.
    """
    if not done:
        return []
    ends = dict.fromkeys((len(done) - 1, 0))
    order = [end for end in ends if not done[end]]
    known = [place for place, is_done in enumerate(done) if is_done or place in ends]
    gaps = [(before - after, -after, before) for before, after in pairwise(known)]  # the largest comes first
    heapq.heapify(gaps)
    while gaps:
        _, minus_after, before = heapq.heappop(gaps)
        middle = (before - minus_after) // 2
        if middle == before:  # the largest gap holds nothing: neither do the others
            break
        order.append(middle)
        for left, right in ((before, middle), (middle, -minus_after)):
            heapq.heappush(gaps, (left - right, -right, left))
    return order


def measure_missing(
    todo: Sequence[Commit],
    measure: Callable[[Commit], Run],
    keep: Callable[[Run], bool],
    *,
    limit: int | None,
    budget_s: float | None,
    stopped: Callable[[], bool],
    turn: Callable[[Commit], AbstractContextManager[bool]],
    clock: Callable[[], float] = time.monotonic,
) -> Backfilled:
    """Measure one commit after the other, and keep each at once.

    Args:
        todo: the commits, the most wanted first.
        measure: measures one; a ``KeyboardInterrupt`` means that nothing was measured of it.
        keep: stores a run; whether it could. Where it could not, the next would fare no better.
        limit: at most so many commits; None for all.
        budget_s: none is begun that would not fit, going by the longest so far; None for no limit.
        stopped: whether somebody has asked to end between two commits.
        turn: entered around measuring and keeping a commit; False where it is measured already.
        clock: seconds from any beginning.
    """
    done = Backfilled()
    latest = math.inf if budget_s is None else clock() + budget_s
    longest = 0.0
    try:
        for commit in todo:
            done.ended = _before_a_commit(done, limit, stopped)
            if done.ended is not Ended.ALL_DONE:
                break
            with turn(commit) as wanted:
                started = clock()
                if not wanted:
                    done.elsewhere.append(commit)
                elif started + longest >= latest:
                    done.ended = Ended.TIME
                else:
                    done.ended = _measure_one(done, commit, measure, keep)
                    longest = max(longest, clock() - started)
            if done.ended is not Ended.ALL_DONE:
                break
    except KeyboardInterrupt:
        done.ended = Ended.INTERRUPTED
    except CollectorError as error:
        done.ended, done.error = Ended.MACHINE, error
    except StoreError as error:
        done.ended, done.error = Ended.STORE, error
    return done


def _before_a_commit(done: Backfilled, limit: int | None, stopped: Callable[[], bool]) -> Ended:
    """Why no other commit may be begun, or that it may."""
    if stopped():
        return Ended.INTERRUPTED
    return Ended.LIMIT if limit is not None and len(done.runs) >= limit else Ended.ALL_DONE


def _measure_one(
    done: Backfilled, commit: Commit, measure: Callable[[Commit], Run], keep: Callable[[Run], bool]
) -> Ended:
    """Measure a commit and keep it; why nothing may follow, or that it may."""
    run = measure(commit)
    if not keep(run):
        return Ended.STORE
    if run.header.interrupted:
        return Ended.INTERRUPTED
    done.runs.append((commit, run))
    return Ended.ALL_DONE


def attempt(plan: Plan, machine: Machine, commit: Commit, collect: Callable[[Plan], Run]) -> Run:
    """Measure a commit; where that is its own fault, the record of its failure.

    Raises:
        CollectorError: the machine cannot measure.
        KeyboardInterrupt: nothing was measured.
    """
    own = replace(plan, revision=commit.sha)
    started_at = datetime.now(UTC)
    try:
        return collect(own)
    except COMMIT_ERRORS as error:
        return failed_run(own, machine, error, started_at=started_at)


def to_judge(commits: Sequence[Commit], attempts: Attempts, judged: Collection[str]) -> list[str]:
    """Ids of the runs to judge, in the order of first parents.

    Those without a verdict, be it that they were measured just now or that an earlier call left
    them, and every later one of the range: what it was judged by has changed.

    Args:
        commits: of the range, oldest first.
        attempts: what the store holds, with what was measured now.
        judged: ids of runs that have a verdict.
    """
    chosen: list[str] = []
    changed = False
    for commit in commits:
        stored = [
            header.run_id
            for header in reversed(attempts.by_commit.get(commit.sha, ()))
            if header.run_id in attempts.numbers
        ]
        chosen += [run_id for run_id in stored if changed or run_id not in judged]
        changed = changed or bool(set(stored) - set(judged))
    return chosen


def suite_origins(plan: Plan, commits: Sequence[Commit]) -> Iterator[str]:
    """Where each commit's suites would come from, in words."""
    top = top_folder(plan.repository)
    repository = Repository(top)
    paths = [Path(text).resolve() for text in plan.suites]
    inside = [path.relative_to(top).as_posix() for path in paths if path.is_relative_to(top)]
    for commit in commits:
        if not plan.suites:
            yield "the built-in suite"
        elif not inside:
            yield "a suite outside the repository"
        elif plan.suite_from is not None:
            yield f"the suite of {plan.suite_from}"
        elif all(repository.has_path(commit.sha, path) for path in inside):
            yield "its own suite"
        elif all(path.exists() for path in paths):
            yield "a copy of the suite in this checkout, for it has none"
        else:
            yield "nothing: neither it nor this checkout has the suite"


def range_of(plan: Plan, text: str) -> list[Commit]:
    """The commits that ``OLD..NEW`` stands for, oldest first: those after OLD up to NEW, by first parents.

    Raises:
        StoreError: git does not know an end, or OLD is not on the line of NEW.
        CheckoutError: no commit has a suite that is asked for, and this checkout has it neither.
    """
    older, _, newer = text.partition("..")
    top = top_folder(plan.repository)
    commits = commits_between(Repository(top), older, newer or "HEAD")
    revisions = [commit.sha for commit in commits] if plan.suite_from is None else [plan.suite_from]
    refuse_unknown_suites(plan.suites, repository=top, revisions=revisions)
    return commits
