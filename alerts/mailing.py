"""When a mail is due, and what goes into it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alerts import chart
from alerts.email import Picture, compose_mail
from alerts.message import compose
from alerts.policy import reaches
from store import shown
from store.records import BaselineKind, Outcome, Standing
from store.series import load_points

if TYPE_CHECKING:
    from collections.abc import Sequence
    from email.message import EmailMessage

    from alerts.judge import JudgedPoint, RunJudgement
    from store.database import Database
    from store.records import Tier

_log = logging.getLogger(__name__)


def regressions_due(judgement: RunJudgement, *, minimum: Tier, flagged: bool) -> list[JudgedPoint]:
    """The regressions that are worth a mail, the largest first.

    Args:
        judgement: the run.
        minimum: the lowest tier that is worth one.
        flagged: whether a regression that no fresh session confirmed is worth one too.
    """
    standings = (Standing.CONFIRMED, Standing.FLAGGED) if flagged else (Standing.CONFIRMED,)
    due = [
        item
        for item in judgement.judged
        if item.verdict.outcome is Outcome.REGRESSED
        and item.verdict.standing in standings
        and reaches(item.verdict.tier, minimum)
        and not item.is_sentinel
    ]
    return sorted(due, key=lambda item: -(item.verdict.effect or 0.0))


def why_nothing_is_due(judgement: RunJudgement, *, minimum: Tier, flagged: bool) -> str:
    """One sentence for the log of whoever expected a mail."""
    unconfirmed = len(regressions_due(judgement, minimum=minimum, flagged=True))
    what = "no regression" if flagged else "no confirmed regression"
    said = (
        f"{what} of tier {minimum} or better at {shown.short(judgement.header.commit_sha)}: nothing was sent"
    )
    if not flagged and unconfirmed:
        waiting = shown.count(unconfirmed, "regression")
        said += f" ({waiting} flagged, not confirmed: --flagged sends on those too)"
    return said


def build_mail(
    database: Database,
    judgement: RunJudgement,
    due: Sequence[JudgedPoint],
    *,
    sender: str,
    recipients: Sequence[str],
) -> EmailMessage:
    """The mail on a run, with the trend of its worst regression where a picture can be drawn."""
    return compose_mail(
        compose(judgement),
        sender=sender,
        recipients=recipients,
        picture=draw_trend(database, due[0]),
        sent_at=datetime.now(UTC),
    )


def draw_trend(database: Database, item: JudgedPoint) -> Picture | None:
    """What a point was compared with, as a picture; None, and a line in the log, where none can be drawn."""
    label = item.point.series.case.label
    if not chart.can_draw():
        _log.warning("the mail goes out without a picture: install 'kernelwatch[alerts]' to have one")
        return None
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
