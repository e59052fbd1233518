"""From the parameters that a suite declares to the cases of each benchmark: pure.

A dictionary of lists is a grid: each benchmark gets the product over the names that it takes.
A list of dictionaries gives the cases one by one. What is wrong with one value costs that
value alone; it is reported, and the rest is measured.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.cases import Scalar

Parameters = dict[str, Scalar]
_SCALARS = (str, int, float, bool, type(None))
_FORM = 'write {"rows": [1024, 8192]}, or a list of such cases as [{"rows": 1024}, {"rows": 8192}]'


@dataclass(frozen=True)
class Signature:
    """The parameter names of a benchmark's function.

    Attributes:
        required: names without a default.
        optional: names with one.
        anything: it has ``**parameters`` and takes every name.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    anything: bool

    @classmethod
    def of(cls, function: Callable[..., object]) -> Signature:
        """Read a function's signature.

        Raises:
            ValueError: a parameter cannot be given by name.
        """
        parameters = inspect.signature(function).parameters.values()
        for parameter in parameters:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ValueError(
                    f"{parameter.name} cannot be given by name: take the `/` out of the signature"
                )
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        return cls(
            required=tuple(p.name for p in named if p.default is p.empty),
            optional=tuple(p.name for p in named if p.default is not p.empty),
            anything=any(p.kind is p.VAR_KEYWORD for p in parameters),
        )

    def takes(self, name: str) -> bool:
        """Whether the function can be called with this name."""
        return self.anything or name in self.required or name in self.optional


