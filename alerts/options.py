"""Options that more than one command of ``alerts`` takes."""

from __future__ import annotations

from pathlib import Path

import click

from store.configuration import CONFIG_VARIABLE
from store.database import DEFAULT_URL, STORE_VARIABLE

store_option = click.option(
    "--store",
    "url",
    envvar=STORE_VARIABLE,
    default=DEFAULT_URL,
    show_default=True,
    show_envvar=True,
    help="The store to read and to write verdicts to.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What stdout holds: sentences and a table, or JSON for programs.",
)
config_option = click.option(
    "--config",
    "config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar=CONFIG_VARIABLE,
    show_envvar=True,
    help="Configuration to judge by.  [default: kernelwatch.toml or pyproject.toml, the nearest upwards]",
)
