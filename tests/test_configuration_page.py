"""The page on configuration says what the reader of the file accepts."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from alerts.configuration import JudgeTable
from alerts.policy import Override, Policy
from collector.configuration import CollectTable
from collector.tiers import TierRule
from store.configuration import TABLES
from store.settings import Place, read_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PAGE = (Path(__file__).parents[1] / "docs/configuration.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)


def rows_of(table: str) -> dict[str, str]:
    """The first two cells of the rows below the heading of a table, without its subsections."""
    section = PAGE.split(f"\n## `[{table}]`\n")[1].split("\n#")[0]
    return dict(ROW.findall(section))


def as_written(value: Any) -> str:
    if isinstance(value, tuple):
        return json.dumps(value)
    return f'"{value}"' if isinstance(value, StrEnum) else f"{value:g}"


@pytest.mark.parametrize(("table", "kind"), [("judge", Policy), ("tier", TierRule)])
def test_every_threshold_is_on_the_page_with_its_default(table: str, kind: type[DataclassInstance]) -> None:
    assert rows_of(table) == {entry.name: as_written(entry.default) for entry in fields(kind)}


def test_every_key_of_collect_is_on_the_page() -> None:
    assert list(rows_of("collect")) == [entry.name for entry in fields(CollectTable)]


def test_the_page_knows_every_table() -> None:
    assert [name for name in TABLES if f"`[{name}]`" not in PAGE] == []


def test_the_keys_that_cannot_be_overridden_stand_last() -> None:
    overridable = {entry.name for entry in fields(Override)}

    fixed = [name for name in rows_of("judge") if name not in overridable]

    assert fixed == list(rows_of("judge"))[-3:]


def test_the_example_is_one_that_can_be_read() -> None:
    example = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])

    place = Place("docs/configuration.md", "example")
    assert read_table(CollectTable, example["collect"], place).passes == 12
    assert len(read_table(JudgeTable, example["judge"], place).override) == 2