@dataclass(frozen=True)
class Declaration:
    """Parameters as declared, without what is wrong with them.

    Attributes:
        title: what to call the declaration in messages.
        grid: usable values by name, when a grid was declared.
        rows: usable cases with their place in the list, when cases were declared.
        broken: names without a usable value; None stands for the whole declaration.
        problems: what was wrong, one sentence each.
    """

    title: str
    grid: Mapping[str, tuple[Scalar, ...]] | None = None
    rows: tuple[tuple[int, Parameters], ...] = ()
    broken: frozenset[str] | None = frozenset()
    problems: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name declared, in order, usable or not."""
        named = (
            self.grid or {}
            if self.grid is not None
            else dict.fromkeys(n for _, row in self.rows for n in row)
        )
        return (*named, *sorted(self.broken or ()))


def read(declared: object, title: str) -> Declaration:
    """Take in what a suite declared, value by value."""
    if isinstance(declared, Mapping):
        return _read_grid(declared, title)
    if isinstance(declared, (list, tuple)):
        return _read_rows(declared, title)
    return Declaration(title, broken=None, problems=(f"{title} is {_shown(declared)}: {_FORM}",))


def expand(
    declaration: Declaration, signature: Signature, *, shared: bool
) -> tuple[list[Parameters], list[str]]:
    """The cases of one benchmark, and what keeps others from being made.

    Args:
        declaration: the parameters declared.
        signature: what the benchmark's function takes.
        shared: whether other benchmarks use the declaration too; then a benchmark takes the
            names it knows and leaves the others alone.
    """
    if declaration.broken is None:
        if not (signature.required or signature.optional or signature.anything):
            return [{}], []
        return [], [f"its parameters could not be read: see {declaration.title}"]
    unknown = [name for name in declaration.names if not signature.takes(name)]
    if unknown and not shared:
        return [], [f"{declaration.title} gives {_listed(unknown)}, which the function does not take"]
    broken = sorted(name for name in declaration.broken if signature.takes(name))
    if broken:
        return [], [f"no value of {_listed(broken)} could be used: see {declaration.title}"]
    if declaration.grid is not None:
        return _expand_grid(declaration, declaration.grid, signature)
    return _expand_rows(declaration, signature)


def _expand_grid(
    declaration: Declaration, grid: Mapping[str, tuple[Scalar, ...]], signature: Signature
) -> tuple[list[Parameters], list[str]]:
    missing = [name for name in signature.required if name not in grid]
    if missing:
        return [], [_nothing_for(missing, declaration.title)]
    names = [name for name in grid if signature.takes(name)]
    return [
        dict(zip(names, values, strict=True)) for values in itertools.product(*(grid[name] for name in names))
    ], []


def _expand_rows(declaration: Declaration, signature: Signature) -> tuple[list[Parameters], list[str]]:
    cases: dict[str, Parameters] = {}
    problems: list[str] = []
    for index, row in declaration.rows:
        missing = [name for name in signature.required if name not in row]
        if missing:
            problems.append(_nothing_for(missing, f"{declaration.title}[{index}]"))
            continue
        case = {name: value for name, value in row.items() if signature.takes(name)}
        # Rows that differ in names this benchmark does not take are one case of it.
        cases.setdefault(_canonical(case), case)
    return list(cases.values()), problems


def _read_grid(declared: Mapping[Any, Any], title: str) -> Declaration:
    problems: list[str] = []
    grid: dict[str, tuple[Scalar, ...]] = {}
    broken: set[str] = set()
    for name, values in declared.items():
        if not isinstance(name, str) or not name.isidentifier():
            problems.append(f"{title} has the name {name!r}: use the name of a function's parameter")
            continue
        where = f"{title}[{name!r}]"
        usable: dict[str, Scalar] = {}
        if not isinstance(values, (list, tuple, range)):
            hint = f"write [{values!r}]" if type(values) in _SCALARS else "use a list"
            problems.append(f"{where} is {_shown(values)}, not a list: {hint}")
        elif len(values) == 0:
            problems.append(f"{where} is empty: give at least one value, or take the name out")
        else:
            usable = _usable(values, where, problems)
        if usable:
            grid[name] = tuple(usable.values())
        else:
            broken.add(name)
    return Declaration(title, grid=grid, broken=frozenset(broken), problems=tuple(problems))


def _usable(values: Sequence[object], where: str, problems: list[str]) -> dict[str, Scalar]:
    """The values that can be used, by their JSON text; what is wrong with the others is added to problems."""
    usable: dict[str, Scalar] = {}
    for value in values:
        problem = _scalar_problem(value)
        if problem is not None:
            problems.append(f"{where} holds {problem}")
        elif _canonical(value) in usable:
            problems.append(f"{where} holds {value!r} twice: every case is measured once")
        else:
            usable[_canonical(value)] = value  # type: ignore[assignment]  # _scalar_problem made sure
    return usable


def _read_rows(declared: Sequence[object], title: str) -> Declaration:
    if not declared:
        return Declaration(title, broken=None, problems=(f"{title} is an empty list: {_FORM}",))
    problems: list[str] = []
    rows: dict[str, tuple[int, Parameters]] = {}
    for index, row in enumerate(declared):
        problem = _row_problem(row)
        if problem is not None or not isinstance(row, Mapping):
            problems.append(f"{title}[{index}] {problem}")
            continue
        key = _canonical(dict(row))
        if key in rows:
            problems.append(f"{title}[{index}] repeats case {rows[key][0]}: every case is measured once")
        else:
            rows[key] = (index, dict(row))
    if not rows:
        return Declaration(title, broken=None, problems=tuple(problems))
    return Declaration(title, rows=tuple(rows.values()), problems=tuple(problems))


def _row_problem(row: object) -> str | None:
    if not isinstance(row, Mapping):
        return f"is {_shown(row)}, not a dictionary: {_FORM}"
    for name, value in row.items():
        if not isinstance(name, str) or not name.isidentifier():
            return f"has the name {name!r}: use the name of a function's parameter"
        problem = _scalar_problem(value)
        if problem is not None:
            return f"gives {name} {problem}"
    return None


def _scalar_problem(value: object) -> str | None:
    # Exact types: a subclass, such as a NumPy float, would read differently after a trip through JSON.
    if type(value) not in _SCALARS:
        return (
            f"{_shown(value)}: use a string, a number, a boolean or None, "
            "and build the object inside the benchmark"
        )
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value!r}: use a finite number"
    return None


def _nothing_for(missing: Iterable[str], title: str) -> str:
    return f"nothing in {title} gives {_listed(missing)}: add it there, or give it a default in the function"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _canonical(value: object) -> str:
    """JSON text, in which 1, 1.0 and True are three values."""
    return json.dumps(value, sort_keys=True)


def _shown(value: object) -> str:
    return f"{reprlib.repr(value)} of type {type(value).__name__}"
