"""Whole runs in real worker processes: what to ask for, and who listens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.run import Plan, Watcher

if TYPE_CHECKING:
    from collector.loaded import CaseInfo
    from store.records import Run


class Listener(Watcher):
    """Remembers what it was told, and can interrupt after so many windows."""

    def __init__(self, *, interrupt_after: int | None = None) -> None:
        self.notes: list[str] = []
        self.size: tuple[int, int] | None = None
        self.windows = 0
        self.ended = False
        self._interrupt_after = interrupt_after

    def started(self, cases: int, passes: int) -> None:
        """Remember the size."""
        self.size = (cases, passes)
        if self._interrupt_after == 0:
            raise KeyboardInterrupt

    def window_done(self, case: CaseInfo) -> None:
        """Count, and interrupt where that was asked for."""
        del case
        self.windows += 1
        if self.windows == self._interrupt_after:
            raise KeyboardInterrupt

    def measured(self) -> None:
        """Remember that the passes are over."""
        self.ended = True

    def note(self, text: str) -> None:
        """Remember the text."""
        self.notes.append(text)


def a_plan(python: str, **changes: Any) -> Plan:
    """Three passes of the example suite, timed by the host's clock."""
    fields: dict[str, Any] = {
        "repository": Path(), "suites": ("bench_example.py",), "passes": 3, "timer": "wall",
        "python": python, "seed": 5,
    }  # fmt: skip
    return Plan(**(fields | changes))


def names_of(run: Run) -> list[str]:
    """The benchmarks a run has a number for, in its order."""
    return [measurement.case.benchmark for measurement in run.measurements]
