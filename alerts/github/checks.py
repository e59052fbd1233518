"""The check on a commit: what confirmed verdicts say, with notes on the files of the benchmarks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alerts.change_words import drifted_since, how_much
from alerts.next_steps import BUILTIN
from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.github.client import Client
    from alerts.github.sections import Section
    from alerts.judge import JudgedPoint, RunJudgement

SUMMARY_MAX = 60_000
_TITLE_MAX = 200
_PER_REQUEST = 50  # GitHub takes no more notes at once
_NOTES_MAX = 200
_SOURCE = re.compile(r"(?P<path>[^\x00-\x1f:\\]{1,250}):(?P<line>\d{1,7})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is said about a run as a check.

    Attributes:
        conclusion: ``failure`` on a confirmed regression alone; ``neutral`` where something is
            open, since what was not measured has not passed; else ``success``.
        key: of the section that says the same.
    """

    name: str
    head_sha: str
    key: str
    conclusion: str
    title: str
    summary: str
    notes: tuple[dict[str, Any], ...]


def check_of(judgement: RunJudgement, section: Section, *, title: str) -> Check:
    """The check that says what a section says."""
    return Check(
        name=f"kernelwatch ({shown.one_line(judgement.header.gpu_name, limit=60)})",
        head_sha=section.commit_sha,
        key=section.key,
        conclusion=conclusion_of(judgement, section),
        title=shown.visible(title, limit=_TITLE_MAX),
        summary=section.text,
        notes=tuple(_notes(judgement)),
    )


def conclusion_of(judgement: RunJudgement, section: Section) -> str:
    """``failure``, ``neutral`` or ``success``."""
    if judgement.has_confirmed_regression:
        return "failure"
    tally = section.tally
    if not judgement.is_conclusive or judgement.unanswered or tally.flagged or tally.not_measured:
        return "neutral"
    return "success"


def post_check(client: Client, check: Check) -> str:
    """Put the check on its commit, in place of an earlier one of the same name and key.

    Returns:
        Its address.

    Raises:
        GitHubError: it could not be put there; the token needs ``checks: write``.
    """
    path = client.place.path
    first, rest = check.notes[:_PER_REQUEST], check.notes[_PER_REQUEST:]
    body = _body(check, first)
    found = earlier_check(client, check.head_sha, check.name, check.key)
    # Notes can be added to a check and never taken away. GitHub shows the newest check of a name,
    # so a new one takes the place of one with notes, and a second one by accident does no harm.
    if found is None or found["output"].get("annotations_count"):
        body["head_sha"] = check.head_sha
        made = client.create(f"{path}/check-runs", body, repeatable=True)
    else:
        made = client.change(f"{path}/check-runs/{int(found['id'])}", body)
    for start in range(0, len(rest), _PER_REQUEST):
        part = {"output": body["output"] | {"annotations": list(rest[start : start + _PER_REQUEST])}}
        made = client.change(f"{path}/check-runs/{int(made['id'])}", part)
    return str(made["html_url"])


def _body(check: Check, notes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": check.name,
        "status": "completed",
        "conclusion": check.conclusion,
        "external_id": check.key,
        "output": {"title": check.title, "summary": check.summary, "annotations": list(notes)},
    }


def earlier_check(client: Client, head_sha: str, name: str, key: str) -> dict[str, Any] | None:
    """The check of this name and key on a commit, as GitHub describes it.

    Raises:
        GitHubError: GitHub could not be asked.
    """
    listed = client.items(
        f"{client.place.path}/commits/{head_sha}/check-runs", {"check_name": name}, key="check_runs"
    )
    return next((one for one in listed if one.get("external_id") == key), None)


def _notes(judgement: RunJudgement) -> Iterable[dict[str, Any]]:
    if judgement.header.suites == (BUILTIN,):
        return  # its file is not in the repository
    made = [note for item in judgement.judged for note in _of_point(item)]
    for failure in judgement.failures:
        label = "the suite" if failure.case is None else failure.case.label
        said = f"{shown.visible(label)} gave no number: {shown.one_line(failure.message, limit=500)}"
        made += _note(failure.source, "warning", "Not measured", said)
    order = ("failure", "warning", "notice")
    yield from sorted(made, key=lambda note: order.index(note["annotation_level"]))[:_NOTES_MAX]


def _of_point(item: JudgedPoint) -> list[dict[str, Any]]:
    verdict = item.verdict
    if (
        item.is_sentinel
        or verdict.effect is None
        or verdict.outcome not in (Outcome.REGRESSED, Outcome.IMPROVED)
    ):
        return []
    slower = verdict.outcome is Outcome.REGRESSED
    what = f"{shown.visible(item.point.series.case.label)} is {how_much(verdict)}"
    since = drifted_since(verdict)
    said = f"{what}: {verdict.message}" if since is None else f"{what}. No single commit shows it."
    fails = slower and verdict.standing is Standing.CONFIRMED and not item.is_excused
    level = "failure" if fails else "warning" if slower else "notice"
    return _note(
        item.point.source, level, f"{verdict.outcome if since is None else 'Drift'}, {verdict.standing}", said
    )


def _note(source: str | None, level: str, title: str, said: str) -> list[dict[str, Any]]:
    """A note on a line of a file; none where the source is no path inside the repository."""
    match = _SOURCE.fullmatch(source or "")
    if match is None or match["path"].startswith("/") or ".." in match["path"].split("/"):
        return []
    line = max(int(match["line"]), 1)
    return [
        {
            "path": match["path"],
            "start_line": line,
            "end_line": line,
            "annotation_level": level,
            "title": shown.visible(title, limit=_TITLE_MAX),
            "message": shown.one_line(said, limit=2000),
        }
    ]
