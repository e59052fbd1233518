"""The table ``[judge]`` of the configuration, as the rules that a run is judged by."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from alerts.policy import Override, Policies, Policy
from store.configuration import load_configuration

if TYPE_CHECKING:
    from store.configuration import Configuration


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
    table = configuration.read("judge", JudgeTable)
    general = Policy(**{entry.name: getattr(table, entry.name) for entry in fields(Policy)})
    return Policies(general=general, overrides=table.override)
