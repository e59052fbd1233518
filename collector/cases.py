"""What a benchmark says about itself, and what one case of it is."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from collector.failures import SuiteError, from_exception
from collector.implementations import workload

if TYPE_CHECKING:
    from pathlib import Path

    from collector.failures import Place

Scalar = str | int | float | bool | None
Work = float | Callable[..., float] | None
Params = Mapping[str, Sequence[Scalar]] | Sequence[Mapping[str, Scalar]]
Function = TypeVar("Function", bound=Callable[..., Any])

PREFIX = "bench_"
OPTIONS_ATTRIBUTE = "__kernelwatch_options__"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What cannot be guessed about a benchmark.

    Attributes:
        params: parameters of this benchmark alone, in place of the file's ``PARAMS``.
        flops: floating-point operations of one call: a number, or a function of the parameters.
        bytes_moved: the least bytes one call must read and write, likewise.
        tags: words to choose benchmarks by.
        launches_from_any_thread: other threads launch part of the work.
        count_copies: memory copies and memsets are part of what is timed.
        warm_cache: leave the L2 cache as the iteration before left it.
        time_limit_s: longest time that set-up and one window may take together.
        iterations: samples of a window, in place of what the time budget allows.
        warmup_calls: calls before the first sample, in place of warming up by time.
        renamed_from: what the benchmark was called before, so that it keeps its history.
    """

    params: Params | None = None
    flops: Work = None
    bytes_moved: Work = None
    tags: tuple[str, ...] = ()
    launches_from_any_thread: bool = False
    count_copies: bool = False
    warm_cache: bool = False
    time_limit_s: float = 60.0
    iterations: int | None = None
    warmup_calls: int | None = None
    renamed_from: str | None = None

    def __post_init__(self) -> None:
        _check_work("flops", self.flops)
        _check_work("bytes_moved", self.bytes_moved)
        for name in ("launches_from_any_thread", "count_copies", "warm_cache"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {getattr(self, name)!r}: give True or False")
        if not _is_number(self.time_limit_s) or self.time_limit_s <= 0:
            raise ValueError(f"time_limit_s is {self.time_limit_s!r}: give seconds above 0")
        for name in ("iterations", "warmup_calls"):
            count = getattr(self, name)
            if count is not None and (type(count) is not int or count < 1):
                raise ValueError(f"{name} is {count!r}: give a whole number of at least 1")
        if self.renamed_from is not None and not str(self.renamed_from).isidentifier():
            raise ValueError(f"renamed_from is {self.renamed_from!r}: give the name of the function before")


def benchmark(
    *misplaced: object,
    params: Params | None = None,
    flops: Work = None,
    bytes_moved: Work = None,
    tags: Sequence[str] = (),
    launches_from_any_thread: bool = False,
    count_copies: bool = False,
    warm_cache: bool = False,
    time_limit_s: float = 60.0,
    iterations: int | None = None,
    warmup_calls: int | None = None,
    renamed_from: str | None = None,
) -> Callable[[Function], Function]:
    """Say about a ``bench_*`` function what cannot be guessed; see `Options` for each argument.

    Raises:
        TypeError, ValueError: an argument cannot be meant; raised where the decorator stands.
    """
    if misplaced:
        raise TypeError("write @benchmark(...) with parentheses, and every argument by its name")
    if not isinstance(tags, (list, tuple)) or not all(isinstance(tag, str) and tag for tag in tags):
        raise TypeError(f"tags is {tags!r}: give a list of words, such as ['memory']")
    options = Options(
        params=params,
        flops=flops,
        bytes_moved=bytes_moved,
        tags=tuple(tags),
        launches_from_any_thread=launches_from_any_thread,
        count_copies=count_copies,
        warm_cache=warm_cache,
        time_limit_s=time_limit_s,
        iterations=iterations,
        warmup_calls=warmup_calls,
        renamed_from=renamed_from.removeprefix(PREFIX) if isinstance(renamed_from, str) else renamed_from,
    )

    def attach(function: Function) -> Function:
        _check_function(function, options)
        setattr(function, OPTIONS_ATTRIBUTE, options)
        return function

    return attach


@dataclass(frozen=True, kw_only=True)
class BenchmarkCase:
    """One benchmark with one set of parameters, ready to be set up.

    Attributes:
        name: the function's name without ``bench_``.
        parameters: what the function is called with; values are JSON scalars.
        suite: the path of the suite as it was given.
        place: where the benchmark is defined.
    """

    name: str
    parameters: Mapping[str, Scalar]
    function: Callable[..., object] = field(repr=False)
    options: Options = field(repr=False)
    suite: Path
    place: Place

    @property
    def file(self) -> Path:
        """The suite file, resolved."""
        return self.place.file

    @property
    def line(self) -> int:
        """The line of the function, from 1."""
        return self.place.line

    @property
    def source(self) -> str:
        """Where the benchmark is defined, as ``path/relative/to/root.py:12``."""
        return str(self.place)

    @property
    def label(self) -> str:
        """The case as a person reads it, such as ``softmax[dtype=bfloat16, rows=1024]``."""
        if not self.parameters:
            return self.name
        return (
            f"{self.name}[{', '.join(f'{name}={self.parameters[name]}' for name in sorted(self.parameters))}]"
        )

    @property
    def key(self) -> str:
        """The case as canonical JSON: the same text in every process and on every machine."""
        return json.dumps([self.name, dict(self.parameters)], sort_keys=True, separators=(",", ":"))

    @property
    def workload(self) -> object:
        """What it shares with other implementations of the same workload, which are measured in turn."""
        return workload(self.name, self.parameters, self.key)

    def flops(self) -> float | None:
        """Floating-point operations of one call, or None where the benchmark does not say.

        Raises:
            SuiteError: the function that tells them raised, or gave no amount.
        """
        return self._amount("flops", self.options.flops)

    def bytes_moved(self) -> float | None:
        """Bytes one call must read and write, or None where the benchmark does not say.

        Raises:
            SuiteError: the function that tells them raised, or gave no amount.
        """
        return self._amount("bytes_moved", self.options.bytes_moved)

    def failure(self, message: str, *, stage: str, kind: str) -> SuiteError:
        """A report about this case that no exception caused."""
        return SuiteError(message, stage=stage, kind=kind, source=self.source, case=self.label)

    def _amount(self, name: str, work: Work) -> float | None:
        if work is None or not callable(work):
            return None if work is None else float(work)
        try:
            amount = call_with_parameters(work, self.parameters)
        except Exception as error:  # noqa: BLE001 - the function is the suite's and may raise anything
            failure = from_exception(error, stage="setup", place=self.place, case=self.label, doing=name)
        else:
            if _is_number(amount) and amount >= 0:
                return float(amount)
            failure = self.failure(
                f"{name} gave {amount!r}: return the amount of one call, a number of at least 0",
                stage="setup",
                kind="bad-options",
            )
        raise failure  # outside the handler: no traceback then keeps the suite's objects alive


def call_with_parameters(function: Callable[..., Any], parameters: Mapping[str, Scalar]) -> Any:
    """Call a function of the parameters with those that it names.

    Raises:
        TypeError: it asks for a name that the case does not have.
    """
    wanted = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in wanted):
        return function(**parameters)
    return function(**{p.name: parameters[p.name] for p in wanted if p.name in parameters})


def _check_function(function: Any, options: Options) -> None:
    """Refuse to decorate what would never run as a benchmark, or not with these options."""
    name = getattr(function, "__name__", None)
    if not inspect.isfunction(function):
        raise TypeError(f"@benchmark(...) decorates a function, not {function!r}")
    if name is None or not name.startswith(PREFIX):
        raise ValueError(
            f"@benchmark(...) decorates {name}, which nobody would run: call it {PREFIX}{name}, "
            f"since benchmarks are the functions whose name begins with {PREFIX}"
        )
    if options.renamed_from == name.removeprefix(PREFIX):
        raise ValueError(f"{name} cannot be renamed from itself: give the name that it had before")


def _check_work(name: str, work: Any) -> None:
    if work is None or callable(work):
        return
    if not _is_number(work) or work < 0:
        raise TypeError(f"{name} is {work!r}: give the amount of one call, or a function of the parameters")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
