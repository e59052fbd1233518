"""Typed values from a table of a configuration file: a dataclass says what the table may hold.

Each field is a key. Its type is the value's type, its default what holds where the key is
absent, and a ``Within`` or ``NotEmpty`` in ``Annotated`` bounds it. Types that can be read:
``bool``, ``int``, ``float``, ``str``, ``StrEnum``, dataclasses as tables, tuples of any of these as
arrays, and ``X | None`` for a key that may be absent.
"""

from __future__ import annotations

import difflib
import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from store import shown
from store.errors import ConfigurationInvalid
from store.records import RecordInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


@dataclass(frozen=True, slots=True)
class Within:
    """Bounds of a number, both ends included unless they are open."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False
    unit: str = ""

    def holds(self, value: float) -> bool:
        """Whether the value lies inside; NaN lies nowhere."""
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.low_open else f"from {self.low:g}"
        high = f"to below {self.high:g}" if self.high_open else f"to {self.high:g}"
        return f"{low} {high}{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """A list with at least one entry, or text with at least one character."""

    def holds(self, value: object) -> bool:
        """Whether it, and every text in it, has something in it."""
        return bool(value) and (not isinstance(value, tuple) or all(entry != "" for entry in value))

    def __str__(self) -> str:
        return "that is not empty"


Bound = Within | NotEmpty


@dataclass(frozen=True, slots=True)
class Place:
    """A table of a file, for messages.

    Attributes:
        file: path as it was found.
        table: dotted name, such as ``judge``.
        number: which one of an array of tables, counted from one; None for a single table.
    """

    file: str
    table: str
    number: int | None = None

    def below(self, key: str, number: int | None = None) -> Place:
        """The place of a table inside this one."""
        return Place(self.file, f"{self.table}.{key}", number)

    def __str__(self) -> str:
        table = shown.visible(self.table)
        heading = f"[{table}]" if self.number is None else f"[[{table}]] number {self.number}"
        return f"{shown.visible(self.file)}, {heading}"


def read_table(kind: type[Record], raw: Mapping[str, Any], place: Place) -> Record:
    """A record from the keys of a table.

    Raises:
        ConfigurationInvalid: a key is unknown or missing, a value has another type or lies out
            of range, or the values contradict each other.
    """
    hints, known = _hints(kind), [field.name for field in fields(kind)]
    for key in raw:
        if key not in hints:
            raise ConfigurationInvalid(f"{place}: unknown key {shown.visible(key)!r}{nearest(key, known)}")
    values = {key: _value(hints[key], value, key, place) for key, value in raw.items()}
    for field in fields(kind):
        needed = field.default is MISSING and field.default_factory is MISSING
        if needed and field.name not in values:
            raise ConfigurationInvalid(f"{place}: {field.name} is missing: give {allowed(hints[field.name])}")
    try:
        return kind(**values)
    except RecordInvalid as error:
        raise ConfigurationInvalid(f"{place}: {error}") from error


def check_bounds(record: DataclassInstance) -> None:
    """Hold a record that was made in code to the same bounds as one that was read.

    Raises:
        RecordInvalid: a value lies out of range.
    """
    for name, hint in _hints(type(record)).items():
        value = getattr(record, name)
        if value is not None and not all(bound.holds(value) for bound in _bounds(hint)):
            raise RecordInvalid(f"{name} is {value!r}: give {allowed(hint)}")


def allowed(hint: Any) -> str:
    """What a value of this type may be, in words."""
    kind = _plain(hint)
    if get_origin(kind) is tuple:
        words = f"a list of {_plural(_plain(get_args(kind)[0]))}"
    elif is_dataclass(kind):
        words = "a table"
    elif issubclass(kind, StrEnum):
        words = " or ".join(f'"{member.value}"' for member in kind)
    else:
        words = _NAMES[kind]
    return " ".join([words, *(str(bound) for bound in _bounds(hint))])


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is not known: the one most like it, and all there are."""
    names = sorted(known)
    alike = difflib.get_close_matches(word.lower().replace("-", "_"), names, n=1)
    guess = f": did you mean {alike[0]}?" if alike else "."
    return f"{guess} Known: {', '.join(names)}"


def _value(hint: Any, value: Any, key: str, place: Place) -> Any:
    kind = _plain(hint)
    read: Any = None
    if _is_table(kind) and isinstance(value, dict):
        read = read_table(kind, value, place.below(key))
    elif get_origin(kind) is tuple and isinstance(value, list):
        entry = _plain(get_args(kind)[0])
        if _is_table(entry) and all(isinstance(table, dict) for table in value):
            read = tuple(read_table(entry, table, place.below(key, n)) for n, table in enumerate(value, 1))
        else:
            read = tuple(_scalar(entry, part) for part in value)
    elif isinstance(kind, type):
        read = _scalar(kind, value)
    if isinstance(value, dict) and get_origin(kind) is tuple and _is_table(_plain(get_args(kind)[0])):
        raise ConfigurationInvalid(f"{place}: {key} is a list of tables: write [[{place.below(key).table}]]")
    unfit = read is None or (isinstance(read, tuple) and None in read)
    if unfit or not all(bound.holds(read) for bound in _bounds(hint)):
        raise ConfigurationInvalid(
            f"{place}: {key} is {shown.visible(repr(value), limit=80)}: give {allowed(hint)}"
        )
    return read


def _scalar(kind: type, value: Any) -> Any:
    """The value as the type wants it, or None where it is none of that type."""
    if is_dataclass(kind):  # and the value is no table
        return None
    if issubclass(kind, StrEnum):
        return kind(value) if isinstance(value, str) and value in list(kind) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if type(value) is kind else None  # a bool is an int, and never meant as one


def _is_table(kind: Any) -> TypeGuard[type[DataclassInstance]]:
    return isinstance(kind, type) and is_dataclass(kind)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _plain(hint: Any) -> Any:
    """The type without bounds, and without the None of a key that may be absent."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return _plain(next(part for part in get_args(hint) if part is not types.NoneType))
    return hint


def _bounds(hint: Any) -> list[Bound]:
    if get_origin(hint) is Annotated:
        own = [bound for bound in hint.__metadata__ if isinstance(bound, Within | NotEmpty)]
        return [*_bounds(get_args(hint)[0]), *own]
    if get_origin(hint) in (Union, types.UnionType):
        return [bound for part in get_args(hint) for bound in _bounds(part)]
    return []


def _plural(kind: Any) -> str:
    return {str: "texts in quotes", int: "whole numbers", float: "numbers"}.get(kind, "tables")
