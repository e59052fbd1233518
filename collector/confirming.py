"""Measure again, in a fresh session, what a run flagged: the first way to settle a flag."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.checkout import top_folder
from collector.confirmation import Confirmation, choose, plan_again
from collector.errors import CollectorError
from collector.keeping import Kept, keep_whatever
from collector.paired import collect_pair
from collector.progress import Bar, Interrupts
from collector.run import collect_run
from store import shown
from store.database import DEFAULT_URL, Database
from store.errors import StoreError
from store.git import Repository
from store.sessions import short_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from collector.confirmation import Chosen
    from collector.run import Plan
    from store.records import Run, Verdict

_UNCOMMITTED = "Uncommitted code is never confirmed: commit it, and measure the commit."


@dataclass(frozen=True, kw_only=True)
class Request:
    """How a second session is asked for.

    Attributes:
        benchmarks: at most so many cases, the worst first.
        minutes: measuring ends after so many.
        against: the commit of the baseline where the first session was a pair.
        output: the bundle of the second session, or None.
        url: the store; None means the default one, or none at all where there is a bundle.
        say: told what is done.
    """

    benchmarks: int
    minutes: float
    against: str | None
    output: Path | None
    url: str | None
    say: Callable[[str], None]


class TimedInterrupts(Interrupts):
    """Ctrl-C, and the end of the time that measuring may take.

    Attributes:
        out_of_time: whether the measuring was ended for that.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self.out_of_time = False
        signal.signal(signal.SIGALRM, self._expire)
        signal.setitimer(signal.ITIMER_REAL, limit_s)

    def end_of_measuring(self) -> None:
        """From here on neither a person nor the clock ends anything."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        super().end_of_measuring()

    def _expire(self, number: int, frame: object) -> None:
        del number, frame
        if self._measuring:
            self._measuring = False
            self.out_of_time = True
            raise KeyboardInterrupt


def confirm(
    first: Run, verdicts: Sequence[Verdict] | None, plan: Plan, request: Request
) -> Confirmation | None:
    """Measure the flagged cases of a run once more, keep that run, and have both judged.

    What cannot be done leaves the first run as it is, with its flags.

    Args:
        first: the run, which is kept already.
        verdicts: on it; None where it was not judged.
        plan: how it was measured.
        request: how much may be measured, and where it goes.

    Returns:
        None where nothing is flagged.
    """
    chosen = choose(first, verdicts or (), limit=request.benchmarks)
    return second_session(first, chosen, verdicts or (), plan, request) if chosen.again else None


def unconfirmed(
    first: Run, verdicts: Sequence[Verdict], request: Request, *, interrupted: bool
) -> Confirmation | None:
    """What stays flagged because nobody wants a second session now; None where nothing is flagged.

    Args:
        first: the run.
        verdicts: on it.
        request: what would have been measured.
        interrupted: a person ended the command; otherwise it was asked for with ``--no-confirm``.
    """
    chosen = choose(first, verdicts, limit=request.benchmarks)
    if not chosen.again:
        return None
    found = Confirmation(
        first_run_id=first.header.run_id, chosen=chosen, verdicts=verdicts, interrupted=interrupted
    )
    if _commit_of(first) is None:
        return replace(found, missing=_UNCOMMITTED, repeatable=False)
    why = "Interrupted before the second session." if interrupted else "No second session (--no-confirm)."
    return replace(found, missing=why)


def second_session(
    first: Run, chosen: Chosen, verdicts: Sequence[Verdict], plan: Plan, request: Request
) -> Confirmation:
    """As ``confirm``, for cases that were chosen already."""
    found = Confirmation(first_run_id=first.header.run_id, chosen=chosen, verdicts=verdicts)
    commit_sha = _commit_of(first)
    if commit_sha is None:
        return replace(found, missing=_UNCOMMITTED, repeatable=False)
    interrupts = TimedInterrupts(60 * request.minutes)
    bar = Bar(interrupts)
    try:
        revision = _revision(plan, commit_sha, bar)
        runs = _measure(first, plan_again(plan, revision, first, chosen.again), request, bar)
    except (CollectorError, StoreError) as error:
        problem = Kept(problem=f"nothing was confirmed, for the second session failed: {error}")
        return replace(found, missing="The second session failed.", kept=(problem,))
    except KeyboardInterrupt:
        said = f"{_ended(interrupts, request)} before its first window was finished."
        return replace(found, missing=said, interrupted=not interrupts.out_of_time)
    finally:
        interrupts.end_of_measuring()
        bar.close()
    kept = [
        keep_whatever(run, output=_beside(request, run), url=request.url, say=request.say) for run in runs
    ]
    again, missing = runs[-1], None
    if again.header.interrupted:
        most = max((m.interval.windows for m in again.measurements), default=0)
        passes = shown.count(again.header.passes, "window")
        missing = f"{_ended(interrupts, request)}: {most} of {passes} a benchmark are there."
    now, problem = _verdicts_now(first, verdicts, request)
    return replace(
        found,
        again=again,
        verdicts=now,
        kept=(*kept, problem),
        judged=kept[-1].verdicts,
        missing=missing,
        interrupted=again.header.interrupted and not interrupts.out_of_time,
    )


def _commit_of(run: Run) -> str | None:
    """The commit that holds the code of a run; None where none does."""
    return None if run.header.dirty else run.header.commit_sha


def _measure(first: Run, plan: Plan, request: Request, bar: Bar) -> list[Run]:
    """The second session: its run, behind that of its baseline where it is a pair."""
    bar.note(
        f"measuring what run {short_run(first.header.run_id)} flagged again, in a fresh session "
        "(--no-confirm does without)"
    )
    if request.against is None:
        return [_linked(collect_run(plan, bar), first)]
    pair = collect_pair(plan, request.against, bar)
    return [pair.baseline, _linked(pair.candidate, first)]


def _linked(run: Run, first: Run) -> Run:
    return replace(run, header=replace(run.header, confirms_run_id=first.header.run_id))


def _revision(plan: Plan, commit_sha: str, bar: Bar) -> str:
    """What to measure so that it is the first session's code.

    The checkout is measured as it stands, with whatever was built in it, while it is still that
    commit without changes; else the commit gets a worktree of its own. Measuring itself may have
    left files in it.
    """
    if plan.revision != "HEAD":
        return commit_sha
    repository = Repository(top_folder(plan.repository))
    if repository.head() == commit_sha and not repository.is_dirty():
        return "HEAD"
    bar.note(f"the checkout has changed: measuring {shown.short(commit_sha)} in a worktree of its own")
    return commit_sha


def _beside(request: Request, run: Run) -> Path | None:
    """The bundle of a run of the second session: the baseline of a pair lies beside the candidate."""
    output = request.output
    if output is None or run.header.confirms_run_id is not None:
        return output
    return output.with_name(f"baseline-{output.name}")


def _ended(interrupts: TimedInterrupts, request: Request) -> str:
    if interrupts.out_of_time:
        return f"The second session was ended after {request.minutes:g} minutes (--confirm-minutes)"
    return "The second session was interrupted"


def _verdicts_now(
    first: Run, verdicts: Sequence[Verdict], request: Request
) -> tuple[Sequence[Verdict], Kept]:
    """The verdicts on the first run after the second was judged, where there is a store."""
    if request.output is not None and request.url is None:
        return verdicts, Kept()
    try:
        return load_verdicts(Database(request.url or DEFAULT_URL), run_ids=[first.header.run_id]), Kept()
    except StoreError as error:
        return verdicts, Kept(problem=f"the verdicts on the first run could not be read again: {error}")
