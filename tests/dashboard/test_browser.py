"""The pages in a real browser: by permalink from Overview to Trends, by a click to the commit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from busy_store import sha_of
from served import serving, set_scheme, wait_for, wait_until_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

    from store.database import Database

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(busy_store: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The console command, serving the busy store below a path as behind a proxy."""
    with serving(busy_store.url, tmp_path_factory.mktemp("server"), base_path="/perf") as served:
        yield served.address


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
    set_scheme(browser, "dark")

    browser.get(f"{address}/?q=softmax&verdict=confirmed")

    wait_for(browser, ".kw-table", text="softmax[")
    assert "topk[" not in wait_for(browser, "[data-testid=stMain]").text
    background = browser.execute_script(
        "return getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    red = int(background.removeprefix("rgb(").split(",")[0])
    assert red < 64


def test_clicks_lead_from_the_overview_to_every_sample_without_loading_the_page_again(
    browser: Chrome, address: str
) -> None:
    browser.get(address)
    link = wait_for(browser, ".kw-table a[href*='/commit?']", text=sha_of(10)[:9])
    browser.execute_script("window.loadedOnce = true")
    link.click()
    wait_for(browser, "h3", text="One benchmark in detail")
    wait_until_quiet(browser)
    evidence = wait_for(browser, ".kw-table a[href*='/evidence?']")
    # On the element itself: a chart that is drawn late moves what lies below the pointer.
    browser.execute_script("arguments[0].click()", evidence)
    wait_for(browser, "h3", text="Every sample")

    assert browser.execute_script("return window.loadedOnce === true")
    assert "/perf/evidence?run=" in browser.current_url
    permalink = browser.current_url

    browser.back()
    wait_for(browser, "h3", text="One benchmark in detail")
    browser.get(permalink)
    wait_for(browser, "h3", text="Every sample")


def test_a_count_of_a_gpu_leads_to_as_many_rows(browser: Chrome, address: str) -> None:
    browser.get(address)
    count = wait_for(browser, ".kw-table a.kw-count")
    number = int(count.text)
    count.click()
    wait_for(browser, ".kw-chip[aria-current]", text=str(number))
    wait_until_quiet(browser)

    rows = browser.find_elements("css selector", ".kw-table tbody tr")
    machines = browser.find_elements("css selector", "a[href*='/machine?']")
    assert len(rows) - len(machines) == number


@pytest.mark.parametrize("page", ["trends", "commit", "compare", "machine", "evidence"])
def test_each_page_opens_by_its_address(browser: Chrome, address: str, page: str) -> None:
    browser.get(f"{address}/{page}")

    wait_for(browser, "h1", text=page.capitalize())
    wait_until_quiet(browser)
    assert not browser.find_elements("css selector", "[data-testid=stException]")
