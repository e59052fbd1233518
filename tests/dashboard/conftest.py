"""Lets the tests of this room import what lies beside them, and shares one busy store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pages import OpenPage
    from selenium.webdriver import Chrome

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Chromium with an empty profile that logs every request."""
    from served import chromium, missing_programs

    if missing_programs():
        reason = "Chromium or its driver is missing: run scripts/install_chromium.sh"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome
