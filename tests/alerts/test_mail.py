"""The mail: subject, parts, stable id, escaping, picture."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_failure, a_kernel, a_measurement, a_point, a_run, a_sha
from judgements import a_candidate, a_history, a_judgement, a_telling_judgement

from alerts import chart
from alerts.email import Picture, compose_mail, message_id, render_html, subject
from alerts.mailing import draw_trend, regressions_due, why_nothing_is_due
from alerts.message import compose
from store.database import Database
from store.records import Standing, Tier
from store.runs import save_run

if TYPE_CHECKING:
    from email.message import EmailMessage
    from pathlib import Path

    from alerts.message import Message

HOSTILE = "<script>alert(1)</script>\r\nBcc: everybody@example.org\u202e"
SENT_AT = datetime(2026, 4, 1, 12, 30, tzinfo=UTC)
PICTURE = Picture(png=b"\x89PNG\r\n\x1a\n", alt='a "trend"')


def a_mail(message: Message, *, picture: Picture | None = None, **changes: Any) -> EmailMessage:
    fields: dict[str, Any] = {
        "sender": "kernelwatch <bot@example.org>",
        "recipients": ["gpu-team@example.org", "ada@example.org"],
        "picture": picture,
        "sent_at": SENT_AT,
    }
    return compose_mail(message, **(fields | changes))


def test_the_subject_is_the_answer() -> None:
    assert subject(compose(a_telling_judgement())) == (
        "[kernelwatch] softmax[rows=1024] is 8.07 % slower, 1 more regressed, at 000000000 on NVIDIA H200"
    )


def test_an_unconfirmed_regression_says_so_in_the_subject() -> None:
    assert "slower (not confirmed) at" in subject(compose(a_judgement(a_candidate(1.08))))


def test_without_a_regression_the_subject_counts() -> None:
    assert subject(compose(a_judgement(a_candidate(0.9)))) == (
        "[kernelwatch] 1 improved (1 flagged) at 000000000 on NVIDIA H200"
    )


def test_a_mail_has_text_and_html_and_the_picture_belongs_to_the_html() -> None:
    mail = a_mail(compose(a_telling_judgement()), picture=PICTURE)

    parts = [part.get_content_type() for part in mail.walk()]
    assert parts == [
        "multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png",
    ]  # fmt: skip
    image = next(part for part in mail.walk() if part.get_content_type() == "image/png")
    html = mail.get_body(("html",))
    assert html is not None
    assert f'src="cid:{image["Content-ID"].strip("<>")}"' in html.get_content()
    assert 'alt="a &quot;trend&quot;"' in html.get_content()


def test_a_mail_without_a_picture_shows_none() -> None:
    mail = a_mail(compose(a_telling_judgement()))

    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/alternative", "text/plain", "text/html",
    ]  # fmt: skip
    html = mail.get_body(("html",))
    assert html is not None
    assert "<img" not in html.get_content()


def test_a_mail_survives_the_wire() -> None:
    sent = a_mail(compose(a_telling_judgement()), picture=PICTURE)

    received = message_from_bytes(sent.as_bytes(policy=policy.SMTP), policy=policy.default)

    assert received["Subject"] == sent["Subject"]
    assert received["To"] == "gpu-team@example.org, ada@example.org"
    assert received["Auto-Submitted"] == "auto-generated"
    body = received.get_body(("plain",))
    assert body is not None
    assert "2 regressed (2 confirmed)" in body.get_content()
    assert "broken: failed in call (ValueError: shapes do not match)" in body.get_content()


def test_the_same_run_to_the_same_readers_has_the_same_id() -> None:
    first = message_id("run-1", ["b@example.org", "Ada <a@example.org>"], sender="bot@example.org")

    assert first == message_id("run-1", ["a@example.org", "b@example.org"], sender="bot@example.org")
    assert first != message_id("run-2", ["a@example.org", "b@example.org"], sender="bot@example.org")
    assert first != message_id("run-1", ["a@example.org"], sender="bot@example.org")
    assert first.endswith("@example.org>")


class _Tags(HTMLParser):
    """Collects which elements a page has, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.seen.add(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_no_name_becomes_an_element_or_a_header() -> None:
    message = compose(
        a_judgement(
            a_candidate(1.08, benchmark=HOSTILE, kernels=(a_kernel(name=HOSTILE, registers=9),)),
            a_candidate(benchmark="poor", tier=Tier.C, tier_evidence=(HOSTILE,)),
            failures=(a_failure(message=HOSTILE),),
        )
    )

    mail = a_mail(message, picture=PICTURE)

    tags = _Tags()
    tags.feed(render_html(message, picture=PICTURE, content_id="<trend@example.org>"))
    assert tags.open == []
    assert tags.seen == {
        "html", "head", "meta", "title", "body", "h1", "p", "table", "tr", "th", "td", "code", "span",
        "strong", "br", "img", "ul", "li", "pre",
    }  # fmt: skip
    assert mail["Bcc"] is None
    assert "\n" not in str(mail["Subject"])
    assert r"\r\nBcc: everybody" in str(mail["Subject"])


def test_a_mail_on_many_changes_shows_fifty_and_counts_the_rest() -> None:
    message = compose(a_judgement(a_candidate(1.08)))
    html = render_html(replace(message, changed=message.changed * 60), picture=None, content_id="")

    assert html.count("<tr>") == 1 + 50
    assert "and 10 more changes." in html


def test_the_worst_confirmed_regression_of_the_tier_comes_first() -> None:
    judgement = a_judgement(
        a_candidate(1.05),
        a_candidate(1.2, benchmark="matmul"),
        a_candidate(1.5, benchmark="rough", tier=Tier.B),
        a_candidate(0.8, benchmark="faster"),
        confirmed=True,
    )

    def due(minimum: Tier) -> list[str]:
        found = regressions_due(judgement, minimum=minimum, flagged=False)
        return [item.point.series.case.benchmark for item in found]

    assert due(Tier.A) == ["matmul", "softmax"]
    assert due(Tier.B) == ["rough", "matmul", "softmax"]


def test_flags_are_due_only_when_asked_for_and_withdrawn_ones_never() -> None:
    flagged = a_judgement(a_candidate(1.05))
    withdrawn = flagged.with_verdicts([replace(v, standing=Standing.WITHDRAWN) for v in flagged.verdicts])

    assert regressions_due(flagged, minimum=Tier.A, flagged=False) == []
    assert len(regressions_due(flagged, minimum=Tier.A, flagged=True)) == 1
    assert regressions_due(withdrawn, minimum=Tier.A, flagged=True) == []


def test_why_nothing_was_sent_names_the_flags_that_wait() -> None:
    assert why_nothing_is_due(a_judgement(a_candidate(1.05)), minimum=Tier.A, flagged=False) == (
        "no confirmed regression of tier A or better at 000000000: nothing was sent "
        "(1 regression flagged, not confirmed: --flagged sends on those too)"
    )
    assert why_nothing_is_due(a_judgement(a_candidate()), minimum=Tier.B, flagged=True) == (
        "no regression of tier B or better at 000000000: nothing was sent"
    )


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


def test_without_the_drawing_packages_the_mail_has_no_picture_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chart, "can_draw", lambda: False)
    (item,) = a_judgement(a_candidate(1.08)).judged

    assert draw_trend(Database(tmp_path / "unused.duckdb"), item) is None
    assert "without a picture: install 'kernelwatch[alerts]'" in caplog.text
