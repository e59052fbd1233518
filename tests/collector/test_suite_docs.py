"""The page about writing benchmarks says what the code does."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from pathlib import Path

import pytest

import collector.suite
from collector.suite import Options, load_suites

PAGE = (Path(__file__).parents[2] / "docs" / "writing-benchmarks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def _import_path_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())


def test_the_first_example_is_a_suite(tmp_path: Path) -> None:
    file = tmp_path / "bench_softmax.py"
    file.write_text(BLOCKS[0], encoding="utf-8")

    cases, errors = load_suites([file], root=tmp_path)

    assert errors == []
    assert [case.label for case in cases] == [
        "softmax[dtype=bfloat16, rows=1024]",
        "softmax[dtype=bfloat16, rows=8192]",
    ]
    assert {case.source for case in cases} == {"bench_softmax.py:6"}


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_is_python_and_imports_what_there_is(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom):
            assert node.module == "collector.suite"
            assert {name.name for name in node.names} <= set(collector.suite.__all__)


def test_the_decorated_example_has_the_work_it_says(tmp_path: Path) -> None:
    (block,) = (block for block in BLOCKS if "@benchmark" in block)
    file = tmp_path / "bench_softmax.py"
    file.write_text(block, encoding="utf-8")

    (case,), errors = load_suites([file], root=tmp_path)

    assert errors == []
    assert (case.flops(), case.bytes_moved()) == (41943040.0, 33554432.0)


def test_the_table_lists_every_option_of_the_decorator() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]

    assert sorted(listed) == sorted(field.name for field in dataclasses.fields(Options))
