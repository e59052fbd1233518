"""The console command serving a store, and a real browser to look at it with."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[1]
SERVER_START_S = 60
PAGE_S = 60
_CHROMIUM_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers.

    Attributes:
        address: of the first page, without a slash at its end.
        pid: the process that serves; the command becomes it.
    """

    address: str
    pid: int


class ServerSilent(Exception):  # noqa: N818 - says what is wrong
    """The server did not start; the message is what it wrote."""


@contextmanager
def serving(store: str, folder: Path, *options: str, base_path: str = "") -> Iterator[Served]:
    """The console command, serving a store on a free port of this machine.

    Raises:
        ServerSilent: it gave no answer in time.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "server.log"
    command = [
        sys.executable, "-m", "dashboard", "--store", store, "--port", str(port), "--base-path", base_path,
        *options,
    ]  # fmt: skip
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT) as server,
    ):
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}{base_path}/_stcore/health", server, log)
            yield Served(f"http://127.0.0.1:{port}{base_path}", server.pid)
        finally:
            server.terminate()


def missing_programs() -> list[str]:
    """Of Chromium and its driver, those that are not installed."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


@contextmanager
def chromium(folder: Path, *, width: int = 1440, height: int = 1400) -> Iterator[Chrome]:
    """Chromium with an empty profile that logs every request."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_CHROMIUM_FLAGS, f"--window-size={width},{height}", f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    with Chrome(options=options, service=Service(shutil.which("chromedriver"))) as chrome:
        yield chrome


def wait_for(browser: Chrome, selector: str, *, text: str = "") -> Any:
    """The first element that fits and shows the text, once it is there."""

    def found(driver: Chrome) -> Any:
        elements = driver.find_elements(By.CSS_SELECTOR, selector)
        return next((element for element in elements if text in (element.text or "")), None)

    return WebDriverWait(
        browser, PAGE_S, poll_frequency=0.02, ignored_exceptions=(StaleElementReferenceException,)
    ).until(found, f"{selector} with {text!r}")


def wait_until_quiet(browser: Chrome) -> None:
    """Wait until the page is drawn: the script has run and nothing on the page is stale."""
    script = (
        "const app = document.querySelector('[data-testid=stApp]');"
        "return !!app && app.dataset.testScriptState === 'notRunning'"
        " && !document.querySelector('[data-stale=true]')"
    )
    WebDriverWait(browser, PAGE_S, poll_frequency=0.02).until(lambda driver: driver.execute_script(script))


def set_scheme(browser: Chrome, scheme: str) -> None:
    """Let the system of the reader prefer ``light`` or ``dark``."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = monotonic() + SERVER_START_S
    while monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError):
            sleep(0.1)
    raise ServerSilent(log.read_text())
