"""From judged runs to messages in the outbox: what each audience is to be told, in the form it takes."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parseaddr
from typing import TYPE_CHECKING

from alerts import chart
from alerts.audience import Digest
from alerts.bulletin import Bulletin, Picture, Recovery, Section, narrowed
from alerts.deciding import load_changes
from alerts.email import compose_mail
from alerts.judging import judge_run
from alerts.message import compose
from alerts.news import Due, Selection, code_of, flags, recovered, select, waiting
from alerts.renamed_runs import renames_of_runs
from alerts.triage import Decisions
from alerts.webhook_forms import render_body
from store import shown
from store.commits import first_parent_line, load_commits
from store.older_names import NO_RENAMES
from store.outbox import last_queued, told
from store.outbox_records import Channel, Draft, Fact, News, message_key
from store.records import BaselineKind, Outcome, Standing
from store.runs import find_runs
from store.series import load_points
from store.triage import load_triage_events

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from alerts.audience import Audience
    from alerts.inbox import Change
    from alerts.judge import JudgedPoint, RunJudgement
    from alerts.policy import Rules
    from store.database import Database
    from store.records import Commit, RunHeader, SeriesKey, SeriesPoint

_log = logging.getLogger(__name__)
_PICTURES_MAX = 3  # of a mail, which is kept whole in the store
_REACH = {Digest.DAILY: timedelta(days=2), Digest.WEEKLY: timedelta(days=14)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is to be told to one audience now.

    Attributes:
        left_out: regressions worth a message that are not told, counted by the reason.
        waits: why nobody looked, or None.
    """

    bulletins: tuple[Bulletin, ...]
    left_out: Counter[str]
    waits: str | None = None


