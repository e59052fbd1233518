"""Suites load where nothing of kernelwatch, and nothing else, is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from suite_files import a_suite_file

REPOSITORY = Path(__file__).parents[2]
WORKER = """
import json, sys
from importlib.abc import MetaPathFinder
from pathlib import Path

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"click", "store", "scipy", "numpy", "duckdb", "torch"}:
            raise ImportError(f"a worker must not import {name}")

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
from collector.suite import load_suites, set_up
cases, errors = load_suites([Path(sys.argv[2])], root=Path(sys.argv[2]).parent)
print(json.dumps([[case.label, set_up(case)()] for case in cases] + [str(error) for error in errors]))
"""


def test_suites_load_and_run_on_the_standard_library_alone(tmp_path: Path) -> None:
    suite = a_suite_file(
        tmp_path,
        """
        from collector.suite import benchmark
        @benchmark(params={"rows": [1, 2]}, flops=lambda rows: rows)
        def bench_x(rows): return lambda: rows
        """,
    )

    worker = subprocess.run(
        [sys.executable, "-I", "-S", "-c", WORKER, str(REPOSITORY), str(suite)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert worker.stderr == ""
    assert json.loads(worker.stdout) == [["x[rows=1]", 1], ["x[rows=2]", 2]]


def test_a_suite_checked_where_torch_is_missing_is_told_so(tmp_path: Path) -> None:
    suite = a_suite_file(
        tmp_path,
        """
        from collector.suite import Call, SuiteError, check_output, load_suites, set_up
        def bench_x(): return Call(lambda: 1.0, reference=lambda: 1.0)
        """,
    )
    program = WORKER.replace(
        "print(", "from collector.suite import check_output\ncheck_output(cases[0], set_up(cases[0]))\nprint("
    )

    worker = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(REPOSITORY), str(suite)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert "the output cannot be compared: torch is not installed in" in worker.stderr
