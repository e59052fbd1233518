"""A/A: the runs that a study compares, measured now or taken from a store."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.checkout import top_folder
from collector.errors import StudyError
from store import shown
from store.git import Repository
from store.records import Reading
from store.runs import find_runs, load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from collector.run import Plan
    from store.database import Database
    from store.records import Run, RunHeader

REST_READING = "aa.rest_s"


@dataclass(frozen=True)
class Start:
    """How one run of a study begins.

    Attributes:
        rest_s: idle time before it, in seconds; 0 for a start on a machine still warm from the last.
    """

    plan: Plan
    rest_s: float


def starts(plan: Plan, *, runs: int, rest_s: float) -> Iterator[Start]:
    """Every second run begins after a rest, the others at once: sessions begin hot and cold in real life."""
    for index in range(runs):
        seed = None if plan.seed is None else plan.seed + index
        yield Start(replace(plan, seed=seed), rest_s if index % 2 else 0.0)


def measure_study(
    planned: Iterator[Start], study_id: str, measure: Callable[[Start], Run], keep: Callable[[Run], None]
) -> list[Run]:
    """Measure one run after the other, each as complete as any other, and keep it at once.

    An interrupt ends the study. The run that it ended is kept, and is none of those returned:
    it holds fewer passes, so that it would lie apart for a reason of its own.

    Args:
        planned: see ``starts``.
        study_id: what the runs are marked with.
        measure: waits out the rest and measures; a ``KeyboardInterrupt`` means that nothing was.
        keep: stores a run.
    """
    measured: list[Run] = []
    for start in planned:
        try:
            run = measure(start)
        except KeyboardInterrupt:
            break
        run = _marked(run, study_id, start.rest_s)
        keep(run)
        if run.header.interrupted:
            break
        measured.append(run)
    return measured


def _marked(run: Run, study_id: str, rest_s: float) -> Run:
    context = {**run.header.context, REST_READING: Reading(value=rest_s)}
    return replace(run, header=replace(run.header, aa_study=study_id, context=context))


def stored_runs(database: Database, plan: Plan) -> list[Run]:
    """All whole runs of a commit on one GPU that a store holds.

    Runs of uncommitted changes are of other code; runs that were ended early, or whose passes
    took turns with those of another commit, were made in another way; a run that confirms
    another holds the benchmarks that lay apart, and would make the spread look larger.

    Args:
        database: the store.
        plan: its repository, revision, GPU (a UUID or the beginning of it) and timer choose.

    Raises:
        StudyError: there are fewer than two, or runs on several GPUs to choose from.
        StoreError: the store cannot be read, or git does not know the revision.
    """
    repository = Repository(top_folder(plan.repository))
    sha, name = repository.resolve(plan.revision), repository.name()
    found = [
        header
        for header in find_runs(database, commit_sha=sha)
        if header.repository == name and _is_whole(header) and _is_asked_for(header, plan)
    ]
    gpus = sorted({header.gpu_uuid for header in found})
    if len(gpus) > 1:
        raise StudyError(f"{shown.short(sha)} was measured on {', '.join(gpus)}: choose one with --gpu UUID")
    if len(found) < 2:  # noqa: PLR2004 - a pair
        raise StudyError(
            f"{database.url} holds {shown.count(len(found), 'whole run')} of {shown.short(sha)}, and 2 are "
            f"the fewest that can be compared: measure them with `collect aa --commit {shown.short(sha)}`"
        )
    return [load_run(database, header.run_id) for header in found]


def named_runs(database: Database, run_ids: Sequence[str]) -> list[Run]:
    """Runs by their ids, each once.

    Raises:
        StoreError: the store cannot be read, or holds no such run.
    """
    runs = [load_run(database, run_id) for run_id in run_ids]
    return list({run.header.run_id: run for run in runs}.values())


def study_id_of(runs: Sequence[Run]) -> str:
    """The same for the same runs, so that analysing them again makes no second study."""
    ids = ",".join(sorted(run.header.run_id for run in runs))
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"kernelwatch-study:{ids}"))


def _is_whole(header: RunHeader) -> bool:
    chosen_for_its_flags = header.confirms_run_id is not None
    return not (header.dirty or header.interrupted or header.paired_with or chosen_for_its_flags)


def _is_asked_for(header: RunHeader, plan: Plan) -> bool:
    return (plan.gpu is None or header.gpu_uuid.startswith(plan.gpu)) and plan.timer in ("auto", header.timer)
