"""The command ``alerts config``: which policy holds, and where each value comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from alerts.configuration import policies_of
from alerts.options import config_option, format_option, store_option
from store.database import Database
from store.errors import StoreMissing

if TYPE_CHECKING:
    from alerts.policy import Policies
    from store.records import Case


@click.command(name="config")
@format_option
@config_option
@store_option
def config_command(url: str, form: str, config: Path | None) -> None:
    """Show the policy that runs are judged by here, per benchmark, and where each value comes from."""
    from alerts.policy_report import PolicyReport, policy_json, render_policy
    from store.configuration import load_configuration

    configuration = load_configuration(config, start=Path.cwd())
    report = PolicyReport(
        configuration=configuration, policies=policies_of(configuration), cases=_cases(Database(url))
    )
    click.echo(policy_json(report) if form == "json" else render_policy(report))


def tell_unmatched(database: Database, policies: Policies) -> None:
    """Point out, on stderr, overrides whose globs mean nothing that the store knows."""
    if not policies.overrides:
        return
    from alerts.policy_report import unmatched
    from store.cases import known_cases

    for sentence in unmatched(policies, known_cases(database)):
        click.echo(f"Note: {sentence}", err=True)


def _cases(database: Database) -> list[Case] | None:
    from store.cases import known_cases

    try:
        return known_cases(database)
    except StoreMissing:
        return None
