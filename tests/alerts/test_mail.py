"""The mail: subject, parts, stable id, escaping, picture."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_failure, a_kernel, a_measurement, a_point, a_run, a_sha
from bulletins import KEY, PICTURE, a_bulletin, a_recovery, a_section
from hypothesis import given, settings
from hypothesis import strategies as st
from judgements import a_candidate, a_history, a_judgement, excused

from alerts import chart
from alerts.email import compose_mail, message_id
from alerts.email_html import render_html
from alerts.email_text import WIDTH, render_mail_text
from alerts.mailing import draw_trend
from store.database import Database
from store.records import Tier
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.bulletin import Bulletin
    from alerts.judge import RunJudgement

HOSTILE = "<script>alert(1)</script>\r\nBcc: everybody@example.org\u202e\x1b[31m"
SENT_AT = datetime(2026, 4, 1, 12, 30, tzinfo=UTC)


def a_mail(bulletin: Bulletin | None = None, **changes: Any) -> EmailMessage:
    fields: dict[str, Any] = {
        "key": KEY,
        "sender": "kernelwatch <bot@example.org>",
        "recipients": ["gpu-team@example.org", "ada@example.org"],
        "sent_at": SENT_AT,
    }
    sent = compose_mail(bulletin or a_bulletin(a_section()), **(fields | changes))
    received = message_from_bytes(sent.as_bytes(), policy=policy.default)
    assert isinstance(received, EmailMessage)
    return received


def part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return str(body.get_content())


def test_the_subject_is_the_answer() -> None:
    assert a_mail()["Subject"] == (
        "[kernelwatch] softmax[rows=1024] is 8.07 % slower, 1 more regressed, at 000000000 on NVIDIA H200"
    )


def test_an_unconfirmed_regression_says_so_in_the_subject() -> None:
    section = a_section(a_judgement(a_candidate(1.08)))

    assert "slower (not confirmed) at" in a_mail(a_bulletin(section))["Subject"]


def test_the_subject_is_about_the_news_and_not_about_what_is_worse_and_known() -> None:
    section = a_section(a_judgement(a_candidate(1.3), a_candidate(1.05, benchmark="matmul"), confirmed=True))
    matmul = next(row.verdict.series.id for row in section.message.changed if row.benchmark == "matmul")

    title = a_bulletin(replace(section, due=frozenset({matmul}))).title

    assert title.startswith("matmul[rows=1024] is 4.91 % slower at ")
    assert "more regressed" not in title


def test_a_recovery_says_what_is_back_and_where() -> None:
    mail = a_mail(a_bulletin(recoveries=(a_recovery(), a_recovery("matmul"))))

    assert mail["Subject"].startswith("[kernelwatch] softmax[rows=1024] is back at 250.0 us, 1 more, at 0000")
    text = part(mail, "plain")
    assert "Back at the level from before:" in text
    assert "  regressed  269.8 us (269.6 to 270.0), with 000000000" in text
    assert "<h1" in part(mail, "html")


def test_a_digest_counts_regressions_commits_and_recoveries() -> None:
    later = a_section(a_judgement(a_candidate(1.2, commit=22), confirmed=True))
    digest = a_bulletin(a_section(), later, recoveries=(a_recovery(),), kind="digest")

    mail = a_mail(digest)

    assert mail["Subject"] == "[kernelwatch] Digest: 3 regressions on 2 commits, 1 benchmark back"
    text = part(mail, "plain")
    assert text.count("-" * WIDTH) == 2
    assert part(mail, "html").count("<h1") == 3


def test_a_mail_has_text_and_html_and_the_picture_belongs_to_the_html() -> None:
    mail = a_mail(a_bulletin(a_section(picture=PICTURE)))

    parts = [part.get_content_type() for part in mail.walk()]
    assert parts == [
        "multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png",
    ]  # fmt: skip
    image = next(part for part in mail.walk() if part.get_content_type() == "image/png")
    html = part(mail, "html")
    assert f'src="cid:{image["Content-ID"].strip("<>")}"' in html
    assert 'alt="a &quot;trend&quot;"' in html


def test_each_picture_of_a_digest_has_an_id_of_its_own() -> None:
    mail = a_mail(a_bulletin(a_section(picture=PICTURE), a_section(picture=PICTURE), kind="digest"))

    ids = [part["Content-ID"] for part in mail.walk() if part["Content-ID"]]
    assert len(set(ids)) == len(ids) == 2
    assert all(f'src="cid:{one.strip("<>")}"' in part(mail, "html") for one in ids)


def test_a_mail_without_a_picture_shows_none() -> None:
    mail = a_mail()

    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/alternative", "text/plain", "text/html",
    ]  # fmt: skip
    assert "<img" not in part(mail, "html")


def test_a_mail_says_what_it_is_and_to_whom() -> None:
    mail = a_mail()

    assert mail["To"] == "gpu-team@example.org, ada@example.org"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "2 regressed (2 confirmed)" in part(mail, "plain")
    assert "broken: failed in call" in part(mail, "plain")
    assert "Accept them, if they are wanted:" in part(mail, "plain")
    assert "  alerts triage accept softmax top_k --at 000000000" in part(mail, "plain")


def test_what_an_audience_is_not_told_again_is_counted() -> None:
    mail = a_mail(a_bulletin(a_section(left_out="Left out: 2 regressions told before.")))

    assert "Left out: 2 regressions told before." in part(mail, "plain")
    assert "Left out: 2 regressions told before." in part(mail, "html")


def test_the_same_message_has_the_same_id() -> None:
    assert message_id(KEY, sender="Bot <bot@example.org>") == f"<{KEY}@example.org>"
    assert a_mail()["Message-ID"] == a_mail(sent_at=datetime(2026, 5, 1, tzinfo=UTC))["Message-ID"]


def test_no_line_of_the_text_has_to_be_wrapped_but_commands() -> None:
    lines = render_mail_text(a_bulletin(a_section(), recoveries=(a_recovery(),))).splitlines()

    assert [line for line in lines if len(line) > WIDTH and " --" not in line] == []


class _Tags(HTMLParser):
    """Collects which elements a page has, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert {name for name, _ in attrs} <= {"style", "lang", "charset", "src", "alt", "width"}
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


