"""From the words of a command, or of a form, to decisions in the store."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from alerts.errors import DecisionInvalid, NothingToJudge, TriageRefused
from alerts.inbox import History, confirmed_changes, decide
from alerts.naming import newest_run, runs_named
from alerts.renamed_runs import renames_of_runs
from alerts.triage import Decisions
from alerts.verdicts import CHANGES
from store import shown
from store.commits import load_commits
from store.older_names import NO_RENAMES, Renames
from store.places import load_centers, load_places, load_series
from store.records import RecordInvalid, Standing
from store.renames import load_renames
from store.triage import load_triage_events, save_triage_events
from store.triage_events import Action, Scope, TriageEvent
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from alerts.inbox import Change
    from store.database import Database
    from store.records import RunHeader, SeriesKey

_NAMED_IN_MESSAGES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a decision is about, once its words are understood.

    Attributes:
        scopes: one for each benchmark or case that was named.
        series: the series that the named runs measured and the scopes cover.
        renames: the older names that the benchmarks of these runs had.
        run_ids: these runs; none where a change was chosen and no run was named.
    """

    repository: str
    commit_sha: str
    scopes: tuple[Scope, ...]
    series: tuple[SeriesKey, ...]
    renames: Renames = NO_RENAMES
    run_ids: tuple[str, ...] = ()


def target(
    database: Database,
    benchmarks: Sequence[str],
    *,
    at: str | None,
    checkout: Path,
    gpu: str | None = None,
    series: str | None = None,
) -> Target:
    """Understand what a decision is about.

    Args:
        database: the store.
        benchmarks: names of benchmarks, or cases such as ``softmax[rows=8]``.
        at: commit, run or revision; see ``runs_named``. The newest run where None.
        checkout: where a revision is looked up.
        gpu: the beginning of a GPU's UUID, to narrow the decision to it.
        series: the beginning of a series' id, to narrow it to that.

    Raises:
        AlertsError: a word names nothing that was measured there, or too much.
        StoreError: the store cannot be read.
    """
    runs = _committed(runs_named(database, at or newest_run(database), checkout=checkout))
    measured = load_series(database, [run.run_id for run in runs])
    gpu_uuid = _completed("GPU", gpu, {key.gpu_uuid for key in measured})
    series_id = _completed("series", series, {key.id for key in measured})
    scopes = tuple(_scope(word, measured, gpu_uuid, series_id, runs[0]) for word in dict.fromkeys(benchmarks))
    return Target(
        repository=runs[0].repository,
        commit_sha=runs[0].commit_sha or "",
        scopes=scopes,
        run_ids=tuple(run.run_id for run in runs),
        series=tuple(key for key in measured if any(scope.covers(key) for scope in scopes)),
        renames=Renames.of(
            load_renames(database, runs[0].repository), {key.case.benchmark for key in measured}
        ),
    )


def record(
    database: Database, action: Action, about: Target, *, by: str, at: datetime | None = None, **fields: Any
) -> list[TriageEvent]:
    """Decide, once for each scope of the target.

    Args:
        database: the store.
        action: what is decided.
        about: what it is about.
        by: who decides.
        at: when; now where None.
        **fields: what the action needs, by the names of ``TriageEvent``.

    Raises:
        DecisionInvalid: the decision says too little or too much.
        TriageRefused: nothing is muted where it shall be ended. In both cases nothing is stored.
        StoreError: the store cannot be written.
    """
    moment = at or datetime.now(UTC)
    if action is Action.UNMUTE:
        _check_muted(database, about, moment)
    events = [
        _event(
            repository=about.repository,
            action=action,
            scope=scope,
            commit_sha=about.commit_sha,
            decided_by=by,
            decided_at=moment,
            **fields,
        )
        for scope in about.scopes
    ]
    save_triage_events(database, events)
    return events


def revoke(database: Database, word: str, *, by: str, body: str | None = None) -> TriageEvent:
    """Take a decision back, by its id or the beginning of it; the revocation is an event of its own.

    Raises:
        DecisionInvalid: no id is given, or the reason says too much.
        TriageRefused: no decision, or more than one, has this id.
        StoreInvalid: it was taken back before.
    """
    if not word:
        raise DecisionInvalid("no id is given: `alerts triage list --history` lists them")
    found = [event for event in load_triage_events(database) if event.event_id.startswith(word.lower())]
    if len(found) != 1:
        what = "no decision has" if not found else f"{len(found)} decisions have"
        raise TriageRefused(
            f"{what} an id that begins with '{shown.visible(word)}': "
            "`alerts triage list --history` lists them"
        )
    (event,) = found
    taken_back = _event(
        repository=event.repository,
        action=Action.REVOKE,
        scope=event.scope,
        commit_sha=event.commit_sha,
        body=body,
        revokes=event.event_id,
        decided_by=by,
        decided_at=datetime.now(UTC),
    )
    save_triage_events(database, [taken_back])
    return taken_back


def without_change(database: Database, about: Target) -> list[str]:
    """The scopes of a target in which no verdict at its commit tells a change, in words.

    Accepting one moves baselines all the same, which whoever named the wrong commit does not expect.
    """
    changed = [
        verdict.series
        for verdict in load_verdicts(database, run_ids=about.run_ids, series_ids=[k.id for k in about.series])
        if verdict.outcome in CHANGES
    ]
    return [scope.label for scope in about.scopes if not any(scope.covers(key) for key in changed)]


def load_changes(
    database: Database, *, now: datetime | None = None, standing: Standing = Standing.CONFIRMED
) -> list[Change]:
    """Every confirmed change of every repository with what became of it, worst first.

    Args:
        database: the store.
        now: the moment for which mutes are asked; now where None.
        standing: of other changes than the confirmed ones.
    """
    verdicts = load_verdicts(database, standing=[standing])
    places = load_places(database)
    events = load_triage_events(database)
    on = (now or datetime.now(UTC)).astimezone(UTC).date()
    centers = load_centers(database, sorted({verdict.series.id for verdict in verdicts}))
    found: list[Change] = []
    for repository in sorted({places[v.run_id].repository for v in verdicts if v.run_id in places}):
        history = History.of(repository, load_commits(database, repository), places)
        decisions = Decisions.of(event for event in events if event.repository == repository)
        changes = confirmed_changes(verdicts, history)
        runs = sorted({change.verdict.run_id for change in changes})
        renames = renames_of_runs(database, repository, runs)
        found += decide(changes, decisions, history, centers, on=on, renames=renames)
    return found


def _event(**fields: Any) -> TriageEvent:
    try:
        return TriageEvent(event_id=str(uuid.uuid4()), **fields)
    except RecordInvalid as problem:
        raise DecisionInvalid(str(problem)) from problem


def _committed(runs: Iterable[RunHeader]) -> list[RunHeader]:
    kept = [run for run in runs if run.commit_sha is not None and not run.dirty]
    if not kept:
        raise NothingToJudge(
            "only uncommitted changes were measured there, and a decision is about a commit: "
            "commit them and measure that"
        )
    return kept


def _completed(what: str, beginning: str | None, known: set[str]) -> str | None:
    """The one id that begins like this."""
    if beginning is None:
        return None
    found = sorted(name for name in known if name.startswith(beginning))
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} of them begin like that" if found else "none of them begins like that"
    raise TriageRefused(
        f"{what} '{shown.visible(beginning)}': {problem}; measured there: "
        f"{', '.join(map(shown.visible, sorted(known)[:_NAMED_IN_MESSAGES]))}"
    )


def _scope(
    word: str, measured: Sequence[SeriesKey], gpu_uuid: str | None, series_id: str | None, run: RunHeader
) -> Scope:
    """The benchmark or case of this name, narrowed as asked for."""
    parameters = {key.case.label: key.case.parameters_json for key in measured}
    benchmarks = {key.case.benchmark for key in measured}
    if word in benchmarks:  # a case without parameters is its benchmark
        scope = Scope(benchmark=word, gpu_uuid=gpu_uuid, series_id=series_id)
    elif word in parameters:
        name = next(key.case.benchmark for key in measured if key.case.label == word)
        scope = Scope(benchmark=name, parameters=parameters[word], gpu_uuid=gpu_uuid, series_id=series_id)
    else:
        near = get_close_matches(word, [*benchmarks, *parameters], n=_NAMED_IN_MESSAGES, cutoff=0.4)
        said = f"; near it: {', '.join(map(shown.visible, near))}" if near else ""
        raise TriageRefused(
            f"'{shown.visible(word)}' was not measured at {shown.short(run.commit_sha)}{said}. Name a "
            "benchmark, or a case such as 'softmax[rows=8]', and with --at where it was measured"
        )
    if not any(scope.covers(key) for key in measured):
        raise TriageRefused(f"{shown.visible(scope.label)} was not measured at {shown.short(run.commit_sha)}")
    return scope


def _check_muted(database: Database, about: Target, moment: datetime) -> None:
    events = load_triage_events(database, repository=about.repository)
    decisions = Decisions.of(events).following(about.renames)
    on = moment.astimezone(UTC).date()
    for scope in about.scopes:
        if not any(decisions.mute(key, on=on) for key in about.series if scope.covers(key)):
            raise TriageRefused(f"{shown.visible(scope.label)} is not muted: nothing was changed")
