"""The records that the rooms pass to one another.

Data flows one way: sample -> window -> measurement -> run -> verdict. Every record is
frozen and checks itself when it is made, so that no room has to doubt what it was given.
Times are milliseconds as floats; instants are timezone-aware UTC. This module imports
the standard library alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_SCALAR_TYPES = (str, int, float, bool)
Scalar = str | int | float | bool | None
BISECTION = "bisect.study"  # in a run's context, the same for all runs of one bisection
SHA_PATTERN = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class RecordInvalid(ValueError):  # noqa: N818 - named like the other store errors: what is wrong
    """A record contradicts itself; the message names the field and the value."""


class Timer(StrEnum):
    """How a call was timed. Numbers of different timers are never compared."""

    CUPTI = "cupti"
    EVENTS = "events"
    WALL = "wall"


class Quantity(StrEnum):
    """What the headline number of a measurement is."""

    DEVICE_BUSY = "device_busy"  # union of the call's kernel execution intervals
    DEVICE_BUSY_AND_COPIES = "device_busy_and_copies"  # the union covers copies and memsets too
    ELAPSED = "elapsed"  # between two events or two reads of the host clock
    RATIO = "ratio"  # of two implementations measured in turn: the subject over the other; no unit


class CacheState(StrEnum):
    """Whether L2 was cleared before every iteration."""

    COLD = "cold"
    WARM = "warm"


class ClockRegime(StrEnum):
    """What was done about the clocks of the GPU."""

    HELD = "held"  # paced so that the clock stays where it settles by itself
    LOCKED = "locked"  # locked by the collector
    VERIFY = "verify"  # locked by an administrator, verified by the collector
    FREE = "free"  # nothing was done


class Tier(StrEnum):
    """How far a number can be trusted: A best, C not at all."""

    A = "A"
    B = "B"
    C = "C"


class FoldStatus(StrEnum):
    """What kind of interval a fold gave."""

    OK = "ok"  # six windows or more: order statistics
    PROVISIONAL = "provisional"  # three to five windows: log-t
    REFUSED = "refused"  # fewer than three windows: no interval


class Outcome(StrEnum):
    """The verdict on one series of one run."""

    REGRESSED = "REGRESSED"
    IMPROVED = "IMPROVED"
    UNCHANGED = "UNCHANGED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Standing(StrEnum):
    """How far a change has been corroborated."""

    NONE = "none"  # not a change
    FLAGGED = "flagged"  # seen in one run
    CONFIRMED = "confirmed"  # held in a fresh session
    WITHDRAWN = "withdrawn"  # did not hold in a fresh session


class BaselineKind(StrEnum):
    """What a candidate was compared with, strongest first."""

    PAIRED = "paired"  # both commits interleaved in one session
    POOL = "pool"  # several runs on ancestors of the merge-base
    ANCHOR = "anchor"  # several runs up to a release: a drift, which no single commit shows
    SINGLE = "single"  # one run: provisional, never blocks
    NONE = "none"


class PairedRole(StrEnum):
    """Which side of a paired run a run is: two commits whose passes took turns in one session."""

    CANDIDATE = "candidate"
    BASELINE = "baseline"


class Reason(StrEnum):
    """Why a verdict is what it is. The dashboard and the comment explain each one."""

    INTERVALS_APART = "intervals-apart"
    INTERVALS_OVERLAP = "intervals-overlap"
    PAIRS_DIFFER = "pairs-differ"  # pass by pass, beside the paired run
    PAIRS_AGREE = "pairs-agree"
    BELOW_FLAG_EFFECT = "below-flag-effect"  # apart, and by less than the policy flags
    DRIFTED = "drifted"  # apart from the runs up to a release, and not from the nearest ones
    NO_BASELINE = "no-baseline"
    NEW_BENCHMARK = "new-benchmark"
    TOO_FEW_WINDOWS = "too-few-windows"
    TIER_TOO_LOW = "tier-too-low"
    BASELINE_TIER_TOO_LOW = "baseline-tier-too-low"
    OTHER_GPU = "other-gpu"
    OTHER_TIMER = "other-timer"
    OTHER_ENVIRONMENT = "other-environment"
    OTHER_CONDITIONS = "other-conditions"  # cache state, clock regime or quantity differs
    HISTORY_MISSING = "history-missing"  # shallow clone, rewritten history, no repository
    MACHINE_MOVED = "machine-moved"


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One benchmark with one set of parameters.

    Attributes:
        benchmark: the function's name without ``bench_``.
        parameters: (name, value) pairs, sorted by name; values are JSON scalars.
    """

    benchmark: str
    parameters: tuple[tuple[str, Scalar], ...] = ()

    @classmethod
    def of(cls, benchmark: str, parameters: Mapping[str, Scalar]) -> Case:
        """Make a case from a mapping, in whatever order it has.

        Raises:
            RecordInvalid: a value is not a JSON scalar, or is not finite.
        """
        for name, value in parameters.items():
            if value is not None and not isinstance(value, _SCALAR_TYPES):
                raise RecordInvalid(
                    f"parameter {name!r} of benchmark {benchmark!r} is {value!r}: use a string, a number, "
                    "a boolean or None, and build the object inside the benchmark"
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise RecordInvalid(
                    f"parameter {name!r} of benchmark {benchmark!r} is {value!r}: use a finite number"
                )
        return cls(benchmark, tuple(sorted(parameters.items())))

    @property
    def parameters_json(self) -> str:
        """The parameters as canonical JSON: sorted names, no spaces."""
        return json.dumps(dict(self.parameters), sort_keys=True, separators=(",", ":"))

    @property
    def label(self) -> str:
        """The case as a person reads it, such as ``softmax[dtype=bfloat16, rows=1024]``."""
        if not self.parameters:
            return self.benchmark
        return f"{self.benchmark}[{', '.join(f'{name}={value}' for name, value in self.parameters)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """What makes two measurements comparable. Numbers of different keys are never compared silently.

    Attributes:
        gpu_uuid: the physical GPU, or ``cpu:<host>`` where there is none.
        environment: ``name=value`` pairs joined by spaces (driver, CUDA, torch by default).
    """

    case: Case
    quantity: Quantity
    gpu_uuid: str
    timer: Timer
    cache_state: CacheState
    clock_regime: ClockRegime
    environment: str

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits that stand for this key in the store and in URLs."""
        return _series_id(self)


@lru_cache(maxsize=65_536)  # a series has many points, and each is sorted and stored by it
def _series_id(key: SeriesKey) -> str:
    parts = [
        key.case.benchmark, key.case.parameters_json, key.quantity, key.gpu_uuid,
        key.timer, key.cache_state, key.clock_regime, key.environment,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Interval:
    """A folded interval in milliseconds (or in whatever unit was folded).

    ``low`` and ``high`` are None when the fold was refused; ``center`` is None too when
    there was not a single window.
    """

    center: float | None
    low: float | None
    high: float | None
    windows: int
    status: FoldStatus

    def __post_init__(self) -> None:
        refused = self.status is FoldStatus.REFUSED
        if refused != (self.low is None) or refused != (self.high is None):
            raise RecordInvalid(f"interval {self.low} .. {self.high} does not fit its status {self.status}")
        if self.low is not None and self.high is not None:
            if self.center is None or not self.low <= self.center <= self.high:
                raise RecordInvalid(f"interval center {self.center} lies outside {self.low} .. {self.high}")
            if not (math.isfinite(self.low) and math.isfinite(self.high)):
                raise RecordInvalid(f"interval {self.low} .. {self.high} is not finite")

    @property
    def bounds(self) -> tuple[float, float, float] | None:
        """(low, center, high), or None when the fold was refused."""
        if self.low is None or self.high is None or self.center is None:
            return None
        return self.low, self.center, self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A value read from the machine, or the error that stood in its way. Never a made-up zero."""

    value: Scalar = None
    error: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.error is None):
            raise RecordInvalid(f"a reading holds a value or an error, not {self.value!r} and {self.error!r}")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise RecordInvalid(f"a reading of {self.value!r} says nothing: give the error instead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One distinct kernel launch of a call, with how often the call made it.

    Attributes:
        name: the mangled or plain name CUPTI gave.
        grid, block, cluster: (x, y, z); cluster is (0, 0, 0) where none was used.
        registers: per thread.
        shared_bytes: static plus dynamic shared memory of a block, in bytes.
        count: launches in one call (the median over iterations).
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    registers: int
    shared_bytes: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Consecutive samples of one case in one process after its own warm-up.

    Lists per sample have the length of ``samples_ms``; those that a timer or a machine
    cannot give are empty.

    Attributes:
        pass_index: which pass of the run, from 0.
        position: place in the shuffled order of that pass, from 0.
        samples_ms: one duration per iteration.
        exclusions: why a sample is left out of the fold, or None where it counts.
        latency_ms: last kernel end minus first kernel start.
        sum_ms: sum of kernel durations.
        copy_ms: union of copies and memsets.
        pause_ms: idle time before the iteration, to hold the clock.
        sm_clock_mhz: read after the iteration; None where it could not be read.
        throttle_reasons: NVML's bit mask, read after the iteration.
        inner_reps: calls in one timed region (1 except for short calls timed by events).
        attempts: how often the window was measured until all records arrived.
        invalid: why the whole window is left out of the fold, or None.
    """

    pass_index: int
    position: int
    pid: int
    started_at: datetime
    samples_ms: tuple[float, ...]
    exclusions: tuple[str | None, ...]
    latency_ms: tuple[float, ...] = ()
    sum_ms: tuple[float, ...] = ()
    copy_ms: tuple[float, ...] = ()
    n_kernels: tuple[int, ...] = ()
    pause_ms: tuple[float, ...] = ()
    sm_clock_mhz: tuple[int | None, ...] = ()
    throttle_reasons: tuple[int | None, ...] = ()
    warmup_calls: int
    warmup_ms: float
    inner_reps: int = 1
    attempts: int = 1
    telemetry: Mapping[str, Reading] = field(default_factory=dict)
    invalid: str | None = None

    def __post_init__(self) -> None:
        n = len(self.samples_ms)
        for sample in self.samples_ms:
            if not (math.isfinite(sample) and sample > 0):
                raise RecordInvalid(f"sample {sample!r} ms is not a duration: zero is never a time")
        if len(self.exclusions) != n:
            raise RecordInvalid(f"{len(self.exclusions)} exclusions for {n} samples")
        for name in (
            "latency_ms", "sum_ms", "copy_ms", "n_kernels", "pause_ms", "sm_clock_mhz", "throttle_reasons",
        ):  # fmt: skip
            if len(getattr(self, name)) not in (0, n):
                raise RecordInvalid(f"{len(getattr(self, name))} values of {name} for {n} samples")

    @property
    def kept_ms(self) -> tuple[float, ...]:
        """The samples that count in the fold."""
        return tuple(s for s, why in zip(self.samples_ms, self.exclusions, strict=True) if why is None)

    @property
    def median_ms(self) -> float | None:
        """Median of the kept samples, or None where none is left."""
        return statistics.median(self.kept_ms) if self.kept_ms else None

    @property
    def counts(self) -> bool:
        """Whether this window takes part in the fold."""
        return self.invalid is None and bool(self.kept_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All windows of one case in one run, folded into one interval.

    Attributes:
        source: file and line of the benchmark, such as ``suites/attention.py:12``.
        resolution_ms: time quantum of one sample.
        tier_evidence: sentences that say why the tier is what it is, first the deciding one.
        flops, bytes_moved: work of one call, or None where the benchmark does not say.
        fold_version: version of the folding method (``store.folding.FOLD_VERSION``).
        renamed_from: what the benchmark was called before, as its suite declares it, or None.
    """

    case: Case
    quantity: Quantity
    cache_state: CacheState
    tags: tuple[str, ...] = ()
    source: str
    interval: Interval
    resolution_ms: float
    tier: Tier
    tier_evidence: tuple[str, ...]
    kernels: tuple[Kernel, ...] = ()
    flops: float | None = None
    bytes_moved: float | None = None
    windows: tuple[Window, ...]
    fold_version: int
    renamed_from: str | None = None

    @property
    def counted_windows(self) -> tuple[Window, ...]:
        """The windows that take part in the fold."""
        return tuple(w for w in self.windows if w.counts)

    @property
    def tflops(self) -> float | None:
        """Throughput at the centre, in 1e12 operations a second."""
        return (
            None
            if self.flops is None or not self.interval.center
            else self.flops / self.interval.center * 1e-9
        )

    @property
    def bandwidth_tbs(self) -> float | None:
        """Bytes moved at the centre, in 1e12 bytes a second."""
        if self.bytes_moved is None or not self.interval.center:
            return None
        return self.bytes_moved / self.interval.center * 1e-9


class Stage(StrEnum):
    """Where a benchmark failed."""

    IMPORT = "import"  # the suite file could not be imported: no case of it exists
    SETUP = "setup"
    CALL = "call"
    CHECK = "check"  # the output differs from the reference
    MEASURE = "measure"  # the timer refused to give a number
    WORKER = "worker"  # the process crashed, hung or was killed


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A benchmark, or a whole suite file, that gave no number.

    Attributes:
        case: None where a suite file could not be imported.
        kind: the exception's type, or a code such as ``time-limit`` or ``signal-11``.
        message: what happened and what to do next, one paragraph.
        source: file and line the failure points at.
        log: traceback or the last lines of the worker's output.
        pass_index: the pass in which it happened, or None.
    """

    case: Case | None
    stage: Stage
    kind: str
    message: str
    source: str
    log: str = ""
    pass_index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit as git tells it."""

    sha: str
    parents: tuple[str, ...]
    author: str
    authored_at: datetime
    committed_at: datetime
    subject: str

    def __post_init__(self) -> None:
        for sha in (self.sha, *self.parents):
            if not SHA_PATTERN.fullmatch(sha):
                raise RecordInvalid(f"{sha!r} is not a full commit id")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitTag:
    """A tag on a commit of a run's history, as git told it when the run was measured.

    Attributes:
        name: without ``refs/tags/``.
        commit_sha: the commit that it points at in the end.
    """

    name: str
    commit_sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """One ``collect`` on one commit and one GPU, without its measurements.

    Attributes:
        run_id: a UUID; a run written twice exists once.
        repository: where the code lives, such as ``github.com/owner/name``, without credentials.
        commit_sha: the measured commit, or None where the code is in no repository.
        dirty: the working tree differed from that commit.
        base_ref, merge_base: the branch the commit is judged against and where it left it.
        history_note: why the history is not known in full (a shallow clone, say), or None.
        gpu_uuid: the physical GPU, or ``cpu:<host>``.
        environment: the environment part of the series key.
        passes: passes asked for.
        suites: paths from the top folder of the checkout, or ``builtin``.
        interrupted: the run was ended early; what it holds was measured in full.
        context: readings of machine and software, by dotted name such as ``gpu.power_limit_w``.
        paired_with: the run of another commit whose passes took turns with those of this one.
        paired_role: which side of that pair this run is.
        aa_study: the study it was made for, several runs of the same code; see ``store.studies``.
        confirms_run_id: the run on the same commit whose flagged benchmarks were measured again.

    Raises:
        RecordInvalid: only one of ``paired_with`` and ``paired_role`` is given, or the run is
            paired with itself, or confirms itself.
    """

    run_id: str
    repository: str
    commit_sha: str | None
    dirty: bool
    base_ref: str | None = None
    merge_base: str | None = None
    history_note: str | None = None
    started_at: datetime
    ended_at: datetime
    gpu_uuid: str
    gpu_name: str
    timer: Timer
    clock_regime: ClockRegime
    environment: str
    passes: int
    seed: int
    suites: tuple[str, ...]
    tool_version: str
    protocol_version: int
    interrupted: bool = False
    context: Mapping[str, Reading] = field(default_factory=dict)
    paired_with: str | None = None
    paired_role: PairedRole | None = None
    aa_study: str | None = None
    confirms_run_id: str | None = None

    def __post_init__(self) -> None:
        if (self.paired_with is None) != (self.paired_role is None):
            raise RecordInvalid(
                f"a paired run names the other run and its own role, not {self.paired_with!r} and "
                f"{self.paired_role!r}"
            )
        if self.paired_with == self.run_id:
            raise RecordInvalid(f"run {self.run_id} is paired with itself")
        if self.confirms_run_id == self.run_id:
            raise RecordInvalid(f"run {self.run_id} confirms itself")

    @property
    def speaks_for_itself(self) -> bool:
        """Whether it was measured for its own sake, and not for that of another run.

        A run that confirms another holds only what that one had flagged; the baseline of a pair is
        there for its candidate to be judged by.
        """
        return self.confirms_run_id is None and self.paired_role is not PairedRole.BASELINE

    @property
    def sitting(self) -> str | None:
        """The A/A study or the bisection that had it measured, among others, one right after another."""
        bisection = self.context.get(BISECTION)
        return self.aa_study if bisection is None else str(bisection.value)

    def series_key(self, case: Case, quantity: Quantity, cache_state: CacheState) -> SeriesKey:
        """The key of a measurement of this run."""
        return SeriesKey(
            case=case, quantity=quantity, gpu_uuid=self.gpu_uuid, timer=self.timer,
            cache_state=cache_state, clock_regime=self.clock_regime, environment=self.environment,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run with everything that was measured in it.

    Attributes:
        history: the measured commit and its first-parent ancestors, newest first, then the
            merge-base's where it lies on another line; bounded by the collector.
        git_tags: the tags on these commits.
    """

    header: RunHeader
    measurements: tuple[Measurement, ...]
    failures: tuple[Failure, ...] = ()
    history: tuple[Commit, ...] = ()
    git_tags: tuple[GitTag, ...] = ()

    def series_key(self, measurement: Measurement) -> SeriesKey:
        """The series a measurement of this run belongs to."""
        return self.header.series_key(measurement.case, measurement.quantity, measurement.cache_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """A measurement as judges and charts need it: its statistics without raw samples.

    Attributes:
        window_medians_ms: medians of the windows that count, in pass order.
        window_passes: the pass of each of them.
        n_samples, n_left_out: kept samples, and samples left out of the fold.
        renamed_from: as in ``Measurement``.
    """

    header: RunHeader
    series: SeriesKey
    interval: Interval
    resolution_ms: float
    tier: Tier
    tier_evidence: tuple[str, ...]
    tags: tuple[str, ...]
    source: str
    window_medians_ms: tuple[float, ...]
    window_passes: tuple[int, ...]
    n_samples: int
    n_left_out: int
    kernels: tuple[Kernel, ...] = ()
    flops: float | None = None
    bytes_moved: float | None = None
    renamed_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondSession:
    """What another session on the same commit showed of a flagged change.

    Attributes:
        run_id: the other session's run.
        effect, effect_low, effect_high: as in that run's own verdict; None where it had none.
    """

    run_id: str
    outcome: Outcome
    reason: Reason
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far a measurement lies from the runs at an older point of its history.

    Attributes:
        since: that point: a release tag, or the beginning of a commit id where no release serves.
        effect: (measurement - runs) / runs; positive is slower.
        low, high: 95 % interval of the effect.
        apart: the intervals do not overlap, so that the change is more than noise.
        run_ids: those runs, nearest first.
    """

    since: str
    effect: float
    low: float
    high: float
    apart: bool
    run_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was decided about one series of one run, with its evidence.

    Attributes:
        effect: (candidate - baseline) / baseline; positive is slower. None without a baseline.
        effect_low, effect_high: 95 % interval of the effect.
        p_value, q_value: of the effect; q over the suite (Benjamini-Hochberg). Shown, never a gate.
        candidate, baseline: the intervals that were compared; the candidate's as widened.
        smallest_seen: the smallest relative slowdown that would have been flagged.
        message: one sentence that says what was decided and why.
        drift: the second comparison, with the runs up to a release; None where it was not made.
        second: the session that the standing rests on beside this one; None where a flag has met
            no other session, and where nothing was flagged.
    """

    run_id: str
    series: SeriesKey
    outcome: Outcome
    reason: Reason
    message: str
    standing: Standing
    tier: Tier
    windows: int
    candidate: Interval
    baseline: Interval | None
    baseline_kind: BaselineKind
    baseline_run_ids: tuple[str, ...] = ()
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    smallest_seen: float | None = None
    drift: Drift | None = None
    second: SecondSession | None = None
    judged_at: datetime
