"""The comment on real runs of an H200 with something planted, as GitHub's own Markdown renders it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import cmarkgfm
import pytest
from builders import a_failure, a_kernel
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st
from judgements import a_candidate, a_judgement
from planted_h200 import FOLDER, planted_runs

from alerts.github.report import section_of
from alerts.judging import judge_run
from alerts.markdown import BYTES_MAX, Surroundings
from alerts.message import compose
from alerts.trends import load_trends
from store.bundle import read_bundle
from store.database import Database
from store.records import PairedRole
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.message import Message

OURS = {
    "h3", "p", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "blockquote",
    "details", "summary",
}  # fmt: skip
PIECES = [
    "<", ">", "&", "`", "```", "|", "\n", "\\", "[x](https://e.example)", "@ada", "#12", "<img src=x>",
    "</details>", "<!--", "-->", "https://e.example", "www.e.example", "*", "_", "~~", "\u202e", "$x$", " ",
]  # fmt: skip


class Page(HTMLParser):
    """The tags of a page and the text that is not in code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.prose = ""
        self._in_code = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        """Leave code."""
        self._in_code -= tag == "code"

    def handle_data(self, data: str) -> None:
        """Collect what GitHub would search for mentions."""
        self.prose += "" if self._in_code else data


def rendered(markdown: str) -> Page:
    return Page(cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))


@pytest.fixture(name="markdown", scope="module")
def _markdown(tmp_path_factory: pytest.TempPathFactory) -> str:
    database = Database(tmp_path_factory.mktemp("planted") / "runs.duckdb")
    runs = planted_runs()
    for run in runs:
        save_run(database, run)
    judge_run(database, runs[-2].header.run_id)
    judgement = judge_run(database, runs[-1].header.run_id)
    around = Surroundings(
        dashboard="https://perf.example.org", orders=True, trends=load_trends(database, judgement)
    )
    return section_of(compose(judgement), around)(BYTES_MAX).text


def test_the_first_line_counts_what_was_planted(markdown: str) -> None:
    assert re.match(
        r"### \U0001f534 1 regressed \(1 confirmed\), 1 improved \(1 confirmed\), \d+ unchanged, "
        r".*2 not measured\n",
        markdown,
    )


def test_the_second_says_which_by_how_much_and_how_sure(markdown: str) -> None:
    said = re.match(
        r"`softmax\[dtype=float32, rows=64\]` is \*\*(\d\.\d\d) % slower\*\* \(95 %: (\d\.\d\d) % to "
        r"(\d\.\d\d) %\), confirmed in a fresh session\.",
        markdown.splitlines()[2],
    )

    assert said is not None
    assert float(said[2]) <= 4.7 <= float(said[3]) + 0.5
    assert "`/kernelwatch accept softmax`" in markdown


def test_the_trend_the_kernel_and_the_command_are_there(markdown: str) -> None:
    assert re.search(
        r"`[\u2581-\u2587]{6,}\u2588` \d+ baseline runs, then this run at 5\d\.\d\d us", markdown
    )
    assert "registers 32 -&#62; 56" in markdown
    assert "--only softmax --only gelu_mlp" in markdown


def test_what_failed_vanished_or_is_new_is_listed_with_its_reason(markdown: str) -> None:
    assert "failed in call: `RuntimeError: CUDA error: an illegal memory access was encountered`" in markdown
    assert "`scatter_add[dtype=bfloat16, experts=2, tokens=4096]` was last measured on" in markdown
    assert "`scatter_add_sorted[dtype=bfloat16, experts=2, tokens=4096]`" in markdown


def test_a_project_that_was_really_measured_twice_as_a_pair_tells_its_story(tmp_path: Path) -> None:
    database = Database(tmp_path / "story.duckdb")
    runs = [read_bundle(path) for path in sorted((FOLDER.parent / "story").glob("*.kwrun"))]
    for run in runs:
        save_run(database, run)
    heads = [run.header.run_id for run in runs if run.header.paired_role is PairedRole.CANDIDATE]
    judge_run(database, heads[0])

    message = compose(judge_run(database, heads[1]))
    lines = section_of(message, Surroundings())(BYTES_MAX).text.splitlines()

    assert lines[0].startswith(
        "### \U0001f534 1 regressed (1 confirmed), 1 improved (1 confirmed), 2 unchanged"
    )
    assert lines[2].startswith("`matmul` is **4.57 % slower**")
    assert "the same kernels ran as before" in lines[6]
    assert any("cunn_SoftMaxForwardSmem" in line and "is new" in line for line in lines)
    assert any("`RuntimeError: CUDA kernel top_k was not built for sm_90`" in line for line in lines)


def test_it_renders_to_tables_lists_and_links_alone(markdown: str) -> None:
    page = rendered(markdown)

    assert page.tags <= OURS | {"a"}
    assert {"table", "details", "a"} <= page.tags
    assert page.attributes <= {"href", "lang"}


def hostile(text: str) -> Message:
    return compose(
        a_judgement(
            a_candidate(1.08, benchmark=f"b{text}", kernels=(a_kernel(name=f"k{text}", registers=9),)),
            a_candidate(1.0, benchmark=f"same{text}"),
            failures=(a_failure(message=text, kind=f"K{text}"),),
            confirmed=True,
        )
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_text_of_a_benchmark_becomes_markup_a_mention_or_a_link(text: str) -> None:
    page = rendered(section_of(hostile(text), Surroundings())(BYTES_MAX).text)

    assert page.tags <= OURS
    assert page.attributes <= {"lang"}
    assert re.search(r"[@#]\w", page.prose) is None
