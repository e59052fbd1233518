"""What the configuration file says to ``collect``: defaults of its options, and what tiers ask for."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click.core import ParameterSource

from collector.tiers import TierRule
from store.configuration import CONFIG_VARIABLE, load_configuration
from store.records import ClockRegime, Timer  # noqa: TC001 - the types of a table are looked up at run time
from store.settings import NotEmpty, Within

if TYPE_CHECKING:
    import click

    from store.configuration import Configuration

PASSES_MAX = 1000
_OPTIONS = {"base": "base_ref"}  # keys that the command line knows by another name
_CLOCK_DETAILS = ("clock_mhz",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTable:
    """The table ``[collect]``: each key stands for an option that is not given.

    Attributes:
        suites: files or folders, from the folder of the configuration file.
        passes: as ``--passes``.
        timer: as ``--timer``.
        base: as ``--base``.
        clocks: as ``--clocks``.
        clock_mhz: as ``--clock-mhz``.
    """

    suites: Annotated[tuple[str, ...], NotEmpty()] | None = None
    passes: Annotated[int, Within(1, PASSES_MAX)] | None = None
    timer: Timer | None = None
    base: Annotated[str, NotEmpty()] | None = None
    clocks: ClockRegime | None = None
    clock_mhz: Annotated[int, Within(1, 10_000, unit="MHz")] | None = None


def configured(context: click.Context, options: dict[str, Any]) -> tuple[dict[str, Any], TierRule]:
    """The options with what the file says where neither command line nor environment does.

    The judge that is started afterwards, by whatever command, is told to use the same file.

    Args:
        context: of the running command.
        options: of it and of ``collect``, merged.

    Raises:
        ConfigurationInvalid: the file says something that it may not.
    """
    configuration = load_configuration(options["config"], start=options["repo"])
    _hand_on(context, configuration)
    table = configuration.read("collect", CollectTable)
    given = _given(context)
    said = {
        _OPTIONS.get(entry.name, entry.name): value
        for entry in fields(table)
        if (value := getattr(table, entry.name)) is not None
    }
    if "suites" in said and configuration.file is not None:
        said["suites"] = _from_here(said["suites"], configuration.file)
    if options["quick"]:
        said.pop("passes", None)
    if "clocks" in given:  # the file's clock belongs to the file's regime
        said = {name: value for name, value in said.items() if name not in _CLOCK_DETAILS}
    said = {name: value for name, value in said.items() if name not in given}
    return options | said, configuration.read("tier", TierRule)


def _given(context: click.Context) -> set[str]:
    """What somebody asked for by command line or environment, of the command or of its group."""
    found: set[str] = set()
    level: click.Context | None = context
    while level is not None:
        found |= {
            name
            for name in level.params
            if level.get_parameter_source(name) not in (ParameterSource.DEFAULT, None)
        }
        level = level.parent
    return found


def _from_here(suites: tuple[str, ...], file: Path) -> tuple[str, ...]:
    """Paths that were written beside the file, as one writes them in the current folder."""
    folder = file.resolve().parent
    if folder == Path.cwd():
        return suites
    return tuple(os.path.relpath(folder / suite) for suite in suites)


def _hand_on(context: click.Context, configuration: Configuration) -> None:
    """Name the file in the environment of the processes that are started, as long as the command runs."""
    earlier = os.environ.get(CONFIG_VARIABLE)
    os.environ[CONFIG_VARIABLE] = str(configuration.file or os.devnull)

    def take_back() -> None:
        if earlier is None:
            os.environ.pop(CONFIG_VARIABLE, None)
        else:
            os.environ[CONFIG_VARIABLE] = earlier

    context.find_root().call_on_close(take_back)
