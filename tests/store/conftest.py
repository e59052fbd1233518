"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.database import Database

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> Database:
    """A place for a store; nothing is there yet."""
    return Database(tmp_path / "runs.duckdb", lock_deadline_s=10)
