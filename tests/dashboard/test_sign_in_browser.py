"""Signing in through a real browser and a real service, deciding, and signing out."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from busy_store import sha_of
from oidc_provider import CLIENT_ID, CLIENT_SECRET, a_key, signing_in
from served import serving, wait_for, wait_until_quiet

from store.database import Database
from store.triage import load_triage_events
from store.triage_events import Action

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser

ADA = {"sub": "248289761001", "name": "Ada Example", "email": "ada@example.org"}
SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{{port}}/perf/oauth2callback"
cookie_secret = "{cookie_secret}"
client_id = "{client_id}"
client_secret = "{client_secret}"
server_metadata_url = "{issuer}/.well-known/openid-configuration"
"""


def a_secrets_file(folder: Path, issuer: str) -> Path:
    file = folder / "sign-in.toml"
    words = SECRETS.format(
        cookie_secret="0123456789abcdef" * 2, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, issuer=issuer
    )
    file.write_text(words, encoding="utf-8")
    return file


def click_sign_in(browser: Chrome) -> None:
    """Press the button of the page, and that of the service."""
    wait_until_quiet(browser)
    wait_for(browser, ".st-key-sign-in button").click()
    wait_for(browser, "form button", text="It is me").click()


def test_who_signs_in_decides_under_the_name_that_the_service_tells(
    browser: Chrome, busy_store: Database, tmp_path: Path
) -> None:
    store = Database(shutil.copy(busy_store.url, tmp_path / "copy.duckdb"))
    with (
        signing_in(ADA) as provider,
        serving(
            store.url,
            tmp_path,
            "--secrets",
            str(a_secrets_file(tmp_path, provider.issuer)),
            base_path="/perf",
        ) as served,
    ):
        provider.redirect_uris.add(f"{served.address}/oauth2callback")
        browser.get(f"{served.address}/triage")
        wait_for(browser, ".kw-table a", text="softmax[").click()
        wait_for(browser, "[data-testid=stAlert]", text="Without sign-in these pages are read only.")
        assert not browser.find_elements("css selector", "form, textarea, input[aria-label='Your name']")

        provider.signing_key = a_key()  # a token that anybody could have made
        click_sign_in(browser)
        wait_for(browser, "[data-testid=stAlert]", text="Without sign-in these pages are read only.")
        provider.signing_key = None
        click_sign_in(browser)

        wait_for(browser, "[data-testid=stText]", text="Ada Example <ada@example.org>")
        assert f"sha={sha_of(7)}" in browser.current_url, "where the button was pressed"
        wait_until_quiet(browser)
        wait_for(browser, "[data-testid=stFormSubmitButton] button", text="Accept").click()
        wait_for(browser, "[data-testid=stAlert]", text="Stored: accept")

        wait_until_quiet(browser)
        wait_for(browser, ".st-key-sign-out button").click()
        wait_for(browser, ".st-key-sign-in button")
        assert "/perf/triage" in browser.current_url

    (event,) = load_triage_events(store)
    assert (event.action, event.decided_by) == (Action.ACCEPT, "Ada Example <ada@example.org>")
    assert (provider.tokens, provider.goodbyes, provider.refused) == (2, 1, [])
