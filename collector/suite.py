"""What a suite file and a worker need, under one name.

A suite file needs none of it: a function called ``bench_*`` is a benchmark. What cannot be
guessed is said with `benchmark`, `Call` and `NotApplicable`; see docs/writing-benchmarks.md.
The standard library alone is imported, for workers run where nothing else is installed.
"""

from __future__ import annotations

from pathlib import Path

from collector.calls import Call, check_output, locate, set_up
from collector.cases import BenchmarkCase, Options, benchmark
from collector.discovery import load_suites
from collector.failures import NotApplicable, SuiteError

__all__ = [
    "BUILTIN_SUITE",
    "SENTINEL_SUITE",
    "BenchmarkCase",
    "Call",
    "NotApplicable",
    "Options",
    "SuiteError",
    "benchmark",
    "check_output",
    "load_suites",
    "locate",
    "set_up",
]

_SUITES = Path(__file__).resolve().parent / "suites"
BUILTIN_SUITE = _SUITES / "builtin.py"
SENTINEL_SUITE = _SUITES / "sentinels.py"
