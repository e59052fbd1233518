"""One run: lay out the code, measure it pass by pass, fold what came, and hand on the record."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

from collector.checkout import checkout, suite_names, suite_paths, top_folder
from collector.claims import hold, lock_path
from collector.clock_guard import clocks_as_asked, undo_left_lock
from collector.errors import NothingMeasuredError
from collector.loaded import SENTINEL_TAG, CaseInfo, Loaded
from collector.measurement import failure_of, measurements_of, readings
from collector.protocol import PROTOCOL_VERSION, Job
from collector.ratios import ratios
from collector.remarks import with_roofline
from collector.session import Session
from collector.suite import BUILTIN_SUITE, SENTINEL_SUITE
from collector.tiers import DEFAULT_RULE, TierRule
from store import shown
from store.errors import NoRepository
from store.git import Repository, measured_history
from store.records import ClockRegime, Failure, Measurement, Reading, Run, RunHeader, Timer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from store.git import MeasuredHistory

ENVIRONMENT_KEYS = {
    "driver": "gpu.driver",
    "cuda": "torch.cuda",
    "torch": "torch.version",
    "ecc": "gpu.ecc",  # it costs bandwidth on some cards, and differs between nodes of one cloud
    "sm_mhz": "clocks.sm_mhz",  # known where the clock is locked: at another clock it is another series
}
PASSES, PASSES_QUICK = 8, 3
ONLY_READING = "collect.only"  # the globs of a run that left out a part of its suite
SUITE_FROM_READING = "collect.suite_from"  # the commit whose suite was measured, where it was another
_FAILURES_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the user asked for.

    Attributes:
        repository: a folder inside the code to measure.
        suites: paths as written; none means the built-in suite.
        suite_from: revision whose suite files are measured; None for those of the measured one.
        only: globs over benchmark names and case labels; none means all.
        timer: a timer's name, or "auto": CUPTI on a GPU, the host clock without one.
        clock_mhz: SM clock to lock, or to find locked; only with those regimes.
        power_limit_w: to set while the clock is locked.
        gpu: an index among the visible GPUs or a UUID; None for the first.
        deepen: fetch the commits that a shallow clone lacks.
        traces: folder that receives the raw CUPTI records of the first pass.
        tiers: what the tiers ask for.
    """

    repository: Path
    revision: str = "HEAD"
    suites: tuple[str, ...] = ()
    suite_from: str | None = None
    only: tuple[str, ...] = ()
    passes: int = PASSES
    timer: str = "auto"
    clocks: ClockRegime = ClockRegime.HELD
    clock_mhz: int | None = None
    power_limit_w: float | None = None
    python: str
    gpu: str | None = None
    base_ref: str | None = None
    deepen: bool = False
    seed: int | None = None
    traces: str | None = None
    tiers: TierRule = DEFAULT_RULE


class Watcher:
    """Told how a run goes; the command line draws its progress bar from it."""

    def started(self, cases: int, passes: int) -> None:
        """So many cases will get so many windows each."""

    def window_done(self, case: CaseInfo) -> None:
        """One case of the current pass is done."""

    def measured(self) -> None:
        """All passes are over; what is left is to fold and to keep what they gave."""

    def note(self, text: str) -> None:
        """Something a person should know now."""


def collect_run(plan: Plan, watcher: Watcher) -> Run:
    """Measure one revision.

    An interrupt (``KeyboardInterrupt``) ends the run early; what was measured is folded and
    kept, and the run says that it was interrupted.

    Raises:
        CollectorError: nothing could be measured, for the reason the message gives.
        KeyboardInterrupt: it came before the first window was finished.
    """
    started_at = datetime.now(UTC)
    seed = secrets.randbits(32) if plan.seed is None else plan.seed
    history = history_of(plan)
    with open_session(plan, history) as session, gpu_lock(session.loaded.gpu_uuid, watcher):
        refuse_empty(session.loaded, plan)
        undo_left_lock(session, watcher)
        session.probe()
        with clocks_as_asked(session, plan, watcher):
            interrupted = _run_passes(session, plan, seed, watcher)
    run = run_of(session, plan, history, started_at=started_at, seed=seed, interrupted=interrupted)
    refuse_nothing(run)
    return run


