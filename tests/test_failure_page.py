"""The page about failure cases is whole, and each test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "failure-cases.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, flags=re.MULTILINE)
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)))


def test_the_page_has_each_case_once() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 86))


@pytest.mark.parametrize(("number", "shown_by"), [(row[0], row[-1]) for row in ROWS])
def test_every_case_names_a_test(number: str, shown_by: str) -> None:
    assert re.fullmatch(r"(`test_\w+\.py::test_\w+`(, )?)+", shown_by), f"case {number} shows {shown_by}"


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    (path,) = (ROOT / "tests").rglob(file)
    functions = {
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }

    assert test in functions
