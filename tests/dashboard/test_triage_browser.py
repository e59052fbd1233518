"""Deciding in a real browser: from the list to a decision that is there after loading again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from busy_store import sha_of
from served import serving, wait_for, wait_until_quiet

from store.database import Database
from store.triage import load_triage_events
from store.triage_events import Action

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser


def test_a_mute_that_was_typed_is_found_after_loading_the_page_again(
    browser: Chrome, busy_store: Database, tmp_path: Path
) -> None:
    from selenium.webdriver.common.keys import Keys

    store = Database(shutil.copy(busy_store.url, tmp_path / "copy.duckdb"))
    with serving(store.url, tmp_path, base_path="/perf") as served:
        browser.get(f"{served.address}/triage")
        wait_for(browser, ".kw-table a", text="softmax[").click()
        wait_for(browser, "input[aria-label='Your name']").send_keys("Ada Example", Keys.ENTER)
        wait_for(browser, "[data-testid=stFormSubmitButton] button:not([disabled])")
        wait_until_quiet(browser)
        wait_for(browser, "button:not([disabled]) p", text="Mute").click()
        wait_for(browser, "[data-testid=stDateInput]")
        wait_until_quiet(browser)
        wait_for(browser, "textarea[aria-label='Why']").send_keys("a known fault of the driver")
        wait_until_quiet(browser)
        wait_for(browser, "[data-testid=stFormSubmitButton] button", text="Mute").click()
        wait_for(browser, "[data-testid=stAlert]", text="Stored: mute")
        assert f"sha={sha_of(7)}" in browser.current_url

        browser.get(f"{served.address}/triage?show=Decided")
        wait_for(browser, ".kw-table td", text="by Ada Example: a known fault of the driver")
        browser.get(f"{served.address}/triage")
        wait_for(browser, ".kw-table", text="attention_decode[")
        assert "softmax[" not in wait_for(browser, "[data-testid=stMain]").text

    (event,) = load_triage_events(store)
    assert (event.action, event.decided_by, event.commit_sha) == (Action.MUTE, "Ada Example", sha_of(7))
