"""The command ``collect backfill``: measure the commits of a range that have no run yet."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from collector.attempts import earlier_attempts, has_number, survey
from collector.backfill import (
    Ended,
    Order,
    attempt,
    measure_missing,
    outlook,
    range_of,
    suite_origins,
    to_judge,
)
from collector.backfill_report import backfill_json, backfill_text, outlook_json, outlook_text, summary
from collector.checkout import top_folder
from collector.claims import hold, lock_path
from collector.errors import CollectorError
from collector.exits import EXIT_INTERRUPTED, EXIT_NOTHING, give_up
from collector.keeping import judge_stored, keep_whatever
from collector.options import choosing, measuring, merged, plan_of, refuse_run_only
from collector.progress import Bar, Interrupts, Notes
from collector.run import collect_run, deepen_as_asked
from store import shown
from store.coverage import judged_runs
from store.database import DEFAULT_URL, Database
from store.errors import StoreError, StoreMissing
from store.git import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.attempts import Machine
    from collector.backfill import Backfilled, Outlook
    from collector.run import Plan
    from store.records import Commit, Run, Verdict

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_UNITS_S = (3600, 60, 1)


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """A length of time such as ``2h``, ``90m`` or ``1h30m``, in seconds.

    Raises:
        BadParameter: it is none.
    """
    if value is None:
        return None
    found = _DURATION.fullmatch(value)
    parts = found.groups(default="0") if found else ()
    seconds = sum(int(part) * unit for part, unit in zip(parts, _UNITS_S, strict=False))
    if seconds == 0:
        raise click.BadParameter(
            f"{value!r} is no length of time: write 2h, 90m or 1h30m", ctx=context, param=parameter
        )
    return float(seconds)


def _range(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Two revisions as git writes them: ``v1.4..main``."""
    older, dots, newer = value.partition("..")
    if not older or not dots or newer.startswith("."):
        raise click.BadParameter(
            f"{value!r} is no range: write OLD..NEW, such as v1.4..HEAD", ctx=context, param=parameter
        )
    return value


@click.command("backfill")
@click.argument("commits", metavar="OLD..NEW", callback=_range)
@choosing
@measuring
@click.option(
    "--order",
    type=click.Choice([order.value for order in Order]),
    default=Order.MIDPOINTS.value,
    show_default=True,
    help="Which comes first: the newest, or the middle of the largest gap.",
)
@click.option("--limit", type=click.IntRange(min=1), default=None, help="Measure at most so many commits.")
@click.option(
    "--for",
    "budget_s",
    callback=duration,
    metavar="DURATION",
    default=None,
    help="Begin no commit that would end after 2h, 90m ...",
)
@click.option("--retry-failed", is_flag=True, help="Try commits again that gave no number before.")
@click.option(
    "--dry-run", is_flag=True, help="Say what would be measured, and with which suite; measure nothing."
)
@click.pass_context
def backfill(context: click.Context, /, **own: Any) -> None:
    """Measure the commits after OLD up to NEW that have no run here yet.

    Commits are those of the line of first parents. One that gives no number is remembered as
    failed. Whatever was measured is judged at the end, oldest commit first. Calling it again goes
    on where it ended. Exit codes: 0 fine, 2 usage, 3 nothing could be measured, 130 interrupted.
    """
    options = merged(context, own)
    refuse_run_only(options, "collect backfill", measures_named_commits=True)
    plan = plan_of(options)
    database = Database(options["url"] or DEFAULT_URL)
    try:
        deepen_as_asked(plan)
        commits = range_of(plan, options["commits"])
        machine = survey(plan, Notes())
        repository = Repository(top_folder(plan.repository)).name()
        attempts = earlier_attempts(database, repository, plan, machine)
        ahead = outlook(
            commits, attempts, order=Order(options["order"]), retry_failed=options["retry_failed"]
        )
        if options["dry_run"]:
            _tell_outlook(options, ahead, machine, suite_origins(plan, ahead.todo))
            return
        _say(summary(ahead, machine))
        _work(options, _Task(plan, database, repository, machine, ahead))
    except (CollectorError, StoreError) as error:
        give_up(error)
    except KeyboardInterrupt:
        _say("interrupted before anything was measured")
        sys.exit(EXIT_INTERRUPTED)


def _tell_outlook(options: dict[str, Any], ahead: Outlook, machine: Machine, origins: Iterator[str]) -> None:
    if options["output_format"] == "json":
        click.echo(json.dumps(outlook_json(ahead, machine, origins), indent=2, allow_nan=False))
    else:
        click.echo(outlook_text(ahead, machine, origins))


