"""What a bad benchmark costs, and what its failure says: in real worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from real_workers import a_session, run_passes, the_failure, windows_of, with_good_neighbours

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20

# What a bad benchmark does; the stage and kind it is recorded with; the line and words that tell why.
BAD = {
    "segfault": (
        """
        import ctypes
        def bench_bad():
            print("about to crash")
            return lambda: ctypes.string_at(0)
        """,
        ("worker", "signal-11"),
        "killed by signal 11",
        "about to crash",
    ),
    "leaves": (
        """
        import os
        def bench_bad():
            print("leaving", flush=True)
            return lambda: os._exit(7)
        """,
        ("worker", "exit-7"),
        "ended by itself with status 7",
        "leaving",
    ),
    "kills itself": (
        """
        import os, signal
        def bench_bad():
            print("here it comes")
            return lambda: os.kill(os.getpid(), signal.SIGKILL)
        """,
        ("worker", "signal-9"),
        "killed by signal 9",
        "here it comes",
    ),
    "loops": (
        """
        from collector.suite import benchmark
        @benchmark(time_limit_s=0.5)
        def bench_bad():
            print("round and round")
            while True: pass
        """,
        ("worker", "time-limit"),
        "did not finish within 0.5 s; raise time_limit_s",
        "round and round",
    ),
    "eats memory": (
        """
        held = []
        def bench_bad():
            print("hungry")
            while True: held.append(bytearray(8 << 20))
        """,
        ("worker", "memory-limit"),
        "it held more than 0.2 GiB of memory",
        "hungry",
    ),
    "prints without end": (
        """
        import os
        def bench_bad():
            while True: os.write(1, b"and so on\\n" * 100_000)
        """,
        ("worker", "output-limit"),
        "it printed more than 64 MiB",
        "and so on",
    ),
    "raises in set-up": (
        """
        def bench_bad():
            raise ValueError("no such shape")
        """,
        ("setup", "ValueError"),
        "no such shape",
        'raise ValueError("no such shape")',
    ),
    "raises in the call": (
        """
        def bench_bad():
            def call():
                raise ValueError("no such shape")
            return call
        """,
        ("call", "ValueError"),
        "no such shape",
        'raise ValueError("no such shape")',
    ),
    "ends the program": (
        """
        import sys
        def bench_bad():
            return lambda: sys.exit("enough")
        """,
        ("call", "SystemExit"),
        "ended the program with exit code 'enough'",
        "SystemExit",
    ),
    "returns no function": (
        """
        def bench_bad():
            return 42
        """,
        ("setup", "not-callable"),
        "bench_bad returned an int, which cannot be called",
        "",
    ),
    "raises late": (
        """
        calls = 0
        def bench_bad():
            def call():
                global calls
                calls += 1
                if calls > 8:
                    raise RuntimeError(f"call {calls} failed")
            return call
        """,
        ("call", "RuntimeError"),
        "call 9 failed",
        "RuntimeError",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_benchmark_costs_itself_alone_and_its_failure_says_what_and_where(
    what: str, bare_python: str, tmp_path: Path
) -> None:
    source, stage_and_kind, message, log = BAD[what]
    suite = with_good_neighbours(source)
    lines = [number for number, line in enumerate(suite.splitlines(), 1) if line.startswith("def bench_")]
    _, first, behind = lines  # of the benchmarks before, bad and after

    with a_session(bare_python, tmp_path, suite, memory_bytes=200 * MIB) as session:
        run_passes(session)
        failure = the_failure(session)
        neighbours = [len(windows_of(session, name)) for name in ("before", "after")]

    assert neighbours == [2, 2]
    assert (failure["stage"], failure["kind"]) == stage_and_kind
    assert message in failure["message"]
    assert log in failure["log"]
    assert failure["case"] == '["bad",{}]'
    assert failure["pass_index"] == 0  # what breaks once is not run again
    file, _, line = failure["source"].rpartition(":")
    assert file == "bench_example.py"
    assert first <= int(line) < behind
