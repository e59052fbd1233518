"""What was tried before: the runs of this machine that a store holds, commit by commit.

A commit that gave no number is kept as a run that holds nothing but its failure, so that
nobody tries it again without being asked to, and a page can show why.
"""

from __future__ import annotations

import platform
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING

from collector.checkout import top_folder
from collector.clock_guard import clocks_as_asked, undo_left_lock
from collector.errors import CheckoutError, NothingMeasuredError, WorkerError
from collector.loaded import SENTINEL_TAG
from collector.measurement import readings
from collector.protocol import PROTOCOL_VERSION
from collector.run import (
    ONLY_READING,
    SUITE_FROM_READING,
    choices_of,
    environment_key,
    gpu_lock,
    history_of,
    job_of,
    regime_of,
    suites_of,
)
from collector.session import Session
from store.coverage import runs_with_a_number
from store.errors import StoreMissing
from store.records import Failure, Run, RunHeader, Stage, Timer
from store.runs import find_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from collector.errors import CollectorError
    from collector.run import Plan, Watcher
    from store.database import Database
    from store.records import ClockRegime, Reading

# What a commit brings on itself. Anything else is about the machine, and the next commit would meet it too.
COMMIT_ERRORS = (CheckoutError, NothingMeasuredError, WorkerError)


@dataclass(frozen=True)
class Machine:
    """The part of a series key that a commit has no say in."""

    gpu_uuid: str
    gpu_name: str
    timer: Timer
    clock_regime: ClockRegime
    environment: str

    def measured(self, header: RunHeader) -> bool:
        """Whether a run was made under these conditions."""
        return (self.gpu_uuid, self.timer, self.clock_regime, self.environment) == (
            header.gpu_uuid, header.timer, header.clock_regime, header.environment,
        )  # fmt: skip


def survey(plan: Plan, watcher: Watcher) -> Machine:
    """Find out what runs of a plan will be marked with, before anything is measured.

    Raises:
        CollectorError: the machine cannot measure as asked.
    """
    session = Session(plan.python, job_of(plan, top_folder(plan.repository), []))
    try:
        with gpu_lock(session.loaded.gpu_uuid, watcher):
            undo_left_lock(session, watcher)
            session.probe()
            with clocks_as_asked(session, plan, watcher):
                context = readings(session.collected.context)
    finally:
        session.close()
    loaded = session.loaded
    return Machine(
        gpu_uuid=loaded.gpu_uuid or f"cpu:{platform.node()}",
        gpu_name=loaded.gpu_name or f"CPU ({platform.machine()})",
        timer=Timer(loaded.timer),
        clock_regime=regime_of(session, plan),
        environment=environment_key(context),
    )


@dataclass(frozen=True)
class Attempts:
    """Whole runs of committed code of a plan's suite, on one machine.

    Attributes:
        by_commit: their headers, newest first.
        numbers: ids of those in which a benchmark gave a number.
    """

    by_commit: Mapping[str, Sequence[RunHeader]]
    numbers: frozenset[str]

    def is_measured(self, sha: str) -> bool:
        """Whether the commit has a number."""
        return any(header.run_id in self.numbers for header in self.by_commit.get(sha, ()))

    def has_failed(self, sha: str) -> bool:
        """Whether the commit was tried and gave no number."""
        return sha in self.by_commit and not self.is_measured(sha)


def earlier_attempts(database: Database, repository: str, plan: Plan, machine: Machine) -> Attempts:
    """What the store holds of a plan; nothing where there is no store yet.

    Runs that were interrupted, that hold uncommitted changes, or that left out benchmarks the plan
    asks for, do not count. A commit that gave no number with another revision's suite was not tried
    with this one.

    Raises:
        StoreError: the store cannot be read, or git does not know where the suite comes from.
    """
    choices, suites = choices_of(plan), frozenset(suites_of(plan))
    try:
        headers = find_runs(database)
        numbers = runs_with_a_number(database, repository, besides=SENTINEL_TAG)
    except StoreMissing:
        return Attempts({}, frozenset())
    by_commit: dict[str, list[RunHeader]] = {}
    for header in headers:
        if (
            header.repository == repository
            and machine.measured(header)
            and _is_of(suites, choices, header)
            and (header.run_id in numbers or has_suite_of(choices, header))
        ):
            by_commit.setdefault(header.commit_sha or "", []).append(header)
    return Attempts(by_commit, frozenset(numbers))


def has_suite_of(choices: Mapping[str, Reading], header: RunHeader) -> bool:
    """Whether a run took its suite from where the plan takes it, as ``choices_of`` says."""
    return header.context.get(SUITE_FROM_READING) == choices.get(SUITE_FROM_READING)


def _is_of(suites: Collection[str], choices: Mapping[str, Reading], header: RunHeader) -> bool:
    left_out = header.context.get(ONLY_READING)
    return (
        header.commit_sha is not None
        and not header.dirty
        and not header.interrupted
        and suites == set(header.suites)
        and left_out in (None, choices.get(ONLY_READING))
    )


def has_number(run: Run) -> bool:
    """Whether a benchmark gave a number; the tool's own calls are none."""
    return any(SENTINEL_TAG not in measurement.tags for measurement in run.measurements)


def failed_run(plan: Plan, machine: Machine, error: CollectorError, *, started_at: datetime) -> Run:
    """The record of a commit that gave no number, with the reason.

    Raises:
        StoreError: git does not know the plan's revision.
    """
    history = history_of(plan)
    header = RunHeader(
        run_id=str(uuid.uuid4()),
        repository=history.repository,
        commit_sha=history.commit_sha,
        dirty=False,
        base_ref=history.base_ref,
        merge_base=history.merge_base,
        history_note=history.history_note,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        gpu_uuid=machine.gpu_uuid,
        gpu_name=machine.gpu_name,
        timer=machine.timer,
        clock_regime=machine.clock_regime,
        environment=machine.environment,
        passes=plan.passes,
        seed=plan.seed or 0,
        suites=suites_of(plan),
        tool_version=metadata.version("kernelwatch"),
        protocol_version=PROTOCOL_VERSION,
        context=choices_of(plan),
    )
    failure = Failure(
        case=None,
        stage=Stage.WORKER if isinstance(error, WorkerError) else Stage.IMPORT,
        kind=type(error).__name__,
        message=str(error),
        source=", ".join(suites_of(plan)),
    )
    return Run(
        header=header,
        measurements=(),
        failures=(failure,),
        history=history.history,
        git_tags=history.git_tags,
    )