@dataclass(frozen=True)
class _Task:
    """What to do, and where."""

    plan: Plan
    database: Database
    repository: str
    machine: Machine
    ahead: Outlook


def _work(options: dict[str, Any], task: _Task) -> None:
    """Measure, judge, print, and leave with the exit code that tells what happened."""
    keeper = _Keeper(task.database)
    done = measure_missing(
        task.ahead.todo,
        lambda commit: _measure(task, commit, keeper),
        keeper.keep,
        turn=lambda commit: _turn(task, commit, keeper, retry_failed=options["retry_failed"]),
        limit=options["limit"],
        budget_s=options["budget_s"],
        stopped=lambda: keeper.interrupts.asked,
    )
    report = (task.ahead, task.machine, done, _judge(task, done, keeper))
    if options["output_format"] == "json":
        click.echo(json.dumps(backfill_json(*report), indent=2, allow_nan=False))
    else:
        click.echo(backfill_text(*report))
    problems = [*keeper.problems, *([] if done.error is None else [str(done.error)])]
    for problem in problems:
        _say(f"Error: {problem}")
    if keeper.interrupts.asked or done.ended is Ended.INTERRUPTED:
        sys.exit(EXIT_INTERRUPTED)
    if problems or (done.runs and not any(has_number(run) for _, run in done.runs)):
        sys.exit(EXIT_NOTHING)


class _Keeper:
    """Stores runs, and remembers what went wrong and who interrupted."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.interrupts = Interrupts()
        self.problems: list[str] = []

    def keep(self, run: Run) -> bool:
        kept = keep_whatever(run, output=None, url=self.database.url, say=_say, judged=False)
        if kept.problem is not None:
            self.problems.append(kept.problem)
        return kept.problem is None

    def judge(self, run_id: str) -> Sequence[Verdict]:
        kept = judge_stored(run_id, self.database)
        if kept.problem is not None:
            self.problems.append(kept.problem)
        return kept.verdicts or ()


@contextlib.contextmanager
def _turn(task: _Task, commit: Commit, keeper: _Keeper, *, retry_failed: bool) -> Iterator[bool]:
    """Keep two backfills of one device from measuring one commit twice: one has the turn, and looks again.

    Whether the commit is still to be measured.
    """
    keeper.interrupts = Interrupts()
    busy = "another backfill is measuring a commit on this device; waiting for its turn to end"
    with hold(lock_path(f"{task.machine.gpu_uuid}-backfill"), _say, busy=busy):
        now = earlier_attempts(task.database, task.repository, task.plan, task.machine)
        failed = now.has_failed(commit.sha) and not retry_failed
        yield not failed and not now.is_measured(commit.sha)


def _measure(task: _Task, commit: Commit, keeper: _Keeper) -> Run:
    _say(f"{shown.short(commit.sha)} {shown.one_line(commit.subject)}")
    bar = Bar(keeper.interrupts)
    try:
        run = attempt(task.plan, task.machine, commit, lambda own: collect_run(own, bar))
    finally:
        keeper.interrupts.end_of_measuring()  # what was measured is kept, whoever interrupts now
        bar.close()
    if not has_number(run):
        _say("  no benchmark gave a number: remembered as failed")
    return run


def _judge(task: _Task, done: Backfilled, keeper: _Keeper) -> dict[str, Sequence[Verdict]]:
    """Have everything judged that is to be; an interrupt leaves the rest to the next call."""
    keeper.interrupts.end_of_measuring()
    try:
        judged = judged_runs(task.database, task.repository)
        attempts = earlier_attempts(task.database, task.repository, task.plan, task.machine)
    except StoreMissing:  # nothing was kept: what ended it is said already
        return {}
    except StoreError as error:
        if done.ended is not Ended.STORE:  # otherwise it was said already
            keeper.problems.append(f"nothing was judged: {error}")
        return {}
    waiting = to_judge(task.ahead.commits, attempts, judged)
    verdicts: dict[str, Sequence[Verdict]] = {}
    for place, run_id in enumerate(waiting):
        if keeper.interrupts.asked:
            _say(f"not judged yet: {shown.count(len(waiting) - place, 'run')}, left to the next call")
            break
        verdicts[run_id] = keeper.judge(run_id)
    return verdicts


def _say(text: str) -> None:
    click.echo(text, err=True)
