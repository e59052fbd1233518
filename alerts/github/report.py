"""From a judged run to what GitHub is told about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from alerts.github.sections import Section, Tally, section_key
from alerts.markdown import Surroundings, render_markdown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from alerts.message import Message


def tally_of(message: Message) -> Tally:
    """How many benchmarks of a message came out how."""
    regressed = [row for row in message.changed if row.verdict.outcome is Outcome.REGRESSED]
    alarms = [row for row in regressed if not row.excuses]
    confirmed = sum(row.verdict.standing is Standing.CONFIRMED for row in alarms)
    return Tally(
        confirmed=confirmed,
        flagged=len(alarms) - confirmed,
        excused=len(regressed) - len(alarms),
        improved=len(message.changed) - len(regressed),
        unchanged=len(message.unchanged),
        inconclusive=len(message.inconclusive),
        not_measured=len(message.not_measured),
    )


def section_of(message: Message, around: Surroundings) -> Callable[[int], Section]:
    """What renders a message as a section of a comment, into so many bytes."""
    tally = tally_of(message)
    header = message.header
    marked = replace(around, sign=tally.sign)

    def render(limit: int) -> Section:
        return Section(
            key=section_key(header),
            run_id=header.run_id,
            commit_sha=header.commit_sha or "",
            tally=tally,
            text=render_markdown(message, marked, limit=limit),
        )

    return render
