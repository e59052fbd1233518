"""The command ``collect bisect``: find the commit that changed a benchmark, by paired runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from collector.attempts import earlier_attempts, survey
from collector.bisect import Bisection, Finding, Search
from collector.bisect_names import names_at, only_of
from collector.bisect_pairs import PairedCompare, study_id_of
from collector.bisect_report import bisect_json, bisect_text
from collector.checkout import refuse_unknown_suites, top_folder
from collector.errors import CollectorError
from collector.exits import EXIT_INTERRUPTED, EXIT_NOTHING, give_up
from collector.keeping import judge_stored, keep_whatever
from collector.options import choosing, measuring, merged, plan_of, refuse_run_only
from collector.paired import collect_pair
from collector.progress import Bar, Interrupts, Notes
from collector.run import deepen_as_asked
from store import shown
from store.database import DEFAULT_URL, Database
from store.errors import StoreError, StoreMissing
from store.git import Repository
from store.git_ranges import commits_between, merged_line
from store.renames import load_renames

if TYPE_CHECKING:
    from collector.paired import Pair
    from collector.run import Plan

_NOTHING_TOLD = (Finding.NO_CHANGE, Finding.UNCLEAR)


@click.command("bisect")
@click.argument("good")
@click.argument("bad")
@click.option(
    "--benchmark", required=True, metavar="NAME", help="Name or label of what changed, or a glob over them."
)
@choosing
@measuring
@click.option(
    "--into-merges", is_flag=True, help="Where the commit is a merge, go on in the branch it merged."
)
@click.option("--retry-failed", is_flag=True, help="Try commits again that gave no number before.")
@click.pass_context
def bisect(context: click.Context, /, **own: Any) -> None:
    """Find the commit after GOOD up to BAD that changed a benchmark.

    BAD is measured beside GOOD in one session, their passes in turn, and has to show the change;
    then the line of first parents is halved in the same way. Commits that give no number are
    passed by. All runs are kept, and calling it again goes on from them. Exit codes: 0 a commit, or
    a few, were found; 2 usage; 3 there is no change to look for, or nothing could be measured;
    130 interrupted.
    """
    options = merged(context, own)
    refuse_run_only(options, "collect bisect", measures_named_commits=True)
    if options["only"]:
        raise click.UsageError("--only has no meaning for `collect bisect`: --benchmark says what to measure")
    plan = replace(plan_of(options), only=only_of(options["benchmark"]))
    try:
        _bisect(plan, options)
    except (CollectorError, StoreError) as error:
        give_up(error)
    except KeyboardInterrupt:
        _say("interrupted before anything was measured")
        sys.exit(EXIT_INTERRUPTED)


def _bisect(plan: Plan, options: dict[str, Any]) -> None:
    deepen_as_asked(plan)
    repository = Repository(top_folder(plan.repository))
    good = repository.commit(repository.resolve(options["good"]))
    line = commits_between(repository, options["good"], options["bad"])
    if not line:
        raise click.UsageError(f"{options['good']} and {options['bad']} are the same commit: name two")
    revisions = [each.sha for each in (good, *line)] if plan.suite_from is None else [plan.suite_from]
    refuse_unknown_suites(plan.suites, repository=top_folder(plan.repository), revisions=revisions)
    pairs = _pairs(plan, options, repository, (good.sha, line[-1].sha))
    bisection = Bisection(pairs, passes=plan.passes, note=_say)
    search = bisection.search(good, line)
    if options["into_merges"]:
        _go_inside(repository, bisection, search)
    if options["output_format"] == "json":
        told = bisect_json(search, bisection.series, study_id=pairs.study_id)
        click.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        click.echo(
            bisect_text(
                search,
                options["benchmark"] if bisection.series is None else bisection.series.case.label,
                study_id=pairs.study_id,
                into_merges=options["into_merges"],
            )
        )
    if any(each.finding is Finding.INTERRUPTED for each in (search, *_all_inside(search))):
        sys.exit(EXIT_INTERRUPTED)
    if search.finding in _NOTHING_TOLD:
        sys.exit(EXIT_NOTHING)


def _go_inside(repository: Repository, bisection: Bisection, search: Search) -> None:
    """Search the branches that a found merge brought in, until one of them shows the change."""
    if search.found is None:
        return
    for fork, commits in merged_line(repository, search.found):
        inside = bisection.search(repository.commit(fork), commits)
        search.inside.append(inside)
        if inside.finding is not Finding.NO_CHANGE:
            _go_inside(repository, bisection, inside)
            break


def _all_inside(search: Search) -> list[Search]:
    return [found for inside in search.inside for found in (inside, *_all_inside(inside))]


def _pairs(
    plan: Plan, options: dict[str, Any], repository: Repository, ends: tuple[str, str]
) -> PairedCompare:
    database = Database(options["url"] or DEFAULT_URL)
    machine = survey(plan, Notes())
    name = repository.name()
    names = names_at(replace(plan, revision=ends[1]), _renames(database, name))
    added = [glob for glob in names.only if glob not in plan.only]
    if added:
        _say(f"measured under another name too, since it was renamed: {shown.one_line(', '.join(added))}")
    plan = replace(plan, only=names.only)
    measuring = _Measuring()
    return PairedCompare(
        plan=plan,
        names=names,
        machine=machine,
        database=database,
        attempts=earlier_attempts(database, name, plan, machine),
        study_id=study_id_of(plan, machine, name, *ends),
        retry_failed=options["retry_failed"],
        collect=measuring,
        keep=lambda run, judged: keep_whatever(run, output=None, url=database.url, say=_say, judged=judged),
        judge=lambda run_id: judge_stored(run_id, database),
    )


def _renames(database: Database, repository: str) -> list[tuple[str, str]]:
    """(old name, new name) pairs that runs were measured with; none where there is no store yet."""
    try:
        return load_renames(database, repository)
    except StoreMissing:
        return []


class _Measuring:
    """Measures pairs with a progress bar, and ends between two where somebody asked for it."""

    def __init__(self) -> None:
        self._interrupts = Interrupts()

    def __call__(self, plan: Plan, against: str) -> Pair:
        if self._interrupts.asked:
            raise KeyboardInterrupt
        self._interrupts = Interrupts()
        bar = Bar(self._interrupts)
        try:
            return collect_pair(plan, against, bar)
        finally:
            self._interrupts.end_of_measuring()  # what was measured is kept, whoever interrupts now
            bar.close()


def _say(text: str) -> None:
    click.echo(text, err=True)
