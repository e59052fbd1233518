"""What one mail or webhook call tells: runs that regressed, and series that are back. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alerts.change_words import how_much
from alerts.message import benchmarks_of
from alerts.next_steps import accept_command, accept_title
from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from alerts.judge import JudgedPoint, RunJudgement
    from alerts.message import Message, Row
    from store.outbox_records import Fact
    from store.records import Case, RunHeader, SeriesPoint, Verdict

_LABEL_LIMIT = 60
_GPU_LIMIT = 40
_TITLE_LIMIT = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG that is shown in a mail.

    Attributes:
        alt: what it shows, for those who do not see it.
    """

    png: bytes
    alt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What is told about one run.

    Attributes:
        due: ids of the series whose regressions are the news.
        left_out: regressions that are not shown and why, in words, or None.
        picture: the trend of the worst regression, where one could be drawn.
    """

    message: Message
    due: frozenset[str]
    left_out: str | None = None
    picture: Picture | None = None

    @property
    def news(self) -> list[Row]:
        """The rows that are the news, worst first."""
        return [row for row in self.message.changed if row.verdict.series.id in self.due]

    @property
    def decision(self) -> str | None:
        """The command by which a wanted change is accepted; None for code that no commit holds."""
        return accept_command(self.message.header, benchmarks_of(self.news))

    @property
    def decision_title(self) -> str:
        """What stands above it."""
        return accept_title(benchmarks_of(self.news))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A series that had regressed and is back at its level from before.

    Attributes:
        commit_sha: the commit that the regression came with.
        verdict: the confirmed regression.
        point: the newest measurement, which shows that it is back.
    """

    commit_sha: str
    verdict: Verdict
    point: SeriesPoint

    @property
    def label(self) -> str:
        """The benchmark with its parameters, as it is written in the code."""
        return self.verdict.series.case.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulletin:
    """One message to one audience, before it takes the form of a channel.

    Attributes:
        kind: regression, recovery or digest.
        facts: what it tells, for the outbox.
    """

    kind: str
    sections: tuple[Section, ...]
    recoveries: tuple[Recovery, ...]
    facts: tuple[Fact, ...]

    @property
    def title(self) -> str:
        """The answer in five seconds: ``softmax is 8.1 % slower, 2 more regressed, at 1a2b3c4d5``.

        Of a drift: ``softmax is 2.4 % slower than v1.2.0 at 1a2b3c4d5``.
        """
        return shown.visible(self._title(), limit=_TITLE_LIMIT)

    def _title(self) -> str:
        back = len(self.recoveries)
        if self.kind == "digest":
            regressed = sum(len(section.due) for section in self.sections)
            commits = len({section.message.header.commit_sha for section in self.sections})
            parts = [
                f"{shown.count(regressed, 'regression')} on {shown.count(commits, 'commit')}"
                if regressed
                else "",
                f"{shown.count(back, 'benchmark')} back" if back else "",
            ]
            return f"Digest: {', '.join(part for part in parts if part)}"
        if self.sections:
            return headline(self.sections)
        newest = self.recoveries[0]
        others_back = f", {back - 1} more," if back > 1 else ""
        now = shown.amount(newest.point.interval.center or 0.0, newest.verdict.series.quantity)
        return (
            f"{shown.visible(newest.label, limit=_LABEL_LIMIT)} is back at {now}{others_back} "
            f"{_where(newest.point.header)}"
        )


def headline(sections: Sequence[Section]) -> str:
    """The worst of what is new, in one line, and how much more there is."""
    rows = [(row, section.message.header) for section in sections for row in section.news]
    if not rows:
        header = sections[0].message.header
        return f"{sections[0].message.answer} {_where(header)}"
    worst, header = max(rows, key=lambda found: found[0].verdict.effect or 0.0)
    confirmed = "" if worst.verdict.standing is Standing.CONFIRMED else " (not confirmed)"
    also = f", {len(rows) - 1} more regressed," if len(rows) > 1 else ""
    label = shown.visible(worst.label, limit=_LABEL_LIMIT)
    return f"{label} is {how_much(worst.verdict)}{confirmed}{also} {_where(header)}"


def narrowed(judgement: RunJudgement, covers: Callable[[Case], bool], due: Collection[str]) -> RunJudgement:
    """The part of a judgement that concerns an audience.

    Of the confirmed regressions it keeps those that are due. What failed as a whole file
    concerns everybody.
    """

    def is_kept(item: JudgedPoint) -> bool:
        verdict = item.verdict
        known = verdict.outcome is Outcome.REGRESSED and verdict.standing is Standing.CONFIRMED
        return covers(verdict.series.case) and (not known or verdict.series.id in due)

    return replace(
        judgement,
        judged=tuple(item for item in judgement.judged if is_kept(item)),
        failures=tuple(
            failure for failure in judgement.failures if failure.case is None or covers(failure.case)
        ),
        missing=tuple(case for case in judgement.missing if covers(case)),
    )


def _where(header: RunHeader) -> str:
    return f"at {shown.short(header.commit_sha)} on {_gpu(header.gpu_name)}"


def _gpu(name: str) -> str:
    return shown.one_line(name, limit=_GPU_LIMIT)
