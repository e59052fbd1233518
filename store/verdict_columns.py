"""Very many verdicts at once: kept as columns, and written in one transaction.

A verdict has more than forty columns. Rows of JSON, which suit a run's hundred verdicts, take
a hundred microseconds each; whole columns take about a tenth.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from store.errors import StoreInvalid
from store.records import Outcome, Standing
from store.rows import columns_of, series_columns, storable, to_instant
from store.run_lists import forget_unused_lists, insert_lists, list_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    import duckdb
    from numpy.typing import NDArray

    from store.database import Database
    from store.records import SeriesKey, Verdict

# Text and truth travel as text: what a column holds is said by the table, not guessed from some rows.
_AS_TEXT = "set pandas_analyze_sample = 0"
_NAMED = """
create temp table rewritten as select added.run_id, known_series.series_id, added.outcome, added.standing
from added join known_series on known_series.code = added.series
"""
_COUNTED = """
select verdicts.outcome, verdicts.standing, rewritten.outcome, rewritten.standing, count(*)
from rewritten left join verdicts using (run_id, series_id)
group by all
order by all
"""
_DELETE = """
delete from verdicts where exists (
    select 1 from rewritten
    where rewritten.run_id = verdicts.run_id and rewritten.series_id = verdicts.series_id
)
"""
# Where each column comes from: a field of the verdict, or of a record in it, which may be None.
_NUMBERS = {
    **{f"candidate_{name}_ms": ("candidate", name) for name in ("center", "low", "high")},
    **{f"baseline_{name}_ms": ("baseline", name) for name in ("center", "low", "high")},
    "baseline_windows": ("baseline", "windows"),
    **{name: (name,) for name in ("effect", "effect_low", "effect_high", "p_value", "smallest_seen")},
    **{f"drift_{name}": ("drift", name) for name in ("effect", "low", "high")},
    **{f"second_{name}": ("second", name) for name in ("effect", "effect_low", "effect_high")},
}
_WHOLE = {"windows": ("windows",), "candidate_windows": ("candidate", "windows")}
_TEXTS = {
    **{name: (name,) for name in ("run_id", "outcome", "reason", "message", "standing", "tier")},
    "candidate_status": ("candidate", "status"),
    "baseline_status": ("baseline", "status"),
    "baseline_kind": ("baseline_kind",),
    "drift_since": ("drift", "since"),
    "drift_apart": ("drift", "apart"),
    **{f"second_{name}": ("second", name) for name in ("run_id", "outcome", "reason")},
}
_LISTS = {"baseline_list": ("baseline_run_ids",), "drift_list": ("drift", "run_ids")}
_OWN = {*_WHOLE, *_TEXTS, *_LISTS, "judged_at"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """How many verdicts had one outcome and standing before and another, or the same, after.

    Attributes:
        before: None where there was no verdict.
    """

    before: tuple[Outcome, Standing] | None
    after: tuple[Outcome, Standing]
    number: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """A column of few values: each of them once, and by row the place of its own."""

    values: Sequence[Any]
    which: NDArray[np.intp]


class VerdictColumns:
    """Verdicts as columns. None is kept apart from a number that is none."""

    def __init__(self) -> None:
        self._chunks: list[dict[str, NDArray[Any]]] = []
        self._series: dict[SeriesKey, int] = {}
        self._lists: set[tuple[str, ...]] = set()
        self.count = 0

    def add(self, verdicts: Sequence[Verdict], q_values: Sequence[float | None]) -> None:
        """Add verdicts, each with the q-value that it is to have; its own is not looked at.

        Raises:
            StoreInvalid: a number is not finite, or an instant has no time zone.
        """
        if not verdicts:
            return
        numbers = {name: _column(verdicts, path) for name, path in _NUMBERS.items()} | {"q_value": q_values}
        self._chunks.append(
            {
                **{name: _numbers(name, values) for name, values in numbers.items()},
                **{name: np.array(_column(verdicts, path)) for name, path in _WHOLE.items()},
                **{name: _texts(_column(verdicts, path)) for name, path in _TEXTS.items()},
                "judged_at": _instants(_column(verdicts, ("judged_at",))),
                "series": _codes(_column(verdicts, ("series",)), self._series),
                **{name: self._ids(_column(verdicts, path)) for name, path in _LISTS.items()},
            }
        )
        self.count += len(verdicts)

    def add_columns(self, columns: Mapping[str, Any], *, judged_at: datetime) -> None:
        """Add verdicts that are columns already.

        Args:
            columns: named as in the store, with ``series`` for all that says what was measured. Each
                is an array or a list, a ``Repeated``, or one value for every row. NaN stands for a
                number that is missing, and what is not named is missing in every row.
            judged_at: when they were decided.

        Raises:
            StoreInvalid: a number is infinite, or the instant has no time zone.
        """
        count = len(columns["message"])
        self._chunks.append(
            {
                **{name: _spread(name, columns.get(name, np.nan), count) for name in (*_NUMBERS, "q_value")},
                **{name: np.asarray(columns[name]) for name in _WHOLE},
                **{name: _text_column(columns.get(name), count) for name in _TEXTS},
                "judged_at": np.repeat(_instants([judged_at]), count),
                "series": _codes(columns["series"].values, self._series)[columns["series"].which],
                **{name: self._repeated_ids(columns.get(name), count) for name in _LISTS},
            }
        )
        self.count += count

    def _ids(self, lists: Sequence[tuple[str, ...] | None]) -> NDArray[np.object_]:
        """The ids of lists of runs, which are stored with the verdicts."""
        self._lists.update(run_ids for run_ids in lists if run_ids is not None)
        return _texts([None if run_ids is None else list_id(run_ids) for run_ids in lists])

    def _repeated_ids(self, lists: Repeated | None, count: int) -> NDArray[np.object_]:
        if lists is None:
            return _text_column(None, count)
        ids = self._ids(lists.values)
        return ids[lists.which]

    def save(self, database: Database) -> list[Rewritten]:
        """Store all of them in one transaction, in place of earlier verdicts on the same runs and series.

        Raises:
            StoreError: the store could not be opened or written; then nothing is changed.
        """
        if not self._chunks:
            return []
        with database.writing() as connection:
            connection.execute(_AS_TEXT)
            columns = list(columns_of(connection, "verdicts"))
            self._register(connection)
            connection.execute(_NAMED)
            counted = connection.execute(_COUNTED).fetchall()
            connection.execute(_DELETE)
            insert_lists(connection, self._lists)
            connection.execute(_insertion(columns))
            forget_unused_lists(connection)
        return [
            Rewritten(
                before=None if outcome is None else (Outcome(outcome), Standing(standing)),
                after=(Outcome(new_outcome), Standing(new_standing)),
                number=number,
            )
            for outcome, standing, new_outcome, new_standing, number in counted
        ]

    def _register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the verdicts and their series known to a query."""
        names = self._chunks[0]
        added = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in names}
        connection.register("added", added)
        rows: dict[str, list[Any]] = defaultdict(list)
        for key in self._series:
            for name, value in series_columns(key).items():
                rows[name].append(storable(value))
        codes = np.arange(len(self._series))
        connection.register("known_series", {"code": codes, **{n: _texts(v) for n, v in rows.items()}})


