"""The pages in a real browser: by permalink from Overview to Trends, by a click to the commit."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from busy_store import sha_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

    from store.database import Database

pytestmark = pytest.mark.browser
SERVER_START_S = 60
PAGE_S = 60
_CHROMIUM_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1440,1400",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Chromium with an empty profile that logs every request."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "Chromium or its driver is missing: run scripts/install_chromium.sh"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*_CHROMIUM_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    with Chrome(options=options, service=Service(driver)) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def address(busy_store: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The console command, serving the busy store below a path as behind a proxy."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [
        sys.executable, "-m", "dashboard",
        "--store", busy_store.url, "--port", str(port), "--base-path", "/perf",
    ]  # fmt: skip
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=Path(__file__).parents[2]
        ) as server,
    ):
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}/perf/_stcore/health", server, log)
            yield f"http://127.0.0.1:{port}/perf"
        finally:
            server.terminate()


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Ask until the server answers; its own words are in the failure."""
    from time import monotonic, sleep

    deadline = monotonic() + SERVER_START_S
    while monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError):
            sleep(0.1)
    pytest.fail(f"the server did not start: {log.read_text()}")


def wait_for(browser: Chrome, selector: str, *, text: str = "") -> Any:
    """The first element that fits, once it is there."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def found(driver: Chrome) -> Any:
        elements = driver.find_elements(By.CSS_SELECTOR, selector)
        return next((element for element in elements if text in (element.text or "")), None)

    return WebDriverWait(browser, PAGE_S, ignored_exceptions=_stale()).until(
        found, f"{selector} with {text!r}"
    )


def _stale() -> tuple[type[Exception], ...]:
    from selenium.common.exceptions import StaleElementReferenceException

    return (StaleElementReferenceException,)


def requested_hosts(browser: Chrome) -> set[str]:
    """The hosts that pages asked for anything, by the browser's own log.

    Chromium's own pages (a start page, say) are no request of ours and have no host.
    """
    hosts = set()
    for entry in browser.get_log("performance"):  # type: ignore[no-untyped-call]
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            url = urlsplit(event["params"]["request"]["url"])
        elif event["method"] == "Network.webSocketCreated":
            url = urlsplit(event["params"]["url"])
        else:
            continue
        if url.scheme in ("http", "https", "ws", "wss"):
            hosts.add(url.hostname or "")
    return hosts


def test_from_the_overview_to_a_trend_to_its_commit_without_leaving_the_host(
    browser: Chrome, address: str
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser.get(address)
    wait_for(browser, ".kw-table a", text="softmax[").click()

    wait_for(browser, "h1", text="Trends")
    assert "/perf/trends?series=" in browser.current_url
    point = wait_for(browser, f"path[aria-label*='{sha_of(7)[:9]}'][aria-roledescription=point]")
    ActionChains(browser).move_to_element(point).click().perform()
    wait_for(browser, "[data-testid=stPageLink] a", text=f"Open {sha_of(7)[:9]}").click()

    wait_for(browser, "h1", text="Reformat the attention launcher")
    assert f"sha={sha_of(7)}" in browser.current_url
    wait_for(browser, ".kw-badge", text="regressed, confirmed")

    browser.back()
    wait_for(browser, "h1", text="Trends")
    assert requested_hosts(browser) == {"127.0.0.1"}


def test_a_shared_address_opens_the_same_view_in_dark_mode(browser: Chrome, address: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )

    browser.get(f"{address}/?q=softmax&outcome=REGRESSED")

    wait_for(browser, ".kw-table", text="softmax[")
    assert "topk[" not in wait_for(browser, "[data-testid=stMain]").text
    background = browser.execute_script(
        "return getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    red = int(background.removeprefix("rgb(").split(",")[0])
    assert red < 64
