"""``compare``: several implementations of one thing, timed in the order A B C C B A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.calls import Call
from collector.errors import MixedTimersError
from collector.instrument.bootstrap import median_interval, percentile, ratio_interval
from collector.instrument.kernels import Method, timed_samples
from collector.instrument.machine import claimed_gpu
from collector.instrument.policies import UnlockedClockPolicy
from collector.instrument.results import Sample, busy_median_ms, known
from collector.pacing import Pacer
from collector.window import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.instrument.policies import ClockPolicy


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One implementation. Times are in milliseconds of ``device_busy_ms``.

    Attributes:
        samples: those of the first pass, then those of the second.
        ci95_lo_ms, ci95_hi_ms: bootstrap interval of the median, of these two passes only.
        ratio: its median over that of the first implementation: above 1 is slower.
        ratio_lo, ratio_hi: bootstrap interval of the ratio, likewise.
    """

    name: str
    samples: tuple[Sample, ...]
    median_ms: float
    ci95_lo_ms: float
    ci95_hi_ms: float
    p10_ms: float
    p90_ms: float
    ratio: float
    ratio_lo: float
    ratio_hi: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """What ``compare`` gives, in the order of the implementations."""

    implementations: tuple[Compared, ...]

    def __getitem__(self, name: str) -> Compared:
        """One implementation by its name."""
        for one in self.implementations:
            if one.name == name:
                return one
        names = ", ".join(one.name for one in self.implementations)
        raise KeyError(f"{name} was not compared; compared were {names}")

    @property
    def sm_clocks_mhz(self) -> tuple[int, int] | None:
        """Lowest and highest SM clock over all samples; None where it could not be read."""
        clocks = known([s.sm_clock_mhz for one in self.implementations for s in one.samples])
        return (min(clocks), max(clocks)) if clocks else None

    def __repr__(self) -> str:
        first = self.implementations[0]
        clocks = self.sm_clocks_mhz
        at = "SM clock unknown" if clocks is None else f"SM clock {clocks[0]} to {clocks[1]} MHz"
        width = max(len(one.name) for one in self.implementations)
        lines = [f"Comparison ({first.samples[0].timing}, {at}; intervals of these two passes only):"]
        for one in self.implementations:
            line = (
                f"  {one.name:{width}}  {one.median_ms:.5g} ms [{one.ci95_lo_ms:.5g}, {one.ci95_hi_ms:.5g}]"
            )
            if one is not first:
                line += f"  x{one.ratio:.4g} [{one.ratio_lo:.4g}, {one.ratio_hi:.4g}] of {first.name}"
            lines.append(line)
        return "\n".join(lines)


def compare(
    implementations: Mapping[str, Callable[[], object]],
    *,
    device: int = 0,
    budget: Budget = Budget(),  # noqa: B008 - frozen
    iterations: int | None = None,
    flush_l2: bool = True,
    count_copies: bool = False,
    launches_from_any_thread: bool = False,
    policy: ClockPolicy | None = None,
    allow_events: bool = False,
) -> Comparison:
    """Time each implementation twice, in the order A B C C B A, and compare with the first.

    The symmetric order cancels a steady drift of clock and temperature. The budget is split and
    not doubled: each pass gets half of it, with half the bounds on iterations, and medians are
    over both passes.

    Args:
        implementations: calls without arguments, by name; at least two.
        device: index of the CUDA device, as torch numbers it.
        budget: of both passes together.
        iterations: timed calls of both passes together, instead of what fits into the budget.
        flush_l2: clear L2 before each call.
        count_copies: see ``bench_kernel``, as for the others.
        launches_from_any_thread: kernels belong to the iteration in which they were launched.
        policy: what to do about the clock; None is ``UnlockedClockPolicy()``.
        allow_events: all may be timed with CUDA events where CUPTI cannot time any.

    Raises:
        ValueError: fewer than two implementations.
        MixedTimersError: not all passes were timed alike, so they are no comparison.
        TypeError, CollectorError: see ``bench_kernel``.
    """
    if len(implementations) < 2:  # noqa: PLR2004 - two make a comparison
        raise ValueError(f"{len(implementations)} implementation given: compare needs at least two, by name")
    calls = {name: Call(fn) for name, fn in implementations.items()}
    chosen = UnlockedClockPolicy() if policy is None else policy
    method = Method(
        budget=budget,
        iterations=iterations,
        flush_l2=flush_l2,
        count_copies=count_copies,
        launches_from_any_thread=launches_from_any_thread,
        allow_events=allow_events,
    ).halved()
    samples: dict[str, list[Sample]] = {name: [] for name in calls}
    pacers = {name: Pacer(hold=chosen.paces) for name in calls}
    with claimed_gpu(device) as gpu, chosen.applied(gpu.uuid):
        for name in [*calls, *reversed(calls)]:
            taken, pacers[name] = timed_samples(calls[name], gpu, method, pacers[name])
            samples[name] += taken
            _require_one_method(samples)
    first = next(iter(samples.values()))
    return Comparison(tuple(_compared(name, taken, first) for name, taken in samples.items()))


def _require_one_method(samples: Mapping[str, list[Sample]]) -> None:
    """Refuse to go on once two ways of timing have met."""
    ways = {
        (sample.timing, sample.cache_state): f"{name} by {sample.timing} with {sample.cache_state} L2"
        for name, taken in samples.items()
        for sample in taken
    }
    if len(ways) > 1:
        reasons = {s.fallback_reason for taken in samples.values() for s in taken} - {None}
        because = f" ({'; '.join(sorted(map(str, reasons)))})" if reasons else ""
        raise MixedTimersError(
            f"timed were {' and '.join(ways.values())}{because}: these are different quantities. Mend what "
            "kept CUPTI from timing, and leave allow_events out"
        )


def _compared(name: str, samples: list[Sample], first: list[Sample]) -> Compared:
    busy = [sample.device_busy_ms for sample in samples]
    reference = [sample.device_busy_ms for sample in first]
    low, high = median_interval(busy)
    # A thing divided by itself is 1, and no drawing of samples can say otherwise.
    ratio_low, ratio_high = (1.0, 1.0) if samples is first else ratio_interval(busy, reference)
    return Compared(
        name=name,
        samples=tuple(samples),
        median_ms=busy_median_ms(samples),
        ci95_lo_ms=low,
        ci95_hi_ms=high,
        p10_ms=percentile(busy, 0.1),
        p90_ms=percentile(busy, 0.9),
        ratio=busy_median_ms(samples) / busy_median_ms(first),
        ratio_lo=ratio_low,
        ratio_hi=ratio_high,
    )
