"""What `collect doctor` finds: one thing that was looked at, what it means, and what to do.

A finding is a problem where `collect` would give no number, a warning where it would give one
that says less or costs more, and fine otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.protocol import JsonReading
    from store.records import Tier


class Level(StrEnum):
    """How much a finding matters."""

    FINE = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: one or two words, such as ``power limit``.
        message: what was found.
        meaning: what it does to the numbers; empty where it does nothing.
        remedy: what to do about it; empty where there is nothing to do.
        limit: the best tier that remains, or None where it has no say.
    """

    level: Level
    subject: str
    message: str
    meaning: str = ""
    remedy: str = ""
    limit: Tier | None = None


class Readings:
    """Readings by name, asked for without doubting the types that the readers gave them."""

    def __init__(self, readings: Mapping[str, JsonReading]) -> None:
        self._readings = readings

    def __contains__(self, name: object) -> bool:
        return name in self._readings

    def value(self, name: str) -> Any:
        """The value, or None where there is none."""
        return self._readings.get(name, {}).get("value")

    def error(self, name: str) -> str:
        """Why there is no value; empty where there is one."""
        reading = self._readings.get(name)
        return "it was not looked at" if reading is None else reading.get("error", "")


def fine(subject: str, message: str) -> Finding:
    """A finding that nobody has to do anything about."""
    return Finding(level=Level.FINE, subject=subject, message=message)


def warning(
    subject: str, message: str, *, meaning: str, remedy: str = "", limit: Tier | None = None
) -> Finding:
    """A finding that makes numbers say less, or cost more."""
    return Finding(
        level=Level.WARNING, subject=subject, message=message, meaning=meaning, remedy=remedy, limit=limit
    )


def problem(subject: str, message: str, *, meaning: str, remedy: str) -> Finding:
    """A finding that leaves no numbers."""
    return Finding(level=Level.PROBLEM, subject=subject, message=message, meaning=meaning, remedy=remedy)
