"""Write suite files as a user would, and load them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from collector.suite import BenchmarkCase, SuiteError, load_suites

if TYPE_CHECKING:
    from pathlib import Path


def a_suite_file(root: Path, source: str, name: str = "bench_example.py") -> Path:
    """A suite file below ``root`` with this source; indentation of the test is taken out."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    return file


def loaded(
    root: Path, source: str, name: str = "bench_example.py"
) -> tuple[list[BenchmarkCase], list[SuiteError]]:
    """Cases and errors of one suite file with this source."""
    return load_suites([a_suite_file(root, source, name)], root=root)


def the_case(root: Path, source: str) -> BenchmarkCase:
    """The only case of a suite file that is in order."""
    (case,), errors = loaded(root, source)
    assert errors == []
    return case


def the_error(root: Path, source: str) -> SuiteError:
    """The only error of a suite file."""
    _, (error,) = loaded(root, source)
    return error
