"""Options of the commands that tell people, and what they mean together with the configuration."""

from __future__ import annotations

import os
import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from alerts.audience import one_address
from alerts.errors import NothingToJudge
from alerts.judging import judge_run
from alerts.mail_settings import MailTable, folder_of, server_of
from alerts.naming import newest_run
from alerts.smtp import PASSWORD_VARIABLE, Security, place_of
from store.configuration import Configuration, load_configuration
from store.runs import find_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from alerts.judge import RunJudgement
    from alerts.policy import Rules
    from alerts.smtp import Server
    from store.database import Database

_Command = TypeVar("_Command", bound="Callable[..., Any]")
_SPAN = re.compile(r"([1-9]\d{0,3})([hd])")
_HOURS = {"h": 1, "d": 24}

run_option = click.option(
    "--run", "run_id", metavar="RUN", help="Id of the run, or its beginning.  [default: the newest]"
)
since_option = click.option(
    "--since", metavar="SPAN", help="All runs that started in the last 12h or 7d, instead of one."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would be sent, and keep nothing.")
tier_option = click.option(
    "--min-tier", type=click.Choice(["A", "B"]), help="Worth a message.  [default: A, or the configuration's]"
)


def smtp_options(command: _Command) -> _Command:
    """Where mail is handed over; each one overrides its key of ``[mail]``."""
    for option in (
        click.option(
            "--ca-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Trust these authorities instead of the system's.",
        ),
        click.option("--user", metavar="NAME", help=f"Log in; the password is {PASSWORD_VARIABLE}."),
        click.option(
            "--security",
            type=click.Choice([security.value for security in Security]),
            help="How the connection is protected; none never logs in.  [default: starttls]",
        ),
        click.option("--smtp", "smtp", metavar="HOST:PORT", help="Mail server."),
    ):
        command = option(command)
    return command


def configured(file: Path | None) -> Configuration:
    """The configuration that was named, or the nearest one."""
    return load_configuration(file, start=Path.cwd())


def server_from(options: dict[str, Any], table: MailTable, configuration: Configuration) -> Server | None:
    """The mail server of the options, or else of ``[mail]``; None where nothing names one."""
    from dataclasses import replace

    given = {name: options[name] for name in ("smtp", "user") if options[name] is not None}
    if options["security"] is not None:
        given["security"] = Security(options["security"])
    if options["ca_file"] is not None:
        given["ca_file"] = str(options["ca_file"].resolve())
    if "smtp" in given:
        try:
            place_of(given["smtp"])
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--smtp") from None
    return server_of(replace(table, **given), folder_of(configuration), os.environ.get(PASSWORD_VARIABLE))


def sender_from(sender: str | None, user: str | None, table: MailTable) -> str:
    """Whom mail is from."""
    if sender is not None:
        return address_option(sender, "--from")
    user = user or table.user
    if table.sender is not None:
        return table.sender
    return user if user is not None and "@" in user else f"kernelwatch@{socket.gethostname()}"


def address_option(word: str, option: str) -> str:
    """The word itself, once it is seen to be one address that fits into a header."""
    try:
        return one_address(word)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def judged_runs(
    database: Database, run_id: str | None, since: str | None, *, rules: Rules, now: datetime
) -> list[RunJudgement]:
    """The judgements on one run, or on those of a span of time, oldest first."""
    if since is None:
        chosen = newest_run(database) if run_id is None else run_id
        return [judge_run(database, chosen, rules, judged_at=now)]
    span = _SPAN.fullmatch(since)
    if span is None or run_id is not None:
        problem = (
            f"{since!r} is no span such as 12h or 7d" if span is None else "give --run or --since, not both"
        )
        raise click.BadParameter(problem, param_hint="--since")
    start = now - timedelta(hours=int(span[1]) * _HOURS[span[2]])
    runs = [run.run_id for run in reversed(find_runs(database)) if run.started_at >= start]
    if not runs:
        raise NothingToJudge(f"no run of the store {database.url} started in the last {since}")
    return [judge_run(database, chosen, rules, judged_at=now) for chosen in runs]
