"""How the pages do on a large store: ``python tests/bench/bench_dashboard.py``. Printed, not asserted.

Makes stores of 1,000 and 2,000 commits x 100 benchmarks x 3 GPUs, serves each with the console
command and clicks through it in headless Chromium. Prints how long each page takes until it is
drawn, how much of that the server worked, what it holds in memory, how many marks the charts of a
page have, and how the times changed when the commits doubled. ``--commits N`` measures one other size.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in ("", "bench"))]

from large_store import fill_large_store  # noqa: E402 - after the path is set
from served import chromium, missing_programs, serving, wait_for, wait_until_quiet  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from selenium.webdriver import Chrome

COMMITS = (1_000, 2_000)
ROUNDS = 5
FIRST_PAGE_S, CLICK_S, MEMORY_MIB, MARKS = 1.5, 0.5, 400, 3_000
_COUNT_MARKS = "return document.querySelectorAll('svg.marks g[role=graphics-symbol], svg.marks path').length"
_FIRST = "first page of a visitor"


class Clicks:
    """Clicks through the pages, and remembers how long each took."""

    def __init__(self, browser: Chrome, server: int) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.worked: dict[str, list[float]] = {}
        self.marks = 0
        self._browser = browser
        self._server = server

    def timed(self, name: str, act: Callable[[], object], selector: str, *, text: str = "") -> None:
        """Act, and wait until what was asked for is on the page and the page is drawn."""
        started, worked = time.perf_counter(), processor_seconds(self._server)
        act()
        wait_for(self._browser, selector, text=text)
        wait_until_quiet(self._browser)
        self.seconds.setdefault(name, []).append(time.perf_counter() - started)
        self.worked.setdefault(name, []).append(processor_seconds(self._server) - worked)
        self.marks = max(self.marks, int(self._browser.execute_script(_COUNT_MARKS) or 0))

    def follow(self, name: str, link: str, selector: str, *, text: str = "") -> None:
        """Click a link of the page."""
        element = wait_for(self._browser, f"[data-testid=stMain] a[href*='{link}']")
        self.timed(name, element.click, selector, text=text)

    def back(self, title: str) -> None:
        """Go back, untimed."""
        self._browser.back()
        wait_for(self._browser, "h1", text=title)
        wait_until_quiet(self._browser)


def click_through(browser: Chrome, address: str, server: int) -> Clicks:
    """Visit each page several times by clicks alone."""
    clicks = Clicks(browser, server)
    for _ in range(ROUNDS):
        clicks.timed(_FIRST, lambda: browser.get(address), ".kw-table a")
        clicks.follow(
            "overview, another verdict", "verdict=confirmed", ".kw-chip[aria-current]", text="confirmed"
        )
        clicks.follow("overview to trend", "/trends?", "svg.marks")
        clicks.back("Overview")
        clicks.follow("overview to commit", "/commit?", "h3", text="Candidate against baseline")
        clicks.follow("commit to evidence", "/evidence?", "h3", text="Every sample")
        clicks.follow("evidence to machine", "/machine?", "h3", text="A/A")
    clicks.timed(
        "compare, by address", lambda: browser.get(f"{address}/compare"), "h3", text="Take it with you"
    )
    return clicks


def resident_mib(pid: int) -> float:
    """What a process holds in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def processor_seconds(pid: int) -> float:
    """How long a process has worked: what is left of a time when other programs keep the machine busy."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(commits: int) -> dict[str, float]:
    """Print the figures of one size; gives the median seconds by page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        database = fill_large_store(folder / "large.duckdb", commits=commits)
        size = database.path.stat().st_size / 2**20
        print(f"\n{commits:,} commits: {size:.0f} MiB, written in {time.perf_counter() - started:.0f} s")
        with serving(database.url, folder) as served, chromium(folder / "profile") as browser:
            clicks = click_through(browser, served.address, served.pid)
            print(f"{'page':<28} {'first':>8} {'median':>8} {'worst':>8} {'server':>8}   asked for")
            for page, seconds in clicks.seconds.items():
                limit = FIRST_PAGE_S if page.startswith(("first", "compare")) else CLICK_S
                print(
                    f"{page:<28} {seconds[0]:7.2f}s {statistics.median(seconds):7.2f}s {max(seconds):7.2f}s"
                    f" {statistics.median(clicks.worked[page]):7.2f}s"
                    f"   {limit:.1f} s"
                )
            print(
                f"{'memory of the server':<28} {resident_mib(served.pid):6.0f} MiB   "
                f"asked for {MEMORY_MIB} MiB"
            )
            print(f"{'marks on one page, at most':<28} {clicks.marks:6,}       asked for {MARKS:,}")
    return {page: statistics.median(seconds) for page, seconds in clicks.seconds.items()}


def main() -> None:
    """Measure both sizes, or the one asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commits", type=int, action="append", help="a size to measure; may be repeated")
    sizes = parser.parse_args().commits or list(COMMITS)
    if missing_programs():
        sys.exit("Chromium or its driver is missing: run scripts/install_chromium.sh")
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before")
    found = [measure(commits) for commits in sizes]
    if len(found) > 1:
        print(f"\n{sizes[-1]:,} against {sizes[0]:,} commits, ratio of the medians")
        for page, seconds in found[0].items():
            print(f"{page:<28} {found[-1][page] / seconds:7.2f}x")


if __name__ == "__main__":
    main()
