"""The table ``[judge]`` of the configuration, as the rules that a run is judged by."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alerts.policy import Override, Policies, Policy
from store.configuration import load_configuration
from store.errors import ConfigurationInvalid

if TYPE_CHECKING:
    from store.configuration import Configuration
    from store.settings import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTable(Policy):
    """What ``[judge]`` may hold: the thresholds, and what differs from them by benchmark."""

    override: tuple[Override, ...] = ()


def policies_here(file: Path | None) -> Policies:
    """The rules of a file, or of the nearest one from the current folder upwards where None.

    What is judged does not say by which thresholds: its own files are looked at only where
    the judge runs among them.

    Raises:
        ConfigurationInvalid: see ``load_configuration`` and ``policies_of``.
    """
    return policies_of(load_configuration(file, start=Path.cwd()))


def policies_of(configuration: Configuration) -> Policies:
    """The rules that a configuration makes; the defaults where it has no ``[judge]``.

    Raises:
        ConfigurationInvalid: a key or a value of the table is not allowed, or two contradict
            each other.
    """
    place = configuration.place("judge")
    _check_whole_runs(configuration.tables.get("judge", {}).get("override"), place)
    table = configuration.read("judge", JudgeTable)
    general = Policy(**{entry.name: getattr(table, entry.name) for entry in fields(Policy)})
    try:
        return Policies(general=general, overrides=table.override)
    except ConfigurationInvalid as error:
        raise ConfigurationInvalid(f"{place}, {error}") from error


def _check_whole_runs(overrides: Any, place: Place) -> None:
    """Refuse thresholds of whole runs where those of some benchmarks stand; the rest is checked when read."""
    general = {entry.name for entry in fields(Policy)} - {entry.name for entry in fields(Override)}
    for number, table in enumerate(overrides if isinstance(overrides, list) else (), 1):
        for key in general & set(table if isinstance(table, dict) else ()):
            raise ConfigurationInvalid(
                f"{place.below('override', number)}: {key} holds for whole runs, not for some benchmarks: "
                f"write it below [{place.table}]"
            )
