"""Logarithms, exponentials and roots of floats and of whole arrays, the same to the last digit everywhere.

NumPy computes them by whatever the processor offers, so that the last digit may differ from one
machine to the next, and from a number alone to the same number among others. A verdict must not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Number = TypeVar("Number", float, "NDArray[np.float64]")


def log(value: Number) -> Number:
    """The natural logarithm."""
    return _applied(math.log, value)


def exp(value: Number) -> Number:
    """The exponential."""
    return _applied(math.exp, value)


def expm1(value: Number) -> Number:
    """The exponential less one: a relative change from the log of a ratio."""
    return _applied(math.expm1, value)


def sqrt(value: Number) -> Number:
    """The square root."""
    return _applied(math.sqrt, value)


def _applied(function: Callable[[float], float], value: Number) -> Number:
    if isinstance(value, np.ndarray):
        found = np.fromiter(map(function, value.ravel().tolist()), np.float64, value.size)
        return found.reshape(value.shape)
    return function(value)