def run_of(
    session: Session,
    plan: Plan,
    history: MeasuredHistory,
    *,
    started_at: datetime,
    seed: int,
    interrupted: bool,
) -> Run:
    """What a session gave so far, folded; it may be nothing but failures."""
    measurements, failures = _fold(session, plan)
    header = _header(plan, history, session, started_at=started_at, seed=seed, interrupted=interrupted)
    return Run(
        header=header,
        measurements=measurements,
        failures=failures,
        history=history.history,
        git_tags=history.git_tags,
    )


def refuse_nothing(run: Run) -> None:
    """A run without a number is not worth keeping.

    Raises:
        NothingMeasuredError: every benchmark failed; the message lists how.
        KeyboardInterrupt: it came before the first window was finished.
    """
    if run.measurements:
        return
    if run.header.interrupted:
        raise KeyboardInterrupt
    raise NothingMeasuredError(_why_nothing(run.failures))


@contextlib.contextmanager
def open_session(plan: Plan, history: MeasuredHistory | None = None) -> Iterator[Session]:
    """Lay out the code and load the suites in a worker.

    Args:
        plan: what to measure.
        history: of the measured revision; looked up where it is not given.
    """
    repository = top_folder(plan.repository)
    history = history or history_of(plan)
    with checkout(repository, plan.revision, history.commit_sha) as root:
        suites = suite_paths(plan.suites, root=root, repository=repository, revision=plan.suite_from) or [
            BUILTIN_SUITE
        ]
        session = Session(plan.python, job_of(plan, root, suites), traces=plan.traces)
        try:
            yield session
        finally:
            session.close()


def history_of(plan: Plan) -> MeasuredHistory:
    """What git knows about the revision of a plan, once the clone is as deep as asked.

    Raises:
        StoreError: git does not know the revision, or the rest of the history could not be fetched.
    """
    deepen_as_asked(plan)
    return measured_history(top_folder(plan.repository), plan.revision, base_ref=plan.base_ref)


def deepen_as_asked(plan: Plan) -> None:
    """Fetch what a shallow clone lacks, where the plan allows it and there is a repository.

    Raises:
        GitError: it could not be fetched.
    """
    if plan.deepen:
        with contextlib.suppress(NoRepository):
            Repository(top_folder(plan.repository)).deepen(plan.base_ref)


def job_of(plan: Plan, root: Path, suites: list[Path]) -> Job:
    """What a worker host is told to load: these suites and the sentinels."""
    return Job(
        root=str(root),
        suites=[str(path) for path in (*suites, SENTINEL_SUITE)],
        only=list(plan.only),
        timer=plan.timer,
        clocks=plan.clocks.value,
        gpu=plan.gpu,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )


def announce(session: Session, watcher: Watcher) -> None:
    """Say what is not as one would expect it of this session."""
    if session.loaded.fork_refused is not None:
        watcher.note(f"every pass starts a fresh interpreter, because {session.loaded.fork_refused}")
    if "sentinels" in session.loaded.context:
        watcher.note(f"sentinels: {session.loaded.context['sentinels']['error']}")


def _run_passes(session: Session, plan: Plan, seed: int, watcher: Watcher) -> bool:
    """Run all passes; returns whether they were interrupted."""
    announce(session, watcher)
    watcher.started(len(session.loaded.cases), plan.passes)
    try:
        for pass_index in range(plan.passes):
            session.run_pass(pass_index, seed, watcher.window_done)
        watcher.measured()
    except KeyboardInterrupt:
        return True
    return False


def refuse_empty(loaded: Loaded, plan: Plan) -> None:
    """Sentinels alone are no run: they tell about the machine, and nobody asked only for them.

    Raises:
        NothingMeasuredError: no benchmark was found, or the globs choose none.
    """
    if any(SENTINEL_TAG not in case.tags for case in loaded.known.values()):
        return
    reasons = []
    if loaded.failures:  # they come first: what was asked for may be in these suites
        listed = [f"  {f['source']}: {f['kind']}: {f['message']}" for f in loaded.failures[:_FAILURES_SHOWN]]
        reasons.append("\n".join([f"{shown.count(len(loaded.failures), 'suite failure')}:", *listed]))
    if plan.only:
        no_benchmark = "no other benchmark" if loaded.failures else "no benchmark"
        reasons.append(f"{no_benchmark} matches {', '.join(plan.only)}: `collect list` shows the names")
    raise NothingMeasuredError("\n".join(reasons or ["the suites hold no benchmark"]))


