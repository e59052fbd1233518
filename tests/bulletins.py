"""Bulletins and audiences, built for the tests of everything that tells people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from builders import a_sha
from judgements import a_candidate, a_judgement, a_telling_judgement

from alerts.audience import Audience
from alerts.bulletin import Bulletin, Picture, Recovery, Section
from alerts.message import compose
from store.outbox_records import Channel, Fact, News
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from alerts.judge import RunJudgement

PICTURE = Picture(png=b"\x89PNG\r\n\x1a\n", alt='a "trend"')
KEY = "0123456789abcdef" * 2


def an_audience(channel: Channel = Channel.EMAIL, **changes: Any) -> Audience:
    """Two readers of mail, or one webhook."""
    recipients = ("gpu-team@example.org", "Ada <ada@example.org>") if channel is Channel.EMAIL else ("HOOK",)
    return Audience(channel=channel, **({"recipients": recipients} | changes))


def a_section(judgement: RunJudgement | None = None, **changes: Any) -> Section:
    """The section on a run, in which every regression is news."""
    message = compose(judgement or a_telling_judgement())
    due = frozenset(
        row.verdict.series.id
        for row in message.changed
        if row.verdict.outcome is Outcome.REGRESSED
        and row.verdict.standing in (Standing.CONFIRMED, Standing.FLAGGED)
    )
    return replace(Section(message=message, due=due), **changes)


def a_recovery(benchmark: str = "softmax", **changes: Any) -> Recovery:
    """A series that commit 21 made slower, and that commit 30 brought back."""
    (item,) = a_judgement(a_candidate(1.08, benchmark=benchmark, **changes), confirmed=True).judged
    return Recovery(
        commit_sha=a_sha(21),
        verdict=item.verdict,
        point=a_candidate(1.0, commit=30, benchmark=benchmark, **changes),
    )


def a_bulletin(*sections: Section, recoveries: tuple[Recovery, ...] = (), kind: str = "") -> Bulletin:
    """What is told in these sections and of these recoveries."""
    fact = Fact(
        kind=News.REGRESSION, repository="example.org/code", commit_sha=a_sha(21), series_id="s", run_id="r"
    )
    return Bulletin(
        kind=kind or ("regression" if sections else "recovery"),
        sections=sections,
        recoveries=recoveries,
        facts=(fact,),
    )