class Desk:
    """Looks up what happened, once, for any number of audiences.

    Args:
        database: the store; the runs that are told of are judged again, and their verdicts kept.
        judgements: the runs that were just judged.
        rules: what the others are judged by; the defaults where None.
        now: the time.
    """

    def __init__(
        self, database: Database, judgements: Sequence[RunJudgement], *, rules: Rules | None, now: datetime
    ) -> None:
        self._database = database
        self._rules = rules
        self._now = now
        self._named = {judgement.header.run_id for judgement in judgements}
        self._judged = {judgement.header.run_id: judgement for judgement in judgements}
        changes = load_changes(database, now=now)
        self._changes = [change for change in changes if change.verdict.outcome is Outcome.REGRESSED]
        self._pictures = chart.can_draw()
        self._commits: dict[str, Mapping[str, Commit]] = {}
        self._said_why_none = False

    def tell(self, audience: Audience) -> Told:
        """What an audience is to be told now; nothing where its digest is not due yet."""
        last = last_queued(self._database, "digest", audience.channel, audience.name)
        if not audience.digest.is_due(last, self._now):
            waits = f"the {audience.digest} digest went out at {last:%Y-%m-%d %H:%M} UTC"
            return Told(bulletins=(), left_out=Counter(), waits=waits)
        known = told(self._database, audience.channel, audience.name)
        chosen = self._select(audience, known)
        recoveries = self._recoveries(known)
        if audience.digest is Digest.OFF:
            return Told(
                bulletins=(*self._by_commit(audience, chosen), *_recovery_bulletins(recoveries)),
                left_out=chosen.left_out,
            )
        if not (chosen.due or recoveries):
            return Told(bulletins=(), left_out=chosen.left_out)
        digest = Bulletin(
            kind="digest",
            sections=self._sections(audience, chosen.due, chosen.left_out),
            recoveries=tuple(recovery for recovery, _ in recoveries),
            facts=(*(due.fact for due in chosen.due), *(fact for _, fact in recoveries)),
        )
        return Told(bulletins=(digest,), left_out=chosen.left_out)

    def _select(self, audience: Audience, known: Collection[Fact]) -> Selection:
        judgements = [self._judgement(run_id) for run_id in self._runs(audience)]
        found = self._holding(select(self._changes, judgements, audience, known))
        if not audience.flagged:
            return found
        due, left_out = list(found.due), found.left_out
        flagged = load_changes(self._database, now=self._now, standing=Standing.FLAGGED)
        for judgement in judgements:
            more = flags(judgement, audience, known, self._mutes(judgement.header), flagged)
            due += more.due
            left_out = left_out + more.left_out
        return Selection(due=tuple(due), left_out=left_out)

    def _holding(self, chosen: Selection) -> Selection:
        """Without what today's rules do not call a confirmed regression any more."""
        due = tuple(
            due
            for due in chosen.due
            if any(
                verdict.series == due.series
                and verdict.outcome is Outcome.REGRESSED
                and verdict.standing is Standing.CONFIRMED
                for verdict in self._judgement(due.run_id).verdicts
            )
        )
        gone = Counter({"not seen when judged again": len(chosen.due) - len(due)})
        return Selection(due=due, left_out=+(chosen.left_out + gone))

    def _runs(self, audience: Audience) -> list[str]:
        """The runs that are asked about: for a digest also those since the one before the last.

        Of these only runs of commits that changed something matter, unless flags do as well.
        """
        reach = _REACH.get(audience.digest)
        if reach is None:
            return sorted(self._named)
        places = {(change.repository, sha) for change in self._changes for sha in change.shas}
        recent = {
            run.run_id
            for run in find_runs(self._database)
            if run.started_at >= self._now - reach
            and (audience.flagged or (run.repository, run.commit_sha) in places)
        }
        return sorted(self._named | recent)

    def _judgement(self, run_id: str) -> RunJudgement:
        if run_id not in self._judged:
            self._judged[run_id] = judge_run(self._database, run_id, self._rules, judged_at=self._now)
        return self._judged[run_id]

    def _mutes(self, header: RunHeader) -> _Mutes:
        events = load_triage_events(self._database, repository=header.repository)
        renames = renames_of_runs(self._database, header.repository, [header.run_id])
        decisions = Decisions.of(events).following(renames.get(header.run_id, NO_RENAMES))
        return _Mutes(decisions, self._now)

    def _by_commit(self, audience: Audience, chosen: Selection) -> list[Bulletin]:
        """One bulletin for each commit, whatever number of runs shows its regressions."""
        groups: dict[tuple[str, str], list[Due]] = {}
        for due in chosen.due:
            groups.setdefault((due.repository, due.commit_sha), []).append(due)
        return [
            Bulletin(
                kind="regression",
                sections=self._sections(audience, group, chosen.left_out),
                recoveries=(),
                facts=tuple(due.fact for due in group),
            )
            for group in groups.values()
        ]

    def _sections(
        self, audience: Audience, dues: Sequence[Due], left_out: Counter[str]
    ) -> tuple[Section, ...]:
        runs = dict.fromkeys(due.run_id for due in dues)
        said = f"Left out: {counted(left_out)}." if left_out else None
        sections: list[Section] = []
        for run_id in runs:
            judgement = self._judgement(run_id)
            ids = frozenset(due.series.id for due in dues if due.run_id == run_id)
            items = [item for item in judgement.judged if item.point.series.id in ids]
            worst = max(items, key=lambda item: item.verdict.effect or 0.0)
            drawn = audience.channel is Channel.EMAIL and len(sections) < _PICTURES_MAX
            sections.append(
                Section(
                    message=compose(narrowed(judgement, audience.covers, ids)),
                    due=ids,
                    left_out=said,
                    picture=self._picture(worst) if drawn else None,
                )
            )
        return tuple(sections)

    def _picture(self, item: JudgedPoint) -> Picture | None:
        if self._pictures:
            return draw_trend(self._database, item)
        if not self._said_why_none:
            _log.warning("mail goes out without a picture: install 'kernelwatch[alerts]' to have one")
        self._said_why_none = True
        return None

    def _recoveries(self, known: Collection[Fact]) -> list[tuple[Recovery, Fact]]:
        """Regressions that the audience was told of, and that are over since, each once."""
        over = {fact.identity[1:] for fact in known if fact.kind is News.RECOVERY}
        found = []
        for fact in sorted(known):
            change = self._change_of(fact)
            if fact.kind is not News.REGRESSION or fact.identity[1:] in over or change is None:
                continue
            if change.muted is not None or change.accepted is not None:
                continue
            point = recovered(change.verdict, self._after(change))
            if point is not None:
                recovery = Recovery(commit_sha=fact.commit_sha, verdict=change.verdict, point=point)
                found.append((recovery, _recovery_fact(fact, point)))
        return found

    def _change_of(self, fact: Fact) -> Change | None:
        return next(
            (
                change
                for change in self._changes
                if change.repository == fact.repository
                and change.series.id == fact.series_id
                and fact.commit_sha in change.shas
            ),
            None,
        )

    def _after(self, change: Change) -> list[SeriesPoint]:
        """The series on commits that have the change in their line of first parents, oldest run first."""
        points = load_points(self._database, series_ids=[change.series.id])
        return [point for point in points if self._has(change, point.header)]

    def _has(self, change: Change, header: RunHeader) -> bool:
        if header.repository != change.repository or header.commit_sha == change.commit_sha:
            return False
        if change.repository not in self._commits:
            self._commits[change.repository] = load_commits(self._database, change.repository)
        line = first_parent_line(self._commits[change.repository], code_of(header))
        return any(commit.sha == change.commit_sha for commit in line)


