"""Filters: which rows are asked for, and when none can be."""

from __future__ import annotations

from store.filters import Filter, only


def test_what_is_none_asks_for_all() -> None:
    assert only({"run_id": None, "standing": None}) == Filter(where="", parameters=())


def test_columns_are_all_to_match_and_values_are_bound() -> None:
    assert only({"a": ["x", "y"], "b": None, "c": ["z"]}) == Filter(
        "where a in (?, ?) and c in (?)", ("x", "y", "z")
    )


def test_an_empty_list_matches_nothing() -> None:
    assert only({"a": [], "b": ["x"]}) is None
