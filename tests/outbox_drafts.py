"""Messages for the outbox, built for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from builders import a_sha

from store.outbox_records import Channel, Draft, Fact, News

NOW = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=10)


def a_fact(number: int = 1, *, kind: News = News.REGRESSION, series_id: str = "series-1") -> Fact:
    """The news that a series regressed with commit ``number``."""
    return Fact(
        kind=kind, repository="example.org/code", commit_sha=a_sha(number), series_id=series_id, run_id="run"
    )


def a_draft(number: int = 1, **changes: Any) -> Draft:
    """A mail on commit ``number`` to one reader."""
    fields: dict[str, Any] = {
        "kind": "regression",
        "channel": Channel.EMAIL,
        "audience": "ada@example.org",
        "recipients": ("ada@example.org",),
        "subject": f"alert {number}",
        "content": f"Subject: alert {number}\r\n\r\ndetails of alert {number}\r\n",
        "sender": "bot@example.org",
        "facts": (a_fact(number),),
    }
    return Draft(**(fields | changes))
