"""Who hears of what: rules, owner files, digests, and when a regression is over."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_sha
from bulletins import an_audience
from judgements import a_candidate, a_judgement
from triage_events import REPOSITORY, an_event

from alerts.audience import Audience, Digest, Rule, one_address, owner_audiences
from alerts.errors import MailError
from alerts.inbox import Change
from alerts.news import flags, recovered, select
from store.outbox_records import Channel, Fact, News
from store.records import Case, SeriesKey, Tier
from store.triage_events import Action

if TYPE_CHECKING:
    from alerts.judge import RunJudgement

NOBODY: tuple[Fact, ...] = ()


def a_change(judgement: RunJudgement, **changes: Any) -> Change:
    """The change that the first regression of a judgement shows, on commit 21."""
    fields: dict[str, Any] = {
        "verdict": judgement.judged[0].verdict,
        "repository": REPOSITORY,
        "commit_sha": a_sha(21),
        "seen_at": (),
        "on_base": True,
    }
    return Change(**(fields | changes))


@pytest.fixture
def judgement() -> RunJudgement:
    return a_judgement(a_candidate(1.08), confirmed=True)


def told_of(judgement: RunJudgement, commit: int = 21) -> Fact:
    return Fact(
        kind=News.REGRESSION,
        repository=REPOSITORY,
        commit_sha=a_sha(commit),
        series_id=judgement.judged[0].verdict.series.id,
        run_id="any",
    )


def test_a_change_that_a_judged_run_shows_is_news_once(judgement: RunJudgement) -> None:
    change = a_change(judgement)

    fresh = select([change], [judgement], an_audience(), NOBODY)
    again = select([change], [judgement], an_audience(), [fresh.due[0].fact])

    assert [(due.commit_sha, due.series) for due in fresh.due] == [(a_sha(21), change.series)]
    assert again.due == ()
    assert again.left_out == Counter({"told before": 1})


@pytest.mark.parametrize("commit", [21, 22])
def test_a_change_is_one_however_many_commits_show_it(judgement: RunJudgement, commit: int) -> None:
    """Also when a commit in between is measured later, and the change turns out to be older."""
    change = a_change(judgement, seen_at=(a_sha(22),))

    assert select([change], [judgement], an_audience(), [told_of(judgement, commit)]).due == ()


def test_a_change_that_no_judged_run_shows_is_not_asked_about(judgement: RunJudgement) -> None:
    elsewhere = a_change(judgement, commit_sha=a_sha(5))

    found = select([elsewhere], [judgement], an_audience(), NOBODY)

    assert (found.due, found.left_out) == ((), Counter())


@pytest.mark.parametrize(
    ("decided", "why"),
    [
        ({"muted": an_event(Action.MUTE)}, "muted"),
        ({"accepted": an_event(Action.ACCEPT)}, "accepted"),
        ({"recovered_at": a_sha(25)}, "back again"),
    ],
    ids=["muted", "accepted", "recovered"],
)
def test_what_was_decided_or_is_over_is_left_out_and_counted(
    judgement: RunJudgement, decided: dict[str, Any], why: str
) -> None:
    found = select([a_change(judgement, **decided)], [judgement], an_audience(), NOBODY)

    assert (found.due, found.left_out) == ((), Counter({why: 1}))


def test_a_lower_tier_and_a_benchmark_of_others_are_no_news(judgement: RunJudgement) -> None:
    rough = a_judgement(a_candidate(1.08, tier=Tier.B), confirmed=True)
    others = an_audience(rules=(Rule(benchmarks="matmul*"),))

    assert select([a_change(rough)], [rough], an_audience(), NOBODY).due == ()
    assert len(select([a_change(rough)], [rough], an_audience(minimum=Tier.B), NOBODY).due) == 1
    assert select([a_change(judgement)], [judgement], others, NOBODY).due == ()


def test_flags_are_news_unless_they_are_muted_or_were_told() -> None:
    flagged = a_judgement(a_candidate(1.08))
    audience = an_audience(flagged=True)

    def quiet(series: SeriesKey) -> bool:
        return series.case.benchmark == "softmax"

    fresh = flags(flagged, audience, NOBODY, lambda _: False)
    assert len(fresh.due) == 1
    assert flags(flagged, audience, [fresh.due[0].fact], lambda _: False).left_out == {"told before": 1}
    assert flags(flagged, audience, NOBODY, quiet).left_out == {"muted": 1}


def test_uncommitted_code_is_news_of_its_own_for_every_run() -> None:
    dirty = a_judgement(a_candidate(1.08, header={"dirty": True}))

    (due,) = flags(dirty, an_audience(flagged=True), NOBODY, lambda _: False).due

    assert due.commit_sha == dirty.header.run_id


@pytest.mark.parametrize(
    ("scales", "back"),
    [
        ((1.0,), False),
        ((1.0, 1.0), True),
        ((1.08, 1.0, 1.0), True),
        ((1.0, 1.0, 1.08), False),
        ((1.0, 1.05), False),
        ((0.8, 0.8), True),
    ],
)
def test_it_takes_two_sessions_at_the_old_level_to_be_back(
    judgement: RunJudgement, scales: tuple[float, ...], *, back: bool
) -> None:
    points = [a_candidate(scale, commit=30 + index) for index, scale in enumerate(scales)]

    found = recovered(judgement.judged[0].verdict, points)

    assert (found is not None) == back
    assert found in (None, points[-1])


def test_a_number_that_cannot_be_trusted_brings_nothing_back(judgement: RunJudgement) -> None:
    points = [a_candidate(1.0, commit=30), a_candidate(1.0, commit=31, tier=Tier.C)]

    assert recovered(judgement.judged[0].verdict, points) is None


OWNERS = """
# who looks after what
*              kernels@example.org
attention_*    ada@example.org bob@example.org   # both
attention_old
matmul[*k=8*]  bob@example.org ada@example.org
"""


def lists_told(case: Case) -> list[tuple[str, ...]]:
    return [
        addresses
        for addresses, rules in owner_audiences(OWNERS, name="OWNERS")
        if Audience(channel=Channel.EMAIL, recipients=addresses, rules=rules).covers(case)
    ]


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (Case.of("softmax", {}), [("kernels@example.org",)]),
        (Case.of("attention_decode", {}), [("ada@example.org", "bob@example.org")]),
        (Case.of("attention_old", {}), []),
        (Case.of("matmul", {"k": 7}), [("kernels@example.org",)]),
    ],
    ids=lambda value: value.label if isinstance(value, Case) else "",
)
def test_the_last_line_of_an_owner_file_that_matches_decides(case: Case, told: list[tuple[str, ...]]) -> None:
    assert lists_told(case) == told


def test_a_word_in_an_owner_file_that_is_no_address_names_its_line() -> None:
    with pytest.raises(MailError, match="OWNERS, line 2: 'ada' is not a mail address"):
        owner_audiences("* a@example.org\nmatmul ada\n", name="OWNERS")


@pytest.mark.parametrize(
    "word", ["ada", "ada@", "a@b@c", "a@b, c@d", "a@b\r\nBcc: c@d", "größe@example.org", "<>", "a b@c", ""]
)
def test_what_is_no_single_address_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not a mail address"):
        one_address(word)


@pytest.mark.parametrize(
    ("digest", "last", "due"),
    [
        (Digest.DAILY, None, True),
        (Digest.DAILY, datetime(2026, 4, 1, 0, 1, tzinfo=UTC), False),
        (Digest.DAILY, datetime(2026, 3, 31, 23, 59, tzinfo=UTC), True),
        (Digest.WEEKLY, datetime(2026, 3, 30, 0, 0, tzinfo=UTC), False),
        (Digest.WEEKLY, datetime(2026, 3, 29, 23, 59, tzinfo=UTC), True),
        (Digest.OFF, datetime(2026, 4, 1, 12, 0, tzinfo=UTC), True),
    ],
)
def test_a_digest_is_due_on_a_new_day_or_in_a_new_week(
    digest: Digest, last: datetime | None, *, due: bool
) -> None:
    assert digest.is_due(last, datetime(2026, 4, 1, 12, 0, tzinfo=UTC)) == due


def test_a_list_is_its_addresses_whatever_their_names_and_order() -> None:
    other = an_audience(recipients=("Ada Example <ada@example.org>", "gpu-team@example.org"))

    assert an_audience().name == other.name == "ada@example.org, gpu-team@example.org"
    assert replace(other, recipients=("ada@example.org",)).name != other.name
