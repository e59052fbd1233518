"""Pages without a browser: open one by its URL, and read what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[2] / "dashboard" / "app.py"
PAGES = {
    "overview": "views/overview.py", "trends": "views/trends.py", "commit": "views/commit.py",
    "triage": "views/triage.py",
    "evidence": "views/evidence.py",
    "machine": "views/machine.py",
    "compare": "views/compare.py",
}  # fmt: skip


class OpenPage:
    """Runs a page as the server would, without a browser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, store: str | Path, page: str = "overview", **parameters: str | list[str]) -> AppTest:
        """The page as drawn."""
        from streamlit.testing.v1 import AppTest

        self._monkeypatch.setenv("KERNELWATCH_STORE", str(store))
        app = AppTest.from_file(str(APP), default_timeout=30)
        app.switch_page(PAGES[page])
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()


def text_of(app: AppTest) -> str:
    """Everything the page says, markup included."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    said = [str(getattr(element, "value", "")) for kind in kinds for element in app.get(kind)]
    return "\n".join([*said, *(str(element.proto.body) for element in app.get("html"))])


def specs_of(app: AppTest) -> list[dict[str, Any]]:
    """The Vega-Lite specifications of the charts on the page."""
    return [json.loads(element.proto.spec) for element in app.get("vega_lite_chart")]


def links_of(app: AppTest) -> list[tuple[str, str]]:
    """Label and query of the links to pages."""
    return [(element.proto.label, element.proto.query_string) for element in app.get("page_link")]
