"""On a narrow window, with the long names of a real suite: no table has to be pushed, and no word is cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.support.ui import WebDriverWait
from served import serving, wait_for, wait_until_quiet

from alerts.judging import judge_run
from store.bundle import read_bundle
from store.database import Database
from store.runs import save_run
from store.series import load_points

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser

H200 = Path(__file__).parents[1] / "data" / "h200"
WIDTH_PX = 700
# Tables that are wider than their place, and words that reach beyond the drawing they belong to.
CUT = """
const cut = [];
for (const table of document.querySelectorAll('.kw-scroll'))
  if (table.scrollWidth > table.clientWidth + 1) cut.push(`table ${table.innerText.slice(0, 80)}`);
for (const chart of document.querySelectorAll('svg.marks')) {
  const whole = chart.getBoundingClientRect();
  for (const text of chart.querySelectorAll('text')) {
    const own = text.getBoundingClientRect();
    if (own.width && (own.right > whole.right + 3 || own.left < whole.left - 3)) cut.push(text.textContent);
  }
}
return cut;
"""


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Database:
    """Two runs of the built-in suite on an H200, and one of a small suite in which something failed."""
    database = Database(tmp_path / "h200.duckdb")
    for name in ("first", "second", "story/1-base", "story/2-head", "implementations"):
        run = read_bundle(H200 / f"{name}.kwrun")
        save_run(database, run)
        judge_run(database, run.header.run_id)
    return database


def addresses(store: Database) -> dict[str, int]:
    """Pages that hold tables or charts with names, and how many charts each has."""
    first, second = (read_bundle(H200 / f"{name}.kwrun").header for name in ("first", "second"))
    ids = sorted({point.series.id for point in load_points(store, run_ids=[second.run_id])})[:4]
    return {
        "": 0,
        f"commit?run={second.run_id}": 3,
        f"compare?base={first.commit_sha}&candidate={second.commit_sha}": 2,
        f"machine?gpu={second.gpu_uuid}": 4,
        f"trends?charts=together&series={'&series='.join(ids)}": 1,
    }


def wait_for_charts(browser: Chrome, least: int) -> None:
    count = "return document.querySelectorAll('svg.marks').length"
    WebDriverWait(browser, 30, poll_frequency=0.05).until(
        lambda driver: driver.execute_script(count) >= least
    )


def test_nothing_is_cut_off_on_a_narrow_window(browser: Chrome, store: Database, tmp_path: Path) -> None:
    cut = {}
    with serving(store.url, tmp_path) as served:
        browser.set_window_size(WIDTH_PX, 1400)
        for path, n_charts in addresses(store).items():
            browser.get(f"{served.address}/{path}")
            wait_for(browser, "h1")
            wait_until_quiet(browser)
            wait_for_charts(browser, n_charts)
            cut[path] = browser.execute_script(CUT)
        browser.set_window_size(1440, 1400)

    assert not any(cut.values()), cut
