"""Measure suites in real worker processes, with the host's clock."""

from __future__ import annotations

import contextlib
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite_files import a_suite_file

from collector.protocol import Job
from collector.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED = 7
LIMIT_S = 20.0


def a_job(root: Path, *suites: Path, only: tuple[str, ...] = ()) -> Job:
    """Measure these suites with the host's clock, without sentinels."""
    return Job(
        root=str(root),
        suites=[str(suite) for suite in suites],
        only=list(only),
        timer="wall",
        clocks="held",
        gpu=None,
        visible_devices="",
    )


@contextlib.contextmanager
def a_session(python: str, root: Path, source: str, *, memory_bytes: int | None = None) -> Iterator[Session]:
    """A session over one suite file with this source."""
    session = Session(python, a_job(root, a_suite_file(root, source)), memory_bytes=memory_bytes)
    try:
        yield session
    finally:
        session.close()


def run_passes(session: Session, passes: int = 2) -> None:
    """Run so many passes with a fixed seed."""
    for pass_index in range(passes):
        session.run_pass(pass_index, SEED, lambda _case: None)


def benchmarks(*names: str) -> str:
    """The source of benchmarks that are in order."""
    return "\n".join(f"def bench_{name}(): return lambda: sum(range(50))" for name in names)


def with_good_neighbours(source: str) -> str:
    """A suite in which two good benchmarks stand around those of ``source``."""
    return f"{benchmarks('before')}\n{textwrap.dedent(source)}\n{benchmarks('after')}\n"


def windows_of(session: Session, benchmark: str) -> list[dict[str, Any]]:
    """The windows a benchmark without parameters has so far."""
    keys = [case.key for case in session.loaded.cases if case.benchmark == benchmark]
    return session.collected.windows.get(keys[0], [])


def the_failure(session: Session) -> dict[str, Any]:
    """The only failure of a session."""
    (failure,) = session.collected.failures
    return failure


def until(fact: Callable[[], Any]) -> Any:
    """Wait until something is true, and fail when it does not come true."""
    deadline = time.monotonic() + LIMIT_S
    while not (value := fact()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return value


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
