"""Options that more than one command of ``alerts`` takes."""

from __future__ import annotations

import click

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
