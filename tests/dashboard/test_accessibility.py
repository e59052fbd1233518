"""Every page, in light and dark, wide and narrow, against the rules of axe-core."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from busy_store import sha_of
from served import serving, set_scheme, wait_for, wait_until_quiet

from store.runs import find_runs
from store.series import load_points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

    from store.database import Database

pytestmark = pytest.mark.browser
INSTALL = Path(__file__).parents[2] / "scripts" / "install_axe.sh"
SERIOUS = ("serious", "critical")
# Drawn by Streamlit, which we do not change: its lists of choices.
NOT_OURS = ["[data-baseweb=select]"]
_RUN = """
const done = arguments[arguments.length - 1];
const parts = {include: [['[data-testid=stMain]']], exclude: arguments[0].map((one) => [one])};
axe.run(parts, {resultTypes: ['violations']})
  .then((found) => done(found.violations.map((rule) => ({
    id: rule.id, impact: rule.impact, help: rule.help,
    nodes: rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? '')),
  }))))
  .catch((error) => done([{id: 'axe failed', impact: 'critical', help: String(error), nodes: []}]));
"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core, from a cache outside this repository."""
    found = subprocess.run([str(INSTALL)], capture_output=True, text=True, check=False)
    if found.returncode:
        if os.environ.get("CI"):
            pytest.fail(found.stderr)
        pytest.skip(f"axe-core is not here: {found.stderr.strip()[:200]}")
    return Path(found.stdout.strip()).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(busy_store: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(busy_store.url, tmp_path_factory.mktemp("axe-server")) as served:
        yield served.address


def addresses(store: Database) -> dict[str, tuple[str, str]]:
    """The address of each page, with a heading that shows that it is there."""
    run = find_runs(store, commit_sha=sha_of(7))[0]
    series = next(p for p in load_points(store, run_ids=[run.run_id], benchmarks=["softmax"])).series.id
    return {
        "overview": ("", "Overview"),
        "trends": (f"trends?series={series}", "Trends"),
        "commit": (f"commit?sha={sha_of(7)}", "Reformat"),
        "compare": (f"compare?base={sha_of(5)}&candidate={sha_of(9)}", "Compare"),
        "machine": (f"machine?gpu={run.gpu_uuid}", "Machine"),
        "evidence": (f"evidence?run={run.run_id}&series={series}", "softmax"),
        "triage": ("triage", "Triage"),
    }


def serious_findings(browser: Chrome, axe: str) -> list[dict[str, Any]]:
    browser.execute_script(axe)
    found = browser.execute_async_script(_RUN, NOT_OURS)
    return [finding for finding in found if finding["impact"] in SERIOUS]


@pytest.mark.parametrize("look", [("light", 1440), ("dark", 700)], ids=str)
def test_no_page_has_a_serious_finding(
    browser: Chrome, address: str, axe: str, busy_store: Database, look: tuple[str, int]
) -> None:
    scheme, width = look
    set_scheme(browser, scheme)
    browser.set_window_size(width, 1400)
    browser.set_script_timeout(60)
    findings = {}
    for page, (path, heading) in addresses(busy_store).items():
        browser.get(f"{address}/{path}")
        wait_for(browser, "h1", text=heading)
        wait_until_quiet(browser)
        findings[page] = serious_findings(browser, axe)
    browser.set_window_size(1440, 1400)

    assert not any(findings.values()), "\n".join(
        f"{page}: {finding}" for page, found in findings.items() for finding in found
    )
