"""What counts as a change: every threshold in one place, each with its why."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from store import shown
from store.comparing import POOL_RUNS_MAX, POOL_RUNS_MIN
from store.errors import ConfigurationInvalid
from store.records import RecordInvalid, Tier
from store.settings import NotEmpty, Within, check_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.records import Case

_RANK = {Tier.A: 0, Tier.B: 1, Tier.C: 2}
_POOL_MAX = 1000

Share = Annotated[float, Within(0, 1, high_open=True, unit="(a share: 0.02 is 2 %)")]
Probability = Annotated[float, Within(0, 1, low_open=True, high_open=True, unit="(a probability)")]
PoolRuns = Annotated[int, Within(POOL_RUNS_MIN, _POOL_MAX, unit="runs")]
Globs = Annotated[tuple[str, ...], NotEmpty()]


class Better(StrEnum):
    """Which way a number without a unit is better. Of times, less always is."""

    SMALLER = "smaller"
    LARGER = "larger"


def reaches(tier: Tier, minimum: Tier) -> bool:
    """Whether ``tier`` can be trusted at least as far as ``minimum``."""
    return _RANK[tier] <= _RANK[minimum]


class Rules(Protocol):
    """What a whole run is judged by: one policy for every case, or one that differs by benchmark."""

    @property
    def general(self) -> Policy:
        """What holds for the run as a whole, and for every case that nothing else is said about."""

    def of(self, case: Case) -> Policy:
        """The thresholds of one case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Thresholds of judging. The evidence behind them is in docs/decisions/0004-verdicts.md.

    Attributes:
        confirm_effect: the smallest relative change that can be confirmed. Below one per cent
            a real difference is seldom worth a person's time, and a run-to-run spread that was
            underestimated looks exactly like it. The timer's quantum can raise it.
        flag_effect: the smallest relative change that is flagged at all. Zero, as intervals that
            are apart are rare enough for the same code; more where nobody would act on less.
        minimum_tier: the lowest tier that gets a verdict. A tier C number was taken while the
            machine moved or could not be watched, so a difference says nothing about the code.
        pool_size: runs in a baseline pool. Twenty give an interval that stays tight, and are
            recent enough to follow the code.
        pool_minimum: fewest runs that make a pool. Below six, order statistics give no 95 %
            interval, and the spread between runs is a guess.
        sentinel_effect: how far a sentinel has to move against a *single* run, or beside its
            own pair, before the machine is blamed. The spread between sessions is unknown in
            the one case, and a pair sees changes that are too small to matter in the other;
            against a pool, apart is enough. It holds for whole runs.
        paired_p: the largest p-value of a paired effect that flags a change although the
            intervals of the two runs overlap, as they do where the machine drifts.
        drift_confidence: how sure a drift has to be. Stricter than the 95 % of the first comparison,
            because it is a second one, against runs that stay the same for many commits.
        ratio_better: which way a ratio is better. Smaller, as the collector's ratios are the
            subject over another implementation; larger where the subject is what others are
            to be faster than.
        release_tags: globs over the names of the git tags that are releases. It holds for
            whole runs.
        reach_runs: how many runs on ancestors are searched for a baseline, newest first. It
            bounds the time a verdict takes in a store with years of history. It holds for
            whole runs.

    Raises:
        RecordInvalid: a value lies out of range.
    """

    confirm_effect: Share = 0.01
    flag_effect: Share = 0.0
    minimum_tier: Tier = Tier.B
    pool_size: PoolRuns = POOL_RUNS_MAX
    pool_minimum: PoolRuns = POOL_RUNS_MIN
    sentinel_effect: Share = 0.01
    paired_p: Probability = 0.001
    drift_confidence: Probability = 0.99
    ratio_better: Better = Better.SMALLER
    release_tags: Globs = ("v*",)
    reach_runs: Annotated[int, Within(1, 100_000, unit="runs")] = 400

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.pool_minimum > self.pool_size:
            raise RecordInvalid(
                f"pool_minimum {self.pool_minimum} is more than pool_size {self.pool_size}: "
                "a pool could never be formed"
            )

    @property
    def differences(self) -> dict[str, Any]:
        """What is not as by default, by name."""
        return {
            entry.name: value
            for entry in fields(self)
            if (value := getattr(self, entry.name)) != entry.default
        }

    @property
    def note(self) -> str | None:
        """What is not as by default, in words that a reader of a verdict can check; or None."""
        return _note_of(self)

    @property
    def general(self) -> Policy:
        """Itself: one policy for everything is a set of rules too."""
        return self

    def of(self, case: Case) -> Policy:
        """Itself, whatever the case."""
        del case
        return self


@lru_cache(maxsize=1024)  # it is asked for with every verdict
def _note_of(policy: Policy) -> str | None:
    default = Policy()
    said = [
        f"{name} {plain(value)} instead of {plain(getattr(default, name))}"
        for name, value in policy.differences.items()
    ]
    return ", ".join(said) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Other thresholds for some benchmarks; what is None stays as it is.

    Attributes:
        benchmarks: globs over the names and the labels of cases; one that matches is enough.
    """

    benchmarks: Globs
    confirm_effect: Share | None = None
    flag_effect: Share | None = None
    minimum_tier: Tier | None = None
    pool_size: PoolRuns | None = None
    pool_minimum: PoolRuns | None = None
    paired_p: Probability | None = None
    drift_confidence: Probability | None = None
    ratio_better: Better | None = None

    def matches(self, case: Case) -> bool:
        """Whether it says something about a case."""
        return any(matches(case, glob) for glob in self.benchmarks)

    @property
    def values(self) -> Mapping[str, Any]:
        """The thresholds that it gives."""
        given = {
            entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "benchmarks"
        }
        return {name: value for name, value in given.items() if value is not None}


def plain(value: Any) -> str:
    """A threshold as one writes it in a file, without quotes: ``0.01``, ``B``, ``v*, r*``."""
    if isinstance(value, tuple):
        return ", ".join(shown.visible(entry, limit=40) for entry in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def matches(case: Case, glob: str) -> bool:
    """Whether a glob means a case, by the benchmark's name or by the label; as ``collect --only``."""
    return any(fnmatchcase(name, glob) for name in (case.benchmark, case.label))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """A general policy and what differs from it by benchmark, the later override winning.

    Raises:
        ConfigurationInvalid: an override contradicts the general policy.
    """

    general: Policy = field(default_factory=Policy)
    overrides: tuple[Override, ...] = ()
    _known: dict[Case, Policy] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for number, override in enumerate(self.overrides, 1):
            try:
                replace(self.general, **override.values)
            except RecordInvalid as error:
                raise ConfigurationInvalid(f"override {number}: {error}") from error

    def of(self, case: Case) -> Policy:
        """The thresholds of one case.

        Raises:
            ConfigurationInvalid: overrides that match the case contradict each other.
        """
        found = self._known.get(case)
        if found is None:
            found = self._known[case] = self._resolved(case)
        return found

    def deciding(self, case: Case) -> dict[str, int]:
        """The number of the override, counted from one, that gives a case each threshold that has one."""
        return {
            name: number
            for number, override in enumerate(self.overrides, 1)
            if override.matches(case)
            for name in override.values
        }

    def _resolved(self, case: Case) -> Policy:
        values: dict[str, Any] = {}
        for override in self.overrides:
            if override.matches(case):
                values |= override.values
        try:
            return replace(self.general, **values) if values else self.general
        except RecordInvalid as error:
            raise ConfigurationInvalid(
                f"the overrides of [judge] that match {shown.visible(case.label)} contradict "
                f"each other: {error}"
            ) from error
