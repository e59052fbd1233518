"""Run headers to rows and back."""

from __future__ import annotations

from dataclasses import fields

from store.records import ClockRegime, PairedRole, RunHeader, Timer
from store.rows import Row, from_instant, readings_from_json, readings_to_json

_FIELDS = tuple(field.name for field in fields(RunHeader))
HEADER_COLUMNS = ", ".join(f"runs.{name}" for name in _FIELDS)


def header_columns(header: RunHeader) -> Row:
    """The columns of ``runs`` that hold the header."""
    return {name: getattr(header, name) for name in _FIELDS} | {
        "context": readings_to_json(header.context),
    }


def header_of(row: Row) -> RunHeader:
    """The header in the columns that ``HEADER_COLUMNS`` names."""
    return RunHeader(
        **{name: row[name] for name in _FIELDS}
        | {
            "started_at": from_instant(row["started_at"]),
            "ended_at": from_instant(row["ended_at"]),
            "timer": Timer(row["timer"]),
            "clock_regime": ClockRegime(row["clock_regime"]),
            "suites": tuple(row["suites"]),
            "context": readings_from_json(row["context"]),
            "paired_role": None if row["paired_role"] is None else PairedRole(row["paired_role"]),
        }
    )
