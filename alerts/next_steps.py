"""Commands that a reader of a message can type next, and what stands above them. Pure."""

from __future__ import annotations

import glob
import shlex
from typing import TYPE_CHECKING

from store import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import RunHeader

BUILTIN = "builtin"  # how a run names the suite that comes with the collector
_NAMED = 5  # benchmarks in one command


def again_title(benchmarks: Sequence[str]) -> str:
    """What stands above ``again_command``; it says so where that leaves benchmarks out."""
    return f"Measure {_worst(benchmarks)} again" if len(benchmarks) > _NAMED else "Measure again"


def again_command(header: RunHeader, benchmarks: Sequence[str], *, against: str | None) -> str | None:
    """Measures the first of some benchmarks again; None for code that no commit holds.

    Args:
        header: of the run that measured them.
        benchmarks: their names, the worst first.
        against: the commit that took turns with the run's, where there was one.
    """
    if header.commit_sha is None or header.dirty or not benchmarks:
        return None
    suites = [f"--suite {_word(suite)}" for suite in header.suites if suite != BUILTIN]
    only = [f"--only {_word(glob.escape(name))}" for name in benchmarks[:_NAMED]]
    paired = [] if against is None else [f"--against {against}"]
    return " ".join(["collect", f"--commit {header.commit_sha}", *paired, *suites, *only])


def accept_title(benchmarks: Sequence[str]) -> str:
    """What stands above ``accept_command``; it says so where that leaves benchmarks out."""
    if len(benchmarks) > _NAMED:
        return f"Accept {_worst(benchmarks)}, if they are wanted"
    return "Accept it, if it is wanted" if len(benchmarks) == 1 else "Accept them, if they are wanted"


def accept_command(header: RunHeader, benchmarks: Sequence[str]) -> str | None:
    """Accepts the changes of the first of some benchmarks; None for code that no commit holds."""
    if header.commit_sha is None or header.dirty or not benchmarks:
        return None
    return f"alerts triage accept {_words(benchmarks)} --at {shown.short(header.commit_sha)}"


def accept_order(benchmarks: Sequence[str]) -> str:
    """Accepts them in a comment on a pull request."""
    return f"/kernelwatch accept {_words(benchmarks)}"


def _worst(benchmarks: Sequence[str]) -> str:
    return f"the worst {_NAMED} of {shown.count(len(benchmarks), 'benchmark')}"


def _words(benchmarks: Sequence[str]) -> str:
    return " ".join(map(_word, benchmarks[:_NAMED]))


def _word(text: str) -> str:
    """One word for a shell, whatever a benchmark or a suite is called."""
    return shlex.quote(shown.visible(text))
