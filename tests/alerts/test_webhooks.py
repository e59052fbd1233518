"""Webhooks: the forms, the signature, and that a URL stays secret, against a real server on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import threading
import traceback
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from bulletins import KEY, a_bulletin, a_recovery, a_section
from hypothesis import given, settings
from hypothesis import strategies as st
from judgements import a_candidate, a_judgement

from alerts.errors import WebhookError
from alerts.webhook import post
from alerts.webhook_forms import render_body
from store.outbox_records import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "T0KEN-of-the-hook"  # noqa: S105 - the token of a server that lives for one test
SECRET = "correct horse"  # noqa: S105 - as above
NOW = datetime(2026, 4, 1, 12, 30, tzinfo=UTC)
BODY = '{"text": "softmax is slower"}'
HOSTILE = "<!channel> *bold* [x](http://evil) @here :tada: <at>all</at>\r\n\x1b[31m"


@dataclass
class Hook:
    """What arrived, and how the next calls are answered: a status, headers and a body, or None to hang up."""

    answers: deque[tuple[int, dict[str, str], bytes] | None] = field(default_factory=deque)
    received: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return {"HOOK": f"http://localhost:{self.port}/services/{TOKEN}", "SECRET": SECRET}


@pytest.fixture
def hook() -> Iterator[Hook]:
    own = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            own.received.append((self.path, dict(self.headers), body))
            answer = own.answers.popleft() if own.answers else (200, {}, b"ok")
            if answer is None:
                self.close_connection = True
                return
            status, headers, words = answer
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(words))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(words)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    own.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield own
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def call(hook: Hook, **changes: Any) -> None:
    fields: dict[str, Any] = {
        "key": KEY, "url_variable": "HOOK", "signed_by": None, "environment": hook.environment, "now": NOW,
    }  # fmt: skip
    post(BODY, **(fields | changes))


def test_a_message_arrives_with_its_key(hook: Hook) -> None:
    call(hook)

    ((path, headers, body),) = hook.received
    assert path == f"/services/{TOKEN}"
    assert body == BODY.encode()
    assert headers["X-Kernelwatch-Key"] == KEY
    assert headers["Content-Type"] == "application/json"
    assert "X-Kernelwatch-Signature" not in headers


def test_a_receiver_can_verify_the_signature_with_the_secret_alone(hook: Hook) -> None:
    call(hook, signed_by="SECRET")

    ((_, headers, body),) = hook.received
    timestamp = headers["X-Kernelwatch-Timestamp"]
    expected = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert timestamp == str(int(NOW.timestamp()))
    assert headers["X-Kernelwatch-Signature"] == f"sha256={expected}"


@pytest.mark.parametrize(
    ("answer", "said", "lasting", "away", "uncertain"),
    [
        ((400, {}, b"invalid_blocks"), "answered 400 invalid_blocks: check", True, False, False),
        ((404, {}, b"no such hook " + TOKEN.encode()), "answered 404: check", True, False, False),
        ((302, {"Location": "http://evil.example"}, b""), "answered 302: check", True, False, False),
        ((429, {"Retry-After": "90"}, b""), "answered 429: it is tried again", False, True, False),
        ((503, {}, b""), "answered 503: it is tried again", False, True, False),
        (None, "gave no answer", False, True, True),
    ],
)
def test_how_a_call_ends_says_what_to_do(
    hook: Hook, answer: Any, said: str, *, lasting: bool, away: bool, uncertain: bool
) -> None:
    hook.answers.append(answer)

    with pytest.raises(WebhookError) as caught:
        call(hook)

    error = caught.value
    assert said in str(error)
    assert (error.lasting, error.away, error.uncertain) == (lasting, away, uncertain)
    assert error.retry_after_s == (90.0 if "429" in said else 0.0)


def test_nobody_listening_is_no_lost_answer(hook: Hook) -> None:
    with pytest.raises(WebhookError, match="cannot be reached") as caught:
        call(hook, environment={"HOOK": f"http://localhost:1/{TOKEN}"})

    assert caught.value.away
    assert not caught.value.uncertain


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "HOOK is not set"),
        (f"http://example.org/{TOKEN}", "holds no https URL"),
        (f"file:///{TOKEN}", "holds no https URL"),
        (f"https://example.org:{TOKEN}/", "holds no https URL"),
    ],
)
def test_a_variable_that_holds_no_safe_url_is_refused_without_showing_it(
    hook: Hook, url: str, said: str
) -> None:
    with pytest.raises(WebhookError, match=said) as caught:
        call(hook, environment={"HOOK": url})

    assert TOKEN not in "".join(traceback.format_exception(caught.value))


def test_a_signature_without_its_secret_is_refused(hook: Hook) -> None:
    with pytest.raises(WebhookError, match="GONE is not set"):
        call(hook, signed_by="GONE")

    assert hook.received == []


@pytest.mark.parametrize("answer", [(200, {}, b"ok"), (404, {}, TOKEN.encode()), None])
def test_no_log_and_no_traceback_holds_the_url_or_the_secret(
    hook: Hook, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    hook.answers.append(answer)
    text = ""
    with caplog.at_level(logging.DEBUG):
        try:
            call(hook, signed_by="SECRET")
        except WebhookError as error:
            text = "".join(traceback.format_exception(error))

    assert caplog.text  # the layers below do log
    assert TOKEN not in caplog.text + text
    assert SECRET not in caplog.text + text


def slack_texts(value: Any, *, found: list[tuple[str, str]] | None = None) -> list[tuple[str, str]]:
    """Type and text of every object with a text in it."""
    found = [] if found is None else found
    if isinstance(value, dict):
        if isinstance(value.get("text"), str) and "type" in value:
            found.append((value["type"], value["text"]))
        for inner in value.values():
            slack_texts(inner, found=found)
    elif isinstance(value, list):
        for inner in value:
            slack_texts(inner, found=found)
    return found


@settings(max_examples=25, deadline=None)
@given(text=st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=60)))
def test_whatever_a_benchmark_is_called_no_chat_reads_it_as_markup(text: str) -> None:
    section = a_section(a_judgement(a_candidate(1.08, benchmark=text), confirmed=True))
    bulletin = a_bulletin(section, recoveries=(a_recovery(text),))

    slack = json.loads(render_body(Channel.SLACK, bulletin, key=KEY))
    teams = json.loads(render_body(Channel.TEAMS, bulletin, key=KEY))

    assert slack["mrkdwn"] is False
    assert slack["link_names"] is False
    assert "<" not in slack["text"]
    assert {kind for kind, _ in slack_texts(slack)} == {"plain_text", "text"}  # none is mrkdwn
    assert {block["type"] for block in slack["blocks"]} == {"header", "rich_text"}
    card = teams["attachments"][0]["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert "entities" not in card["msteams"]  # without which no <at> is a mention
    for _, shown in [*slack_texts(slack["blocks"]), *slack_texts(card)]:
        assert all(
            character.isprintable() or character in "\n\u3000" for character in shown if ord(character) < 128
        )


def test_slack_and_teams_say_what_the_mail_says() -> None:
    bulletin = a_bulletin(a_section(), recoveries=(a_recovery(),))

    for channel in (Channel.SLACK, Channel.TEAMS):
        body = render_body(channel, bulletin, key=KEY)
        for words in (
            bulletin.title, "2 regressed (2 confirmed)", "softmax[rows=1024]", "+8.07 %", "tier A",
            "Not measured: broken", "collect --commit", "Back at the level from before",
        ):  # fmt: skip
            assert words in body, (channel, words)
        assert body.isascii()


def test_a_chat_message_on_many_changes_stays_within_the_limits() -> None:
    changed = [a_candidate(1.08, benchmark=f"{'long' * 30}_{number}") for number in range(20)]
    bulletin = a_bulletin(*[a_section(a_judgement(*changed, confirmed=True))] * 9, kind="digest")

    slack = json.loads(render_body(Channel.SLACK, bulletin, key=KEY))
    teams = render_body(Channel.TEAMS, bulletin, key=KEY)

    assert len(slack["blocks"]) <= 50
    assert len(slack["blocks"][0]["text"]["text"]) <= 150
    assert len(teams) < 28_000
    assert "and 12 more changes." in teams
    assert re.search(r"and \d+ more lines\.", teams)
    assert "and 4 more runs." in json.dumps(slack)


def test_the_json_holds_every_number_and_says_which_are_news() -> None:
    section = a_section()
    document = json.loads(render_body(Channel.JSON, a_bulletin(section), key=KEY))

    (run,) = document["runs"]
    assert (document["version"], document["key"], document["kind"]) == (1, KEY, "regression")
    assert set(run["news"]) == section.due
    assert [verdict["name"] for verdict in run["changed"]] == ["softmax", "top_k", "rms_norm"]
    assert run["changed"][0]["effect"] == pytest.approx(0.08, abs=0.005)
    assert run["not_measured"][0]["benchmark"].startswith("broken")
