"""How long to wait before asking GitHub again, and when to give up: pure.

Source: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SERVER_ERRORS = range(500, 600)
_LIMITED = (403, 429)
_SECONDARY_WORDS = ("secondary rate limit", "abuse detection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Bounds on trying again.

    Attributes:
        attempts: requests for one question, the first included.
        backoff_s: pause after the first failure; it doubles with each.
        backoff_max_s: the longest of those pauses.
        secondary_s: pause after a secondary limit without a time of its own; GitHub asks for a minute.
        wait_max_s: all pauses of one question together; where GitHub asks for more, that is an error.
    """

    attempts: int = 5
    backoff_s: float = 1.0
    backoff_max_s: float = 30.0
    secondary_s: float = 60.0
    wait_max_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Why to wait, and how long.

    Attributes:
        exact: whether GitHub itself named the seconds: never come back earlier.
        unsure: whether what was asked may have been done all the same.
    """

    seconds: float
    why: str
    exact: bool = False
    unsure: bool = False


def limit_pause(
    status: int, headers: Mapping[str, str], body: str, *, attempt: int, now_s: float, patience: Patience
) -> Pause | None:
    """The pause that a rate limit asks for; None where the answer is no rate limit.

    Args:
        status: of the answer.
        headers: of the answer, looked up without regard to case.
        body: the beginning of the answer's text.
        attempt: how many attempts were made, this one included.
        now_s: Unix time.
        patience: the bounds.
    """
    if status not in _LIMITED:
        return None
    asked = retry_after(headers.get("retry-after"), now_s)
    if asked is not None:
        return Pause(asked, "GitHub asks to retry later", exact=True)
    if headers.get("x-ratelimit-remaining") == "0":
        reset = _number(headers.get("x-ratelimit-reset"))
        wait = patience.secondary_s if reset is None else max(reset - now_s, 0.0) + 1
        return Pause(wait, "the token's rate limit is used up", exact=True)
    if status == 429 or any(word in body.lower() for word in _SECONDARY_WORDS):  # noqa: PLR2004 - Too Many Requests
        return Pause(patience.secondary_s * 2 ** (attempt - 1), "a secondary rate limit", exact=True)
    return None


def failure_pause(
    status: int, headers: Mapping[str, str], *, attempt: int, now_s: float, patience: Patience
) -> Pause | None:
    """The pause after a failure of the server; None where the answer is none."""
    if status not in _SERVER_ERRORS:
        return None
    asked = retry_after(headers.get("retry-after"), now_s)
    if asked is not None:
        return Pause(asked, f"GitHub answered {status} and asks to retry later", exact=True, unsure=True)
    return Pause(backoff(attempt, patience), f"GitHub answered {status}", unsure=True)


def backoff(attempt: int, patience: Patience) -> float:
    """Seconds after so many failed attempts: doubling, bounded."""
    return float(min(patience.backoff_s * 2 ** (attempt - 1), patience.backoff_max_s))


def retry_after(value: str | None, now_s: float) -> float | None:
    """Seconds in a Retry-After header, which holds seconds or a date; None where it holds neither."""
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return max(seconds, 0.0)
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - now_s, 0.0)
    except ValueError:
        return None


def _number(value: str | None) -> float | None:
    # isdecimal alone would take digits of other scripts, which float() takes too: harmless.
    return float(value) if value is not None and value.strip().isdecimal() else None
