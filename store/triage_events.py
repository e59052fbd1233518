"""What people decide about changes: records that check themselves, like those of ``store.records``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from store.records import SHA_PATTERN, RecordInvalid

if TYPE_CHECKING:
    from store.records import SeriesKey

UUID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MUTE_LONGEST = timedelta(days=366)
BODY_LENGTH_MAX = 2_000
PERSON_LENGTH_MAX = 200
URL_LENGTH_MAX = 2_000


class Action(StrEnum):
    """What a person did."""

    ACCEPT = "accept"  # the change is wanted or known: from its commit on, this is the level
    MUTE = "mute"  # regressions are shown and fail nothing, up to and with a day
    UNMUTE = "unmute"
    ASSIGN = "assign"
    NOTE = "note"
    LINK = "link"
    REVOKE = "revoke"  # takes an earlier event back


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which series an event is about: all of a benchmark, unless a part narrows it.

    Attributes:
        benchmark: the benchmark's name.
        parameters: canonical JSON of one case's parameters; None for all cases.
        gpu_uuid: one GPU; None for all.
        series_id: one series; None for all. It ends with the series, when a driver changes for one.
    """

    benchmark: str
    parameters: str | None = None
    gpu_uuid: str | None = None
    series_id: str | None = None

    def __post_init__(self) -> None:
        if not self.benchmark:
            raise RecordInvalid("a decision is about a benchmark: name it")

    def covers(self, series: SeriesKey) -> bool:
        """Whether the event is about this series."""
        return (
            self.benchmark == series.case.benchmark
            and self.parameters in (None, series.case.parameters_json)
            and self.gpu_uuid in (None, series.gpu_uuid)
            and self.series_id in (None, series.id)
        )

    @property
    def label(self) -> str:
        """The scope as a person reads it: ``softmax[rows=8] on GPU-5b1e``; not escaped."""
        words = self.benchmark
        if self.parameters is not None:
            pairs = json.loads(self.parameters).items()
            words += f"[{', '.join(f'{name}={value}' for name, value in pairs)}]"
        if self.gpu_uuid is not None:
            words += f" on {self.gpu_uuid}"
        if self.series_id is not None:
            words += f" (series {self.series_id})"
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageEvent:
    """One thing a person decided or said about a change.

    Attributes:
        event_id: a UUID.
        repository: as in ``RunHeader``.
        scope: the series it is about.
        commit_sha: the commit of the change, in full.
        body: why, or the note; as it was typed. A mute and a note have one.
        assignee: who shall look at it; of an assignment alone.
        url: what a link points at; of a link alone.
        muted_until: the last day, in UTC, on which the mute holds; of a mute alone.
        revokes: the event that is taken back; of a revocation alone.
        decided_by: who did it, such as ``Ada Example <ada@example.org>``.
        decided_at: when, with a time zone.

    Raises:
        RecordInvalid: a field is missing, does not belong to the action, or is out of bounds.
    """

    event_id: str
    repository: str
    action: Action
    scope: Scope
    commit_sha: str
    body: str | None = None
    assignee: str | None = None
    url: str | None = None
    muted_until: date | None = None
    revokes: str | None = None
    decided_by: str
    decided_at: datetime

    def __post_init__(self) -> None:
        if not UUID_PATTERN.fullmatch(self.event_id):
            raise RecordInvalid(f"the id of a decision is no UUID in lower case: {self.event_id!r}")
        if not SHA_PATTERN.fullmatch(self.commit_sha):
            raise RecordInvalid(f"{self.commit_sha!r} is not a full commit id")
        if self.decided_at.utcoffset() is None:
            raise RecordInvalid(f"decided_at {self.decided_at} has no time zone")
        self._check_fields()
        _check_text("decided_by", self.decided_by, PERSON_LENGTH_MAX)
        for name, limit in (("body", BODY_LENGTH_MAX), ("assignee", PERSON_LENGTH_MAX)):
            value = getattr(self, name)
            if value is not None:
                _check_text(name, value, limit)
        if self.url is not None:
            _check_url(self.url)
        if self.muted_until is not None:
            _check_until(self.muted_until, self.day)

    @property
    def day(self) -> date:
        """The day of the decision, in UTC."""
        return self.decided_at.astimezone(UTC).date()

    def _check_fields(self) -> None:
        """Refuse a field that the action lacks, or that says nothing with it."""
        for name, action in _FIELD_OF_ACTION.items():
            given = getattr(self, name) is not None
            if given and self.action is not action:
                raise RecordInvalid(f"{name} belongs to {action}, not to {self.action}")
            if not given and self.action is action:
                raise RecordInvalid(f"{self.action} needs {name}")
        if self.action in _NEED_BODY and self.body is None:
            raise RecordInvalid(f"{self.action} needs a text that says why")


_FIELD_OF_ACTION = {
    "assignee": Action.ASSIGN,
    "url": Action.LINK,
    "muted_until": Action.MUTE,
    "revokes": Action.REVOKE,
}
# As whoever types them knows them.
_CALLED = {"body": "the message", "assignee": "who shall look at it", "decided_by": "who decides"}
_NEED_BODY = (Action.MUTE, Action.NOTE)


def _check_text(name: str, value: str, limit: int) -> None:
    what = _CALLED[name]
    if not value.strip():
        raise RecordInvalid(f"{what} is empty: say something")
    if len(value) > limit:
        raise RecordInvalid(f"{what} has {len(value)} characters, and at most {limit} are kept: shorten it")


def _check_url(url: str) -> None:
    """Only what is safe to offer as a link, and gives no password away."""
    if len(url) > URL_LENGTH_MAX or not url.isprintable() or " " in url:
        raise RecordInvalid(
            f"the URL has blanks, control characters or more than {URL_LENGTH_MAX} characters"
        )
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise RecordInvalid(f"{url!r} is no web address: give one that begins with https://")
    if "@" in parts.netloc:
        raise RecordInvalid("the URL holds a user name or password: leave them out")


def _check_until(until: date, day: date) -> None:
    if day <= until <= day + MUTE_LONGEST:
        return
    problem = "is over already" if until < day else "is longer than a year, and it can be renewed"
    raise RecordInvalid(f"a mute until {until} {problem}: give a day from {day} to {day + MUTE_LONGEST}")
