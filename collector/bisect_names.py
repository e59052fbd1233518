"""Which benchmarks a bisection means, whatever a commit of its line calls them."""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from collector.attempts import COMMIT_ERRORS
from collector.errors import NothingMeasuredError
from collector.loaded import SENTINEL_TAG
from collector.run import open_session
from store import shown
from store.older_names import NO_RENAMES, Renames
from store.records import Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.loaded import CaseInfo
    from collector.run import Plan
    from store.records import SeriesKey


@dataclass(frozen=True)
class Names:
    """The benchmarks that are meant.

    Attributes:
        only: globs over names and labels, those of older names among them.
        renames: the older names, each with the one at the later end.
    """

    only: tuple[str, ...]
    renames: Renames = NO_RENAMES

    def means(self, case: Case) -> bool:
        """Whether a case, as it was measured, is one of them."""
        return any(_chosen(name, self.only) for name in (case.benchmark, case.label))

    def alike(self, one: SeriesKey, other: SeriesKey) -> bool:
        """Whether two series are the same but for a rename."""
        return self.renames.series(one) == self.renames.series(other)


def only_of(benchmark: str) -> tuple[str, ...]:
    """Globs that choose a benchmark by a glob, by its name, or by a label such as ``softmax[rows=8]``."""
    return tuple(dict.fromkeys((benchmark, glob.escape(benchmark))))


def names_at(plan: Plan, stored: Sequence[tuple[str, str]]) -> Names:
    """The names that a plan's benchmarks have at its revision, and had before.

    Nothing is measured: the suite is loaded, since it may declare a rename that no run knows yet.
    One that cannot be loaded declares none; measuring it will say why. With one suite for every
    commit each has the same names.

    Args:
        plan: its globs may choose by today's or by an older name.
        stored: (old name, new name) pairs that runs of the repository were measured with.

    Raises:
        NothingMeasuredError: the whole suite could be loaded, and has no such benchmark.
        CollectorError: the machine cannot measure as asked.
        StoreError: git does not know the revision.
    """
    try:
        with open_session(replace(plan, only=())) as session:
            loaded = session.loaded
    except COMMIT_ERRORS:
        return Names(plan.only)
    known = [case for case in loaded.known.values() if SENTINEL_TAG not in case.tags]
    names = names_among(plan.only, known, stored) if plan.suite_from is None else Names(plan.only)
    if not loaded.failures and not any(names.means(_case(info)) for info in known):
        raise NothingMeasuredError(_no_such(plan, known))
    return names


def names_among(only: Sequence[str], known: Sequence[CaseInfo], stored: Sequence[tuple[str, str]]) -> Names:
    """As ``names_at``, from the cases of a suite: pure."""
    declared = [(case.renamed_from, case.benchmark) for case in known if case.renamed_from is not None]
    renames = Renames.of([*stored, *declared], {case.benchmark for case in known})
    added: list[str] = []
    for info in known:
        case = _case(info)
        names = [case, *(Case(old, case.parameters) for old in renames.old_names(case.benchmark))]
        for said in ([each.benchmark for each in names], [each.label for each in names]):
            if any(_chosen(name, only) for name in said):
                added += [glob.escape(name) for name in said if not _chosen(name, only)]
                break
    return Names((*only, *dict.fromkeys(added)), renames)


def _case(info: CaseInfo) -> Case:
    return Case.of(info.benchmark, info.parameters)


def _no_such(plan: Plan, known: Sequence[CaseInfo]) -> str:
    asked = plan.only[0]
    names = sorted({name for info in known for name in (info.benchmark, info.label)})
    near = get_close_matches(asked, names, n=1)
    hint = f"the nearest is {near[0]!r}" if near else "`collect list` shows the names"
    where = shown.short(plan.revision) if plan.suite_from is None else f"the suite of {plan.suite_from}"
    return shown.one_line(f"no benchmark of {where} matches {asked!r}: {hint}")


def _chosen(name: str, only: Iterable[str]) -> bool:
    return any(fnmatchcase(name, each) for each in only)
