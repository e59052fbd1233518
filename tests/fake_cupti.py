"""A stand-in for the functions of ``cupti.cupti``; its records, enums and errors are the real ones.

The real package loads without a driver, but each of its functions raises there.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections import deque
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cupti import cupti as real
from cupti._internal.utils import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

__all__ = ["FakeCupti", "NotSupportedError", "install", "record", "shapes"]

FUNCTIONS_NOT_TO_USE = ("finalize", "activity_register_timestamp_callback")


class FakeCupti(ModuleType):
    """Writes down every call, and hands out the records it was given when it is flushed.

    Attributes:
        calls: (function, arguments) in the order they were made.
        records: delivered at the next flush, where a buffer has room for any.
        losses: what the drop counter says at the next looks at it; 0 when there is nothing here.
        refuses: raises what it returns for a function and its first argument, unless that is None.
    """

    ActivityKind = real.ActivityKind
    ActivityOverheadKind = real.ActivityOverheadKind
    ExternalCorrelationKind = real.ExternalCorrelationKind
    cuptiError = real.cuptiError  # noqa: N815 - its real name
    driver_api_trace_cbid = real.driver_api_trace_cbid
    runtime_api_trace_cbid = real.runtime_api_trace_cbid

    def __init__(self) -> None:
        super().__init__("cupti.cupti")
        self.calls: list[tuple[str, Any]] = []
        self.records: list[Any] = []
        self.losses: deque[int] = deque()
        self.refuses: Callable[[str, Any], Exception | None] = lambda function, argument: None  # noqa: ARG005
        self._requested: Callable[[], tuple[int, int]] | None = None
        self._completed: Callable[[list[Any]], None] | None = None

    def __getattr__(self, name: str) -> Any:
        """The layouts of the real records; nothing else is taken from the real package."""
        if name.startswith("activity_") and name.endswith("_dtype"):
            return getattr(real, name)
        raise AttributeError(name)

    def names(self) -> list[str]:
        """The functions that were called."""
        return [name for name, _ in self.calls]

    def arguments_of(self, function: str) -> list[Any]:
        """What a function was called with, call by call."""
        return [argument for name, argument in self.calls if name == function]

    def _note(self, function: str, argument: Any = None) -> None:
        self.calls.append((function, argument))
        error = self.refuses(function, argument)
        if error is not None:
            raise error

    def activity_register_callbacks(
        self, requested: Callable[[], tuple[int, int]], completed: Callable[[list[Any]], None]
    ) -> None:
        self._note("register")
        self._requested, self._completed = requested, completed

    def activity_enable(self, kind: Any) -> None:
        self._note("enable", kind)

    def activity_disable(self, kind: Any) -> None:
        self._note("disable", kind)

    def activity_enable_runtime_api(self, call: int, enable: int) -> None:
        self._note("runtime_api", (call, enable))

    def activity_enable_driver_api(self, call: int, enable: int) -> None:
        self._note("driver_api", (call, enable))

    def activity_flush_all(self, flag: int) -> None:
        self._note("flush", flag)
        records, self.records = self.records, []
        if self._requested is None or self._completed is None or not records:
            return
        size, _ = self._requested()
        if size:
            self._completed(records)
        else:
            self.losses.append(len(records))

    def activity_get_num_dropped_records(self, context: int, stream_id: int, address: int) -> None:
        self._note("dropped", (context, stream_id))
        # As CUPTI does: the number is written to the address and counts from zero again.
        ctypes.c_size_t.from_address(address).value = self.losses.popleft() if self.losses else 0

    def activity_push_external_correlation_id(self, kind: Any, number: int) -> None:
        self._note("push", (kind, number))

    def activity_pop_external_correlation_id(self, kind: Any) -> int:
        self._note("pop", kind)
        return 0

    def get_timestamp(self) -> int:
        self._note("timestamp")
        return 1_764_500_000_000_000_000

    def subscribe(self, callback: Callable[..., None], data: object) -> int:
        del callback, data
        self._note("subscribe")
        return 1

    def unsubscribe(self, subscriber: int) -> None:
        self._note("unsubscribe", subscriber)


def install(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    """Put the fake where ``from cupti import cupti`` finds it."""
    fake, package = FakeCupti(), ModuleType("cupti")
    package.cupti = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupti", package)
    monkeypatch.setitem(sys.modules, "cupti.cupti", fake)
    return fake


def shapes(prefix: str) -> list[type[Any]]:
    """The classes of one kind of record that this CUPTI knows, oldest first."""
    numbered = [(name, re.fullmatch(rf"{prefix}(\d+)", name)) for name in dir(real)]
    found = sorted((int(match[1]), name) for name, match in numbered if match)
    return [getattr(real, name) for _, name in found]


def record(shape: type[Any] | str, kind: str, **fields: Any) -> Any:
    """A record of a real class, with these fields set."""
    made = (getattr(real, shape) if isinstance(shape, str) else shape)()
    made.kind = int(real.ActivityKind[kind])
    for name, value in fields.items():
        setattr(made, name, value)
    return made