def _fold(session: Session, plan: Plan) -> tuple[tuple[Measurement, ...], tuple[Failure, ...]]:
    loaded, collected = session.loaded, session.collected
    measurements = [
        measurement
        for case in loaded.cases
        if case.key in collected.windows
        for measurement in measurements_of(
            case,
            collected.windows[case.key],
            timer=Timer(loaded.timer),
            regime=regime_of(session, plan),
            proven_mhz=collected.context.get("clocks.sm_mhz", {}).get("value"),
            rule=plan.tiers,
        )
    ]
    context = readings(collected.context)
    measurements = [with_roofline(measurement, context) for measurement in measurements]
    measurements += ratios(loaded.cases, measurements)
    return tuple(measurements), tuple(failure_of(message, loaded.known) for message in collected.failures)


def suites_of(plan: Plan) -> tuple[str, ...]:
    """What a run of the plan calls its suites."""
    return suite_names(plan.suites, repository=top_folder(plan.repository)) or ("builtin",)


def choices_of(plan: Plan) -> dict[str, Reading]:
    """What a run has to say about its suite besides the name: what was left out, and where it came from.

    Raises:
        StoreError: git does not know the revision that the suite comes from.
    """
    said: dict[str, Reading] = {}
    if plan.only:
        said[ONLY_READING] = Reading(value=" ".join(sorted(plan.only)))
    if plan.suite_from is not None:
        sha = Repository(top_folder(plan.repository)).resolve(plan.suite_from)
        said[SUITE_FROM_READING] = Reading(value=sha)
    return said


def regime_of(session: Session, plan: Plan) -> ClockRegime:
    """The regime of a run. Without a GPU there is no clock to hold, and the series says free."""
    return plan.clocks if session.loaded.gpu_uuid else ClockRegime.FREE


def _header(
    plan: Plan,
    history: MeasuredHistory,
    session: Session,
    *,
    started_at: datetime,
    seed: int,
    interrupted: bool,
) -> RunHeader:
    context = readings(session.collected.context)
    context |= choices_of(plan)
    loaded = session.loaded
    return RunHeader(
        run_id=str(uuid.uuid4()),
        repository=history.repository,
        commit_sha=history.commit_sha,
        dirty=history.dirty and plan.revision == "HEAD",
        base_ref=history.base_ref,
        merge_base=history.merge_base,
        history_note=history.history_note,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        gpu_uuid=loaded.gpu_uuid or f"cpu:{platform.node()}",
        gpu_name=loaded.gpu_name or f"CPU ({platform.machine()})",
        timer=Timer(loaded.timer),
        clock_regime=regime_of(session, plan),
        environment=environment_key(context),
        passes=plan.passes,
        seed=seed,
        suites=suites_of(plan),
        tool_version=metadata.version("kernelwatch"),
        protocol_version=PROTOCOL_VERSION,
        interrupted=interrupted,
        context=context,
    )


def environment_key(context: Mapping[str, Any]) -> str:
    """The part of the series key that names driver, CUDA, torch, ECC and a locked clock, as far as known."""
    pairs = {name: context.get(reading) for name, reading in ENVIRONMENT_KEYS.items()}
    return " ".join(
        f"{name}={_word(reading.value)}"
        for name, reading in sorted(pairs.items())
        if reading and reading.value is not None
    )


def _word(value: object) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def _why_nothing(failures: tuple[Failure, ...]) -> str:
    if failures:
        listed = "\n".join(f"  {f.source}: {f.kind}: {f.message}" for f in failures[:_FAILURES_SHOWN])
        return f"no benchmark gave a number; {shown.count(len(failures), 'failure')}:\n{listed}"
    return "no benchmark gave a number"


@contextlib.contextmanager
def gpu_lock(gpu_uuid: str | None, watcher: Watcher) -> Iterator[None]:
    """Keep two collectors of one machine off one GPU (or one CPU): the second waits."""
    busy = "another collect is measuring on this device; waiting until it ends"
    with hold(lock_path(gpu_uuid), watcher.note, busy=busy):
        yield
