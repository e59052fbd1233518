"""From a case to the call that is timed, and the check that it computes what it should."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.failures import SuiteError, from_exception

if TYPE_CHECKING:
    from collector.cases import BenchmarkCase

_FIX = "return the function to time, such as `return lambda: torch.softmax(x, -1)`"


@dataclass(frozen=True)
class Call:
    """What a benchmark returns when a plain function does not say everything.

    Attributes:
        run: the call to time; takes no arguments.
        reference: computes what ``run`` should return; compared once, before timing.
        rtol, atol: tolerances of that comparison; both or neither, by default those of the dtype.
        reset: called before every iteration, outside the timed region.
    """

    run: Callable[[], object]
    reference: Callable[[], object] | None = None
    rtol: float | None = None
    atol: float | None = None
    reset: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        problem = _why_untimeable(self.run)
        if problem is not None:
            raise TypeError(f"run is {problem}")
        for name in ("reference", "reset"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(f"{name} is {_describe(function)}: give a function without arguments")
        if (self.rtol is None) != (self.atol is None):
            raise ValueError("rtol and atol describe one comparison: give both or neither")
        if self.rtol is not None and self.reference is None:
            raise ValueError("rtol and atol compare with a reference, and there is none: give reference=")
        for name in ("rtol", "atol"):
            tolerance = getattr(self, name)
            if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
                raise ValueError(f"{name} is {tolerance!r}: give a number of at least 0")

    def __call__(self) -> object:
        """Make the call once."""
        return self.run()


def set_up(case: BenchmarkCase) -> Call:
    """Run the benchmark's function: it allocates, fills and returns the call to time.

    Raises:
        SuiteError: it raised, or what it returned cannot be timed.
    """
    try:
        made = case.function(**case.parameters)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the suite may raise anything, SystemExit too
        failure = locate("setup", error, case)
    else:
        if isinstance(made, Call):
            return made
        problem = _why_untimeable(made)
        if problem is None and callable(made):
            return Call(made)
        failure = case.failure(f"bench_{case.name} returned {problem}", stage="setup", kind="not-callable")
    raise failure  # outside the handler: no traceback then keeps device memory alive


def locate(stage: str, error: BaseException, case: BenchmarkCase) -> SuiteError:
    """Report what code of a case raised, with the deepest line of its suite file."""
    return from_exception(error, stage=stage, place=case.place, case=case.label)


def check_output(case: BenchmarkCase, call: Call) -> None:
    """Compare what the call returns with its reference; without a reference do nothing.

    Tensors are compared as ``torch.testing.assert_close`` does, inside lists, tuples and
    dictionaries too: shapes, dtypes and devices must agree, and NaN equals nothing.

    Raises:
        SuiteError: the call raised (stage ``call``), the reference raised, or the outputs
            differ (stage ``check``).
    """
    if call.reference is None:
        return
    # A copy: the reference, or the reset before it, may write into what the call returned.
    actual = _attempt(lambda: _copied(call.run()), case, call, stage="call")
    expected = _attempt(call.reference, case, call, stage="check", doing="reference")
    problem = _difference(actual, expected, rtol=call.rtol, atol=call.atol)
    if problem is not None:
        raise case.failure(problem, stage="check", kind="wrong-output")


def _attempt(
    work: Callable[[], object], case: BenchmarkCase, call: Call, *, stage: str, doing: str = ""
) -> object:
    """The output of one of the two calls that are compared, from the state that ``reset`` gives."""
    try:
        if call.reset is not None:
            call.reset()
        return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the suite may raise anything, SystemExit too
        failure = from_exception(error, stage=stage, place=case.place, case=case.label, doing=doing)
    raise failure


def _difference(actual: object, expected: object, *, rtol: float | None, atol: float | None) -> str | None:
    """What differs between two outputs, in one paragraph, or None."""
    try:
        from torch.testing import assert_close
    except ImportError:
        return (
            f"the output cannot be compared: torch is not installed in {sys.executable}; "
            "install it there, or take the reference out"
        )
    if not _holds_values(actual):
        return f"the call returned {_describe(actual)}, so nothing was compared: return its output"
    try:
        assert_close(actual, expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        return f"the output differs from the reference: {' '.join(str(error).split())}"
    except (TypeError, ValueError, RuntimeError) as error:
        return f"the output cannot be compared with the reference: {' '.join(str(error).split())}"
    return None


def _copied(output: object) -> object:
    """The output with every tensor in it copied."""
    if isinstance(output, Mapping):
        return {name: _copied(value) for name, value in output.items()}
    if isinstance(output, (list, tuple)):
        copies = [_copied(value) for value in output]
        return copies if isinstance(output, list) else tuple(copies)
    return output.detach().clone() if hasattr(output, "detach") else output


def _holds_values(output: Any) -> bool:
    """Whether there is a single number in the output."""
    if isinstance(output, Mapping):
        return any(_holds_values(value) for value in output.values())
    if isinstance(output, (list, tuple)):
        return any(_holds_values(value) for value in output)
    return output is not None and (not hasattr(output, "numel") or output.numel() > 0)


def _why_untimeable(value: object) -> str | None:
    """What the value is and what to return instead, or None where calling it does the work."""
    if not callable(value):
        return f"{_describe(value)}, which cannot be called: {_FIX}"
    if inspect.iscoroutinefunction(value):
        kind = "an async function"
    elif inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        kind = "a generator function"
    else:
        return None
    return f"{kind}: calling it only makes an object, and the work would never be timed; {_FIX}"


def _describe(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