def _insertion(columns: Iterable[str]) -> str:
    def expression(name: str) -> str:
        if name in _NUMBERS or name == "q_value":
            return f"case when isnan(added.{name}) then null else added.{name} end"
        return f"added.{name}" if name in _OWN else f"known_series.{name}"

    values = ", ".join(f"{expression(name)} as {name}" for name in columns)
    return (
        f"insert into verdicts by name select {values} from added "  # noqa: S608 - names come from the schema
        "join known_series on known_series.code = added.series"
    )


def _column(verdicts: Sequence[Verdict], path: Sequence[str]) -> list[Any]:
    """What lies at a path in each verdict; None where the way there ends early."""
    found: list[Any] = list(map(attrgetter(path[0]), verdicts))
    for name in path[1:]:
        get = attrgetter(name)
        found = [None if record is None else get(record) for record in found]
    return found


def _codes(values: Sequence[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """The number of each value among those that are known, which becomes so with this."""
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def _numbers(name: str, values: Sequence[float | None]) -> NDArray[np.float64]:
    """A column in which NaN stands for None, after a look that nothing else does."""
    column = np.array(values, dtype=np.float64)
    finite = int(np.isfinite(column).sum())
    if finite + values.count(None) != len(values):
        wrong = next(v for v in values if v is not None and not np.isfinite(v))
        raise StoreInvalid(f"a verdict has a {name} of {wrong}, which is not finite: leave it out")
    return column


def _spread(name: str, values: Any, count: int) -> NDArray[np.float64]:
    """A column in which NaN stands for None already."""
    column = np.broadcast_to(np.asarray(values, dtype=np.float64), (count,))
    if np.isinf(column).any():
        raise StoreInvalid(f"a verdict has an infinite {name}: leave it out")
    return column


def _text_column(values: Any, count: int) -> NDArray[np.object_]:
    if isinstance(values, Repeated):
        texts = _texts(values.values)
        return texts[values.which]
    return _texts(values) if isinstance(values, list) else np.repeat(_texts([values]), count)


def _texts(values: Sequence[Any]) -> NDArray[np.object_]:
    """A column of text, in which truth is written as a word; None stays None."""
    column = np.empty(len(values), dtype=np.object_)
    column[:] = [str(value) if isinstance(value, bool) else storable(value) for value in values]
    return column


def _instants(moments: Sequence[datetime]) -> NDArray[np.datetime64]:
    if any(moment.utcoffset() is None for moment in set(moments)):
        raise StoreInvalid("a verdict's judged_at has no time zone")
    stored = {moment: np.datetime64(to_instant(moment), "us") for moment in set(moments)}
    return np.array([stored[moment] for moment in moments], dtype="datetime64[us]")
