"""The page about bundles says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from store import bundle, plain
from store.git import _OWN_SUFFIXES
from store.records import (
    Case,
    Commit,
    Failure,
    Interval,
    Kernel,
    Measurement,
    Reading,
    Run,
    RunHeader,
    Window,
)

PAGE = (Path(__file__).parents[2] / "docs" / "bundle.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "record",
    [Run, RunHeader, Measurement, Case, Interval, Kernel, Window, Reading, Failure, Commit],
    ids=lambda record: record.__name__,
)
def test_every_field_of_a_bundle_is_named(record: type) -> None:
    (row,) = re.findall(rf"^\| {record.__name__} \| (.*) \|$", PAGE, flags=re.MULTILINE)

    assert re.findall(r"`(\w+)`", row) == [field.name for field in fields(record)]


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (bundle.BUNDLE_BYTES_MAX, f"larger than {bundle.BUNDLE_BYTES_MAX // 2**20} MiB"),
        (bundle.DOCUMENT_BYTES_MAX, f"than {bundle.DOCUMENT_BYTES_MAX // 2**20} MiB when unpacked"),
        (bundle.VALUES_MAX, f"{bundle.VALUES_MAX:,} values"),
        (bundle.CONTAINERS_MAX, f"{bundle.CONTAINERS_MAX:,} lists and objects"),
        (plain.LIST_LENGTH_MAX, f"{plain.LIST_LENGTH_MAX:,} items in one list"),
        (plain.MAPPING_LENGTH_MAX, f"{plain.MAPPING_LENGTH_MAX:,} names in one object"),
        (plain.TEXT_LENGTH_MAX, f"{plain.TEXT_LENGTH_MAX:,} characters in one text"),
    ],
)
def test_every_limit_is_named(limit: int, words: str) -> None:
    assert limit > 0
    assert words in PAGE


def test_the_suffix_that_git_overlooks_is_named() -> None:
    assert bundle.BUNDLE_SUFFIX in _OWN_SUFFIXES
    assert f"`{bundle.BUNDLE_SUFFIX}`" in PAGE
