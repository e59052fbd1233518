"""Parameter sweeps of one run: cases of a benchmark that differ in the value of one number. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.differences import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.records import Quantity, SeriesPoint

_VALUES_MIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One benchmark over one of its parameters.

    Attributes:
        parameter: whose values are on the axis.
        lines: points by what else distinguishes their cases, each in the order of the values.
    """

    benchmark: str
    parameter: str
    quantity: Quantity
    lines: dict[str, list[tuple[float, SeriesPoint]]]

    @property
    def name(self) -> str:
        """What the sweep is called in a list and in an address."""
        return f"{self.benchmark} over {self.parameter}"


def sweeps(points: Iterable[SeriesPoint]) -> list[Sweep]:
    """Every sweep that the measurements of one run hold, by name.

    Truth values and text are no numbers; a parameter with one value is no sweep.
    """
    groups: dict[tuple[str, str, Quantity], list[tuple[float, SeriesPoint]]] = defaultdict(list)
    for point in points:
        case = point.series.case
        if SENTINEL in point.tags or point.interval.center is None:
            continue
        for name, value in case.parameters:
            if isinstance(value, int | float) and not isinstance(value, bool):
                groups[(case.benchmark, name, point.series.quantity)].append((float(value), point))
    found = [
        Sweep(benchmark=benchmark, parameter=name, quantity=quantity, lines=_lines(own, name))
        for (benchmark, name, quantity), own in groups.items()
    ]
    return sorted((sweep for sweep in found if sweep.lines), key=lambda sweep: sweep.name)


def _lines(
    points: Sequence[tuple[float, SeriesPoint]], parameter: str
) -> dict[str, list[tuple[float, SeriesPoint]]]:
    """Lines of at least two values, by the other parameters and the cache state."""
    lines: dict[str, list[tuple[float, SeriesPoint]]] = defaultdict(list)
    for value, point in points:
        others = [f"{name}={given}" for name, given in point.series.case.parameters if name != parameter]
        lines[", ".join([*others, f"{point.series.cache_state} cache"])].append((value, point))
    return {
        words: sorted(line, key=lambda pair: pair[0])
        for words, line in lines.items()
        if len({value for value, _ in line}) >= _VALUES_MIN
    }
