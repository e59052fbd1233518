"""From an exception to a report that a person can act on: what, where, and what to do next."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from collector.errors import CollectorError

_TOOL_ROOT = Path(__file__).resolve().parents[1]
_MESSAGE_LENGTH_MAX = 1000


@dataclass(frozen=True)
class Place:
    """A line of a suite file.

    Attributes:
        file: resolved path.
        line: from 1.
        root: resolved folder that paths are shown relative to.
    """

    file: Path
    line: int
    root: Path

    def __str__(self) -> str:
        """``benches/attention.py:12``, or an absolute path where the file lies outside the root."""
        for base in (self.root, _TOOL_ROOT):  # the built-in suites lie beside the collector
            if self.file.is_relative_to(base):
                return f"{self.file.relative_to(base).as_posix()}:{self.line}"
        return f"{self.file.as_posix()}:{self.line}"

    def at(self, line: int) -> Place:
        """Another line of the same file."""
        return Place(self.file, line, self.root)


class SuiteError(CollectorError):
    """A suite file, or one of its benchmarks, cannot be measured.

    Attributes:
        message: one paragraph.
        stage: ``import``, ``setup``, ``call`` or ``check``.
        kind: the exception's type, or a code such as ``not-callable``.
        source: the line to look at, as ``path/of/suite.py:12``.
        log: the traceback, beginning in the suite file; empty where there is none.
        case: label of the case, the benchmark's name where no case could be made, or None
            where the whole file is meant.
    """

    def __init__(
        self, message: str, *, stage: str, kind: str, source: str, log: str = "", case: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.kind = kind
        self.source = source
        self.log = log
        self.case = case

    def __str__(self) -> str:
        # A message about an import names the benchmark itself, for there may be no case of it.
        about = "" if self.case is None or self.stage == "import" else f"{self.case}: "
        return f"{self.source}: {about}{self.message}"


class NotApplicable(Exception):  # noqa: N818 - raised to decline, as StopIteration is
    """Raised by a benchmark in its set-up: this machine cannot run it, and that is no fault.

    It is reported as ``not-applicable`` with its message, never left out without a word.
    """


def from_exception(
    error: BaseException, *, stage: str, place: Place, case: str | None = None, doing: str = ""
) -> SuiteError:
    """Report an exception that code of a suite raised.

    Args:
        error: what was raised, with its traceback.
        stage: what was being done.
        place: where to point when the traceback does not touch the suite file.
        case: what was being measured, or None.
        doing: which part of it raised, where the stage leaves that open.
    """
    trace = traceback.TracebackException.from_exception(error)
    in_suite = [i for i, frame in enumerate(trace.stack) if frame.filename == str(place.file)]
    line = None
    if isinstance(error, SyntaxError) and error.filename == str(place.file):
        line = error.lineno
        trace.stack = traceback.StackSummary()  # the file never ran: every frame is this tool's
    elif in_suite:
        line = trace.stack[in_suite[-1]].lineno
        # The frames before the suite's own are this tool's, and tell its author nothing.
        trace.stack = traceback.StackSummary.from_list(list(trace.stack)[in_suite[0] :])
    return SuiteError(
        f"{doing}: {_explain(error)}" if doing else _explain(error),
        stage=stage,
        kind="not-applicable" if isinstance(error, NotApplicable) else type(error).__name__,
        source=str(place.at(line or place.line)),
        log="".join(trace.format()),
        case=case,
    )


def _explain(error: BaseException) -> str:
    """What was raised, in one paragraph, with what to do next where that is known."""
    text = _text_of(error)
    if isinstance(error, ModuleNotFoundError):
        return f"{text} in {sys.executable}: install it there, or choose another interpreter with --python"
    if isinstance(error, ImportError) and "relative import" in text:
        return (
            f"{text}: a suite is loaded as a plain file, so write `import name` for a file beside it; "
            "its folder, the root of the repository and src/ are importable"
        )
    if isinstance(error, SystemExit):
        return (
            f"ended the program with exit code {error.code!r}: "
            'keep what runs as a script under `if __name__ == "__main__":`'
        )
    return text or f"{type(error).__name__} without a message"


def _text_of(error: BaseException) -> str:
    """The first paragraph of the exception's message; some libraries append pages of C++ frames."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - the exception is the suite's, and so is its __str__
        return "its message could not be read"
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph if len(paragraph) <= _MESSAGE_LENGTH_MAX else f"{paragraph[:_MESSAGE_LENGTH_MAX]}…"
