"""What counts as a change: every threshold in one place, each with its why."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from store.folding import WINDOWS_MIN
from store.records import RecordInvalid, Tier
from store.settings import NotEmpty, Within, check_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.records import Case

_RANK = {Tier.A: 0, Tier.B: 1, Tier.C: 2}
_POOL_MAX = 1000

Share = Annotated[float, Within(0, 1, high_open=True, unit="(a share: 0.02 is 2 %)")]
Probability = Annotated[float, Within(0, 1, low_open=True, high_open=True, unit="(a probability)")]
PoolRuns = Annotated[int, Within(WINDOWS_MIN, _POOL_MAX, unit="runs")]
Globs = Annotated[tuple[str, ...], NotEmpty()]


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
        reach_runs: how many runs on ancestors are searched for a baseline, newest first. It
            bounds the time a verdict takes in a store with years of history. It holds for
            whole runs.

    Raises:
        RecordInvalid: a value lies out of range.
    """

    confirm_effect: Share = 0.01
    minimum_tier: Tier = Tier.B
    pool_size: PoolRuns = 20
    pool_minimum: PoolRuns = WINDOWS_MIN
    sentinel_effect: Share = 0.01
    paired_p: Probability = 0.001
    reach_runs: Annotated[int, Within(1, 100_000, unit="runs")] = 400

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.pool_minimum > self.pool_size:
            raise RecordInvalid(
                f"pool_minimum {self.pool_minimum} is more than pool_size {self.pool_size}: "
                "a pool could never be formed"
            )

    @property
    def general(self) -> Policy:
        """Itself: one policy for everything is a set of rules too."""
        return self

    def of(self, case: Case) -> Policy:
        """Itself, whatever the case."""
        del case
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Other thresholds for some benchmarks; what is None stays as it is.

    Attributes:
        benchmarks: globs over the names and the labels of cases; one that matches is enough.
    """

    benchmarks: Globs
    confirm_effect: Share | None = None
    minimum_tier: Tier | None = None
    pool_size: PoolRuns | None = None
    pool_minimum: PoolRuns | None = None
    paired_p: Probability | None = None

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


def matches(case: Case, glob: str) -> bool:
    """Whether a glob means a case, by the benchmark's name or by the label; as ``collect --only``."""
    return any(fnmatchcase(name, glob) for name in (case.benchmark, case.label))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """A general policy and what differs from it by benchmark, the later override winning.

    Raises:
        RecordInvalid: an override contradicts the general policy.
    """

    general: Policy = field(default_factory=Policy)
    overrides: tuple[Override, ...] = ()
    _known: dict[Case, Policy] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for override in self.overrides:
            replace(self.general, **override.values)

    def of(self, case: Case) -> Policy:
        """The thresholds of one case.

        Raises:
            RecordInvalid: overrides that match the case contradict each other.
        """
        found = self._known.get(case)
        if found is None:
            found = self._known[case] = self._resolved(case)
        return found

    def _resolved(self, case: Case) -> Policy:
        values: dict[str, Any] = {}
        for override in self.overrides:
            if override.matches(case):
                values |= override.values
        return replace(self.general, **values) if values else self.general
