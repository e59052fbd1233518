"""What people excused is shown as that, counted, and fails nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from builders import EPOCH
from judgements import a_candidate, a_judgement, a_telling_judgement
from triage_events import an_event

from alerts.excuses import mark
from alerts.markdown import render_markdown
from alerts.message import compose
from alerts.terminal import render_text
from alerts.triage import Decisions
from store.triage_events import Action

if TYPE_CHECKING:
    from alerts.judge import RunJudgement
    from store.triage_events import TriageEvent

NOW = EPOCH + timedelta(days=3)
NASTY = "see @team\n| <b>`x`</b> \x1b[31m\u202e"


def marked(judgement: RunJudgement, *events: TriageEvent) -> RunJudgement:
    return mark(judgement, Decisions.of(events), at=NOW)


def a_regression() -> RunJudgement:
    return a_judgement(a_candidate(1.08), confirmed=True)


def test_a_confirmed_regression_fails_a_check_unless_it_is_muted_or_accepted_there() -> None:
    judgement = a_regression()

    assert judgement.has_confirmed_regression
    assert not marked(judgement, an_event(Action.MUTE)).has_confirmed_regression
    assert not marked(judgement, an_event(commit=21)).has_confirmed_regression
    assert marked(judgement, an_event(commit=20)).has_confirmed_regression
    assert not marked(judgement, an_event(commit=20), an_event(Action.MUTE)).has_confirmed_regression


def test_a_mute_that_is_over_excuses_nothing() -> None:
    mute = an_event(Action.MUTE, muted_until=(NOW - timedelta(days=1)).date())

    assert marked(a_regression(), mute).has_confirmed_regression


def test_another_regression_beside_a_muted_one_still_fails() -> None:
    judgement = a_judgement(a_candidate(1.08), a_candidate(1.08, benchmark="top_k"), confirmed=True)

    assert marked(judgement, an_event(Action.MUTE)).has_confirmed_regression


def test_what_was_measured_with_uncommitted_changes_is_not_what_was_accepted() -> None:
    judgement = a_regression()
    dirty = replace(judgement, header=replace(judgement.header, dirty=True))

    assert marked(dirty, an_event(commit=21)).judged[0].accepted is None


def test_the_message_counts_what_is_muted_and_says_until_when_by_whom_and_why() -> None:
    message = compose(marked(a_telling_judgement(), an_event(Action.MUTE)))

    assert message.answer.startswith("2 regressed (2 confirmed, 1 of them muted)")
    assert (
        "1 muted until 2026-06-30 by Ada Example: a known fault of the driver (softmax[rows=1024])"
        in message.caveats
    )
    assert [row.decided for row in message.changed[:2]] == [
        "REGRESSED, confirmed",
        "REGRESSED, confirmed, muted",
    ]
    assert message.worst is not None
    assert message.worst.benchmark == "top_k"


def test_a_muted_benchmark_that_did_not_change_is_shown_as_muted_too() -> None:
    message = compose(marked(a_judgement(a_candidate()), an_event(Action.MUTE)))

    assert message.unchanged[0].decided == "UNCHANGED, muted"
    assert message.caveats == (
        "1 muted until 2026-06-30 by Ada Example: a known fault of the driver (softmax[rows=1024])",
    )


def test_a_run_of_nothing_but_muted_regressions_still_has_a_worst() -> None:
    message = compose(marked(a_regression(), an_event(Action.MUTE)))

    assert message.worst is not None


def test_an_accepted_change_says_who_accepted_it_and_when() -> None:
    message = compose(marked(a_regression(), an_event(commit=21, body="wanted")))

    assert message.changed[0].decided == "REGRESSED, confirmed, accepted"
    assert "accepted at 000000000 by Ada Example on 2026-03-04: wanted" in message.caveats[-1]


def test_what_a_person_typed_drives_nothing_in_text_or_comment() -> None:
    mute = an_event(Action.MUTE, body=NASTY, decided_by=f"{NASTY}Eve")
    message = compose(marked(a_regression(), mute))
    text, comment = render_text(message), render_markdown(message)

    for shown in (text, comment):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert r"see @team | <b>`x`</b> \x1b[31m\u202e" in text
    assert "@team" not in comment
    assert "<b>" not in comment
