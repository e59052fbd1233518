"""Make the picture in docs/pr-bot.md: the comment on a commit that was measured, as GitHub renders it.

    python scripts/picture_of_comment.py

Needs the extras alerts and test, and Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from alerts.github.report import section_of  # noqa: E402 - found after the path is set
from alerts.judging import judge_run  # noqa: E402
from alerts.markdown import BYTES_MAX, Surroundings  # noqa: E402
from alerts.message import compose  # noqa: E402
from store.bundle import read_bundle  # noqa: E402
from store.database import Database  # noqa: E402
from store.records import PairedRole  # noqa: E402
from store.runs import save_run  # noqa: E402

TARGET = ROOT / "docs" / "img" / "comment.png"
# What GitHub's own style does to a comment, as far as it changes the layout.
STYLE = """
body { margin: 0; background: #f6f8fa; color: #1f2328;
  font: 14px/1.5 -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { width: 846px; margin: 16px; padding: 16px; background: #fff; border: 1px solid #d1d9e0;
  border-radius: 6px; }
h3 { font-size: 1.25em; margin: 0 0 16px; } p, ul, table, pre, details, blockquote { margin: 0 0 16px; }
table { border-collapse: collapse; display: block; width: max-content; max-width: 100%; overflow: auto; }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0; } tr:nth-child(2n) { background: #f6f8fa; }
code { font: 85% "Liberation Mono", monospace; padding: .2em .4em; background: #818b981f; border-radius: 6px;
  white-space: break-spaces; overflow-wrap: anywhere; }
pre { padding: 16px; background: #f6f8fa; border-radius: 6px; overflow: auto; }
pre code { background: none; padding: 0; white-space: pre; } img { max-width: 100%; } a { color: #0969da; }
ul { padding-left: 2em; } blockquote { padding: 0 1em; color: #59636e; border-left: .25em solid #d1d9e0; }
"""
SIGNS = {"\U0001f534": "#d1242f", "\U0001f7e0": "#d97706", "\U0001f7e2": "#1a7f37", "\U0001f7e1": "#bf8700"}


def example(folder: Path) -> str:
    """The comment in Markdown."""
    database = Database(folder / "runs.duckdb")
    runs = [read_bundle(path) for path in sorted((ROOT / "tests/data/h200/story").glob("*.kwrun"))]
    for run in runs:
        save_run(database, run)
    first, second, *_ = (run.header for run in runs if run.header.paired_role is PairedRole.CANDIDATE)
    judge_run(database, first.run_id)
    judgement = judge_run(database, second.run_id)
    around = Surroundings(
        dashboard="https://perf.example.org", workflow="https://github.com/example/kernels", orders=True
    )
    return section_of(compose(judgement), around)(BYTES_MAX).text


def main() -> None:
    """Render and take the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        markdown = example(folder)
        # GitHub lets <details> through; the comment holds no other HTML.
        html = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
        for sign, colour in SIGNS.items():  # GitHub has a font for these, this machine may have none
            html = html.replace(sign, f'<span style="color:{colour}">\u25cf</span>')
        page = folder / "comment.html"
        page.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><style>{STYLE}</style><main>{html}</main>',
            encoding="utf-8",
        )
        command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=912,1104"]
        subprocess.run([*command, f"--screenshot={TARGET}", page.as_uri()], check=True, capture_output=True)
    print(f"wrote {TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
