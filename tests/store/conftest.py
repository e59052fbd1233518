"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trees import SETTINGS, Tree

from store.database import Database

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> Database:
    """A place for a store; nothing is there yet."""
    return Database(tmp_path / "runs.duckdb", lock_deadline_s=10)


@pytest.fixture(name="tree")
def _tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository without a commit."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return Tree(tmp_path / "kernels")
