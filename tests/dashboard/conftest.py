"""Lets the tests of this room import what lies beside them, and shares one busy store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from pages import OpenPage

    from store.database import Database


@pytest.fixture(scope="session")
def busy_store(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Ten commits of the story on two GPUs; nobody writes to it."""
    from busy_store import fill_store

    return fill_store(tmp_path_factory.mktemp("busy") / "busy.duckdb", n_commits=10, samples=5)


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open a page of a store with the parameters of a URL."""
    from pages import OpenPage

    return OpenPage(monkeypatch)
