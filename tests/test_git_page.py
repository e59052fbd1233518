"""The page about git names tests that exist, and every case of it names one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "git.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]  # below the heading
TEST = re.compile(r"`(test_\w+)`")


def test_every_case_names_a_test() -> None:
    assert len(ROWS) > 20
    assert [row for row in ROWS if not TEST.search(row)] == []


def test_every_test_that_is_named_exists() -> None:
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert sorted(set(TEST.findall(PAGE)) - defined) == []