ELEMENTS = {
    "html", "head", "meta", "title", "body", "h1", "p", "table", "tr", "th", "td", "code", "span", "strong",
    "br", "img", "ul", "li", "pre",
}  # fmt: skip


def a_hostile_judgement(text: str) -> RunJudgement:
    judgement = a_judgement(
        a_candidate(1.08, benchmark=text, kernels=(a_kernel(name=text, registers=9),)),
        a_candidate(benchmark="poor", tier=Tier.C, tier_evidence=(text,)),
        failures=(a_failure(message=text),),
    )
    return excused(judgement, text)


def test_no_name_becomes_an_element_or_a_header() -> None:
    bulletin = a_bulletin(a_section(a_hostile_judgement(HOSTILE), picture=PICTURE))

    mail = a_mail(bulletin)

    tags = _Tags()
    tags.feed(render_html(bulletin, ["<trend@example.org>"]))
    assert tags.open == []
    assert tags.seen == ELEMENTS
    assert mail["Bcc"] is None
    assert "\n" not in str(mail["Subject"])
    assert r"\r\nBcc: everybody" in str(mail["Subject"])


@settings(max_examples=25, deadline=None)
@given(text=st.text(min_size=1, max_size=60))
def test_whatever_a_benchmark_is_called_the_mail_has_the_same_shape(text: str) -> None:
    recovery = a_recovery(text)
    bulletin = a_bulletin(a_section(a_hostile_judgement(text)), recoveries=(recovery,))

    raw = compose_mail(
        bulletin, key=KEY, sender="bot@example.org", recipients=["ada@example.org"], sent_at=SENT_AT
    ).as_bytes()
    mail = message_from_bytes(raw, policy=policy.default)

    assert raw.isascii()
    assert isinstance(mail, EmailMessage)
    assert mail.defects == []
    assert list(mail.keys()) == [
        "Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
    ]  # fmt: skip
    tags = _Tags()
    tags.feed(part(mail, "html"))
    assert tags.open == []
    assert tags.seen <= ELEMENTS
    seen = part(mail, "plain").replace("\n", "")
    assert all(character.isprintable() or character == "\u3000" or character.isspace() for character in seen)
    assert "\x1b" not in seen


def test_a_mail_on_many_changes_shows_fifty_and_counts_the_rest() -> None:
    section = a_section(a_judgement(a_candidate(1.08)))
    many = replace(section, message=replace(section.message, changed=section.message.changed * 60))

    html = render_html(a_bulletin(many), [""])

    assert html.count("<tr>") == 1 + 50
    assert "and 10 more changes." in html
    assert "and 10 more changes." in render_mail_text(a_bulletin(many))


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_the_trend_is_a_png_sharp_enough_for_a_dense_screen() -> None:
    png = chart.trend_png([*reversed(a_history()), a_candidate(1.08)], title="softmax")

    width, height = size_of(png)
    assert width > 2 * 600
    assert height > 2 * 200
    assert len(png) < 200_000


def test_the_trend_marks_the_candidate_by_shape_as_well_as_colour() -> None:
    spec = chart.trend_chart([*reversed(a_history(length=6)), a_candidate(1.08)], title="s").to_dict()

    (values,) = spec["datasets"].values()
    assert [row["role"] for row in values] == ["baseline"] * 6 + ["candidate"]
    assert values[-1]["center"] == pytest.approx(270, abs=2)
    marks = spec["layer"][1]["encoding"]
    assert marks["shape"]["field"] == marks["color"]["field"] == "role"
    assert spec["layer"][0]["encoding"]["y"]["title"] == "time, us"


def test_the_picture_shows_what_was_compared_oldest_first(tmp_path: Path) -> None:
    database = Database(tmp_path / "trend.duckdb")
    for commit in range(15, 21):
        save_run(database, a_run(commit, measurements=(a_measurement(seed=commit * 100),)))
    candidate = a_candidate(1.08)
    history = tuple(a_point(commit, seed=commit * 100) for commit in range(20, 14, -1))
    (item,) = a_judgement(candidate, history=history).judged

    picture = draw_trend(database, item)

    assert picture is not None
    assert picture.alt.startswith("softmax[rows=1024]: 6 baseline runs, then this run at 270.")
    assert size_of(picture.png)[0] > 0
    assert item.verdict.baseline_run_ids[0] == a_point(20).header.run_id
    assert item.point.header.commit_sha == a_sha(21)
