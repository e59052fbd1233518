"""Pictures of every page in light and dark, from the H200 runs in tests/data: docs/img.

``PYTHONPATH=.:tests python scripts/take_screenshots.py [FOLDER]`` makes a store of the recorded
runs, judges them, adds the A/A study they are, serves it and photographs each page in Chromium.
"""

from __future__ import annotations

import io
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image
from served import chromium, serving, set_scheme, wait_for, wait_until_quiet

from alerts.judging import judge_run
from collector.aa_analysis import analyse
from store.bundle import read_bundle
from store.database import Database
from store.runs import find_runs, save_run
from store.series import load_points
from store.studies import save_study

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "h200"
STUDY_ID = "0a1b2c3d-0000-4000-8000-000000000003"
ANALYSED = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
WIDTH_PX, HEIGHT_PX = 1440, 1000
# What a page shows below this is more of the same.
_DRAWN_S = 1.5
_COLORS = 256  # enough for pages, and half of the size


def fill(path: Path) -> Database:
    """A store of all recorded runs, judged, with their A/A study."""
    database = Database(path)
    # Of the story, the two sessions in which both commits were measured in turn.
    for pattern in ("aa/*.kwrun", "story/[12]-*.kwrun", "*.kwrun"):
        for file in sorted(DATA.glob(pattern)):
            save_run(database, read_bundle(file))
    for header in reversed(find_runs(database)):
        judge_run(database, header.run_id)
    runs = [read_bundle(file) for file in sorted((DATA / "aa").glob("*.kwrun"))]
    save_study(database, analyse(runs, study_id=STUDY_ID, analysed_at=ANALYSED, tool_version="0.1.0"))
    return database


def addresses(database: Database) -> dict[str, str]:
    """The address of each page, by the name of its picture."""
    studied = read_bundle(DATA / "aa" / "01.kwrun").header
    changed = read_bundle(DATA / "story" / "2-head.kwrun").header
    first, second = (read_bundle(DATA / f"{name}.kwrun").header for name in ("first", "second"))
    points = load_points(database, run_ids=[second.run_id])
    series = {point.series.case.benchmark: point.series.id for point in points}
    return {
        "overview": "",
        "trends": f"trends?series={series['softmax']}&windows=shown",
        "commit": f"commit?sha={changed.commit_sha}",
        "compare": f"compare?base={first.commit_sha}&candidate={second.commit_sha}",
        "machine": f"machine?gpu={studied.gpu_uuid}",
        "evidence": f"evidence?run={second.run_id}&series={series['softmax']}",
        "triage": "triage",
    }


def main(folder: Path) -> None:
    """Take every picture."""
    from time import sleep

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        database = fill(place / "h200.duckdb")
        with (
            serving(database.url, place) as served,
            chromium(place / "profile", width=WIDTH_PX, height=HEIGHT_PX) as browser,
        ):
            for scheme in ("light", "dark"):
                set_scheme(browser, scheme)
                for page, path in addresses(database).items():
                    browser.get(f"{served.address}/{path}")
                    wait_for(browser, "h1")
                    wait_until_quiet(browser)
                    sleep(_DRAWN_S)  # charts fade in, and nothing says when they are done
                    picture = folder / f"dashboard-{page}-{scheme}.png"
                    Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB").quantize(
                        _COLORS
                    ).save(picture, optimize=True)
                    print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "img")
