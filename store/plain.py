"""Records as plain JSON values, and strictly back.

What comes in may be from anywhere. So nothing is guessed on the way back: every name must
be a field, every value of the field's type, every list and text within a limit. The
records then check themselves as they are made.
"""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from store.records import Case, RecordInvalid, Scalar
from store.rows import storable

TEXT_LENGTH_MAX = 1_000_000
LIST_LENGTH_MAX = 100_000
MAPPING_LENGTH_MAX = 1_000
_INTEGER_LIMIT = 2**63
_WORDS_LENGTH_MAX = 500
_SCALARS = frozenset(get_args(Scalar))
_NUMBERS = frozenset({float, int, types.NoneType})  # what the long lists of a window hold

Decoder = Callable[[Any], Any]
RecordT = TypeVar("RecordT")


class PlainInvalid(ValueError):  # noqa: N818 - named like the other store errors: what is wrong
    """A plain value does not make the record it should; says where, from the outside in."""

    def __init__(self, problem: str, *path: str | int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def inside(self, step: str | int) -> PlainInvalid:
        """The same problem, seen from one level further out."""
        return PlainInvalid(self.problem, step, *self.path)

    def __str__(self) -> str:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"{where.removeprefix('.') or 'the document'} {self.problem}"


def to_plain(value: Any) -> Any:
    """The value with every record as an object, every tuple as a list, every instant as text in UTC."""
    if isinstance(value, Case):
        return {"benchmark": storable(value.benchmark), "parameters": to_plain(dict(value.parameters))}
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {storable(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return list(value) if _NUMBERS.issuperset(map(type, value)) else [to_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return storable(value)


def from_plain(record_type: type[RecordT], value: Any) -> RecordT:
    """The record that ``to_plain`` took apart.

    Raises:
        PlainInvalid: the value does not make such a record; the message says where and why.
    """
    kind: Any = record_type
    record: RecordT = _decoder(kind)(value)
    return record


@cache
def _decoder(kind: Any) -> Decoder:
    """The function that turns a plain value into ``kind``, a type as annotated in a record."""
    if kind in _BASIC:
        return _BASIC[kind]
    if get_origin(kind) is not None:
        return _composite(get_origin(kind), get_args(kind))
    return _member_of(kind) if issubclass(kind, StrEnum) else _record_of(kind)


def _composite(origin: Any, arguments: tuple[Any, ...]) -> Decoder:
    if origin is tuple and arguments[-1] is Ellipsis:
        return _list_of(_decoder(arguments[0]))
    if origin is tuple:
        return _exactly([_decoder(argument) for argument in arguments])
    if origin is Mapping:
        return _mapping_of(_decoder(arguments[1]))
    if set(arguments) == _SCALARS:
        return _scalar
    (inner,) = (argument for argument in arguments if argument is not types.NoneType)
    return _optional(_decoder(inner))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise PlainInvalid(f"is {_named(value)}, and should be text")
    if len(value) > TEXT_LENGTH_MAX:
        raise PlainInvalid(f"is a text of {len(value)} characters; at most {TEXT_LENGTH_MAX} are taken")
    if storable(value) != value:
        raise PlainInvalid("holds half a surrogate pair, which is no text")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PlainInvalid(f"is {_named(value)}, and should be a whole number")
    if not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise PlainInvalid("is a whole number that does not fit 64 bits")
    return value


def _real(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise PlainInvalid(f"is {_named(value)}, and should be a number")
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise PlainInvalid("is a number too large for 64 bits")
    return real


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise PlainInvalid(f"is {_named(value)}, and should be true or false")
    return value


def _instant(value: Any) -> datetime:
    text = _text(value)
    try:
        moment = datetime.fromisoformat(text)
        offset = moment.utcoffset()
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise PlainInvalid(f"is {_named(value)}, and should be an instant in ISO 8601") from None
    if offset is None:
        raise PlainInvalid(f"is {_named(value)}, an instant without a time zone: add +00:00 or the like")
    return moment


def _scalar(value: Any) -> Scalar:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise PlainInvalid("is a number too large for 64 bits")
    if value is not None and not isinstance(value, bool | int | float):
        raise PlainInvalid(f"is {_named(value)}, and should be text, a number, true, false or null")
    scalar: Scalar = value
    return scalar


_BASIC: dict[Any, Decoder] = {str: _text, int: _integer, float: _real, bool: _truth, datetime: _instant}


def _optional(inner: Decoder) -> Decoder:
    return lambda value: None if value is None else inner(value)


def _list_of(inner: Decoder) -> Decoder:
    def decode(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise PlainInvalid(f"is {_named(value)}, and should be a list")
        if len(value) > LIST_LENGTH_MAX:
            raise PlainInvalid(f"is a list of {len(value)}; at most {LIST_LENGTH_MAX} are taken")
        decoded: list[Any] = []
        try:
            decoded.extend(map(inner, value))
        except PlainInvalid as problem:
            raise problem.inside(len(decoded)) from None
        return tuple(decoded)

    return decode


def _exactly(inner: list[Decoder]) -> Decoder:
    def decode(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(inner):
            raise PlainInvalid(f"is {_named(value)}, and should be a list of {len(inner)}")
        return tuple(decoder(item) for decoder, item in zip(inner, value, strict=True))

    return decode


def _mapping_of(inner: Decoder) -> Decoder:
    def decode(value: Any) -> dict[str, Any]:
        decoded = {}
        for name, item in _object(value).items():
            try:
                decoded[_text(name)] = inner(item)
            except PlainInvalid as problem:
                raise problem.inside(name) from None
        return decoded

    return decode


def _member_of(kind: type[StrEnum]) -> Decoder:
    def decode(value: Any) -> StrEnum:
        try:
            return kind(value)
        except ValueError:
            raise PlainInvalid(f"is {_named(value)}, and should be one of {', '.join(kind)}") from None

    return decode


def _record_of(kind: type[Any]) -> Decoder:
    hints = get_type_hints(kind, localns={"Mapping": Mapping, "datetime": datetime})
    if kind is Case:  # written as an object, which is easier to read than pairs
        hints["parameters"] = Mapping[str, Scalar]
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(kind)}
    needed = [field.name for field in fields(kind) if _is_needed(field)]

    def decode(value: Any) -> Any:
        parts = _object(value)
        _check_names(parts, known=decoders, needed=needed)
        decoded = {}
        for name, item in parts.items():
            try:
                decoded[name] = decoders[name](item)
            except PlainInvalid as problem:
                raise problem.inside(name) from None
        try:
            return (
                Case.of(decoded["benchmark"], decoded.get("parameters", {}))
                if kind is Case
                else kind(**decoded)
            )
        except RecordInvalid as problem:
            raise PlainInvalid(f"contradicts itself: {str(problem)[:_WORDS_LENGTH_MAX]}") from None

    return decode


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _check_names(parts: dict[str, Any], *, known: Mapping[str, Any], needed: list[str]) -> None:
    for name in parts:
        if name not in known:
            near = difflib.get_close_matches(name[:100], known, n=1)
            guess = f"did you mean {near[0]!r}?" if near else "it was made by a newer version, perhaps"
            raise PlainInvalid(f"has a field {_named(name)} that this version does not know: {guess}")
    for name in needed:
        if name not in parts:
            raise PlainInvalid(f"lacks the field {name!r}")


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PlainInvalid(f"is {_named(value)}, and should be an object")
    if len(value) > MAPPING_LENGTH_MAX:
        raise PlainInvalid(f"is an object of {len(value)} names; at most {MAPPING_LENGTH_MAX} are taken")
    return value


def _named(value: Any) -> str:
    """A wrong value for a message, without repeating all of it."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):  # its digits may be too many to print
        return "a whole number"
    return ascii(value if not isinstance(value, str) else value[:60])
