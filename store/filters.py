"""Which rows a caller asks for, as the end of an SQL query: fixed column names, bound values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Filter:
    """A condition on rows.

    Attributes:
        where: ``where a in (?, ?) and b in (?)``, or nothing where all rows are asked for.
        parameters: what its question marks stand for, in order.
    """

    where: str
    parameters: tuple[str, ...]


def only(chosen: Mapping[str, Sequence[str] | None]) -> Filter | None:
    """The filter that keeps rows whose columns have one of the values asked for.

    Args:
        chosen: values by column name; None asks for all.

    Returns:
        None where no row can match, because a list of values is empty.
    """
    limited = {column: values for column, values in chosen.items() if values is not None}
    if not all(limited.values()):
        return None
    conditions = [f"{column} in ({', '.join('?' for _ in values)})" for column, values in limited.items()]
    return Filter(
        where=f"where {' and '.join(conditions)}" if conditions else "",
        parameters=tuple(str(value) for values in limited.values() for value in values),
    )
