"""A benchmark that was renamed keeps its history: old points are read as if they had the new name. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from store.records import Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.records import SeriesKey, SeriesPoint


@dataclass(frozen=True, slots=True)
class Renames:
    """The name that each older name has today; made with ``Renames.of``."""

    today: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, declared: Iterable[tuple[str, str]], measured: Iterable[str]) -> Renames:
        """From (old name, new name) pairs and the names in the run that is judged.

        A name that the run still measures was not given up, and one that two benchmarks claim
        belongs to neither: then the new name begins a history of its own.
        """
        claims: dict[str, set[str]] = defaultdict(set)
        for old, new in declared:
            claims[old].add(new)
        names = set(measured)
        single = {old: new for old, (new, *others) in claims.items() if not others and old not in names}
        followed = {old: _end(old, single) for old in single}
        return cls({old: new for old, new in followed.items() if new in names})

    @classmethod
    def between(
        cls, declared: Sequence[tuple[str, str]], judged: Iterable[str], beside: Iterable[str]
    ) -> Renames:
        """As ``of``, for two runs in any order: the one beside may have the newer names.

        Args:
            declared: (old name, new name) pairs.
            judged: the names in the run that is judged; the other run is read as if it had them.
            beside: the names in the run it is compared with.
        """
        names, others = set(judged), set(beside)
        back = cls.of(declared, others)
        older = {new: [old for old in back.old_names(new) if old in names] for new in others - names}
        forward = cls.of(declared, names)
        return cls({**forward.today, **{new: old[0] for new, old in older.items() if len(old) == 1}})

    def old_names(self, name: str) -> list[str]:
        """What a benchmark was called before, its own name not among them."""
        return sorted(old for old, new in self.today.items() if new == name)

    def case(self, case: Case) -> Case:
        """A case under the name that its benchmark has today."""
        new = self.today.get(case.benchmark)
        return case if new is None else Case(new, case.parameters)

    def series(self, series: SeriesKey) -> SeriesKey:
        """A series, likewise."""
        case = self.case(series.case)
        return series if case is series.case else replace(series, case=case)

    def earlier(self, series: SeriesKey) -> list[SeriesKey]:
        """A series under each name that its benchmark had before, as it was stored then."""
        case = series.case
        return [replace(series, case=Case(name, case.parameters)) for name in self.old_names(case.benchmark)]

    def points(self, points: Iterable[SeriesPoint]) -> list[SeriesPoint]:
        """Points, likewise."""
        return [
            point if (series := self.series(point.series)) is point.series else replace(point, series=series)
            for point in points
        ]


NO_RENAMES = Renames()


def _end(name: str, today: Mapping[str, str]) -> str:
    """Where a chain of renames leads; a chain that bites its own tail leads nowhere."""
    passed = {name}
    while name in today:
        name = today[name]
        if name in passed:
            break
        passed.add(name)
    return name