class _Mutes:
    """Whether a series is muted today."""

    def __init__(self, decisions: Decisions, now: datetime) -> None:
        self._decisions = decisions
        self._now = now

    def __call__(self, series: SeriesKey) -> bool:
        return self._decisions.mute(series, on=self._now.date()) is not None


def draft_of(bulletin: Bulletin, audience: Audience, *, sender: str, now: datetime) -> Draft:
    """The message in the form of its channel, ready for the outbox."""
    key = message_key(bulletin.kind, audience.channel, audience.name, bulletin.facts)
    mail = audience.channel is Channel.EMAIL
    if mail:
        composed = compose_mail(bulletin, key=key, sender=sender, recipients=audience.recipients, sent_at=now)
        content = composed.as_bytes().decode("ascii")
    else:
        content = render_body(audience.channel, bulletin, key=key)
    return Draft(
        kind=bulletin.kind,
        channel=audience.channel,
        audience=audience.name,
        recipients=audience.addresses,
        subject=bulletin.title,
        content=content,
        sender=parseaddr(sender)[1] if mail else "",
        signed_by=audience.signed_by,
        facts=bulletin.facts,
    )


def draw_trend(database: Database, item: JudgedPoint) -> Picture | None:
    """What a point was compared with, as a picture; None where it was compared with nothing."""
    label = item.point.series.case.label
    if item.verdict.baseline_kind is BaselineKind.NONE:
        return None
    runs = list(item.verdict.baseline_run_ids)
    place = {run_id: index for index, run_id in enumerate(runs)}
    points = load_points(database, run_ids=runs, series_ids=[item.point.series.id])
    points.sort(key=lambda point: -place[point.header.run_id])  # the baseline names the nearest first
    return Picture(
        png=chart.trend_png([*points, item.point], title=label),
        alt=f"{shown.visible(label)}: {shown.count(len(points), 'baseline run')}, then this run at "
        f"{shown.interval(item.point.interval, item.point.series.quantity)}",
    )


def counted(left_out: Counter[str]) -> str:
    """Numbers with their reasons: ``2 regressions told before, 1 regression muted``."""
    return ", ".join(
        f"{shown.count(number, 'regression')} {why}" for why, number in sorted(left_out.items()) if number
    )


def _recovery_bulletins(recoveries: Sequence[tuple[Recovery, Fact]]) -> list[Bulletin]:
    if not recoveries:
        return []
    told_of = tuple(recovery for recovery, _ in recoveries)
    facts = tuple(fact for _, fact in recoveries)
    return [Bulletin(kind="recovery", sections=(), recoveries=told_of, facts=facts)]


def _recovery_fact(fact: Fact, point: SeriesPoint) -> Fact:
    return Fact(
        kind=News.RECOVERY,
        repository=fact.repository,
        commit_sha=fact.commit_sha,
        series_id=fact.series_id,
        run_id=point.header.run_id,
    )


def why_nothing(judgements: Sequence[RunJudgement], audience: Audience, found: Told) -> str:
    """One sentence for the log of whoever expected a message."""
    if found.waits is not None:
        return f"{found.waits}: nothing was sent"
    what = "regression" if audience.flagged else "confirmed regression"
    where = (
        f"at {shown.short(judgements[0].header.commit_sha)}"
        if len(judgements) == 1
        else f"in {len(judgements)} runs"
    )
    said = f"no {what} of tier {audience.minimum} or better to tell {where}: nothing was sent"
    notes = [counted(found.left_out)] if found.left_out else []
    flagged = sum(waiting(judgement, audience) for judgement in judgements)
    if flagged and not audience.flagged:
        notes.append(
            f"{shown.count(flagged, 'regression')} flagged, not confirmed: --flagged sends on those too"
        )
    gaps = [gap for judgement in judgements if (gap := judgement.unanswered) is not None]
    if gaps:
        where = gaps[0] if len(judgements) == 1 else f"gaps in {len(gaps)} of them"
        notes.append(f"no pass either: {where}")
    return f"{said} ({'; '.join(notes)})" if notes else said
