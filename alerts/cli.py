"""The command ``alerts``: judge a run, compare two commits, date steps, tell people."""

from __future__ import annotations

import os
import re
import socket
import sys
from email.utils import parseaddr
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alerts.config_command import config_command
from alerts.configuration import policies_here
from alerts.errors import AlertsError
from alerts.jsonform import comparison_json, verdicts_json
from alerts.judging import judge_run
from alerts.message import compose
from alerts.naming import newest_run
from alerts.options import config_option, format_option, store_option
from alerts.terminal import render_text
from alerts.triage_commands import triage
from store.database import Database
from store.errors import ConfigurationInvalid, StoreError
from store.records import Tier

if TYPE_CHECKING:
    from alerts.judge import RunJudgement
    from alerts.smtp import Delivery, Server

EXIT_REGRESSION = 1
EXIT_NOTHING = 3
_PLACE = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/]+):(\d{1,5})")
_PORT_MAX = 65_535


class _Failed(click.ClickException):
    """An error message, with an exit code that is not the one of a regression."""

    exit_code = EXIT_NOTHING


class _Explaining(click.Group):
    """Turns what the rooms raise into messages, at this one place."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ConfigurationInvalid as error:
            raise click.UsageError(str(error)) from error
        except (AlertsError, StoreError) as error:
            raise _Failed(str(error)) from error


_run_option = click.option(
    "--run", "run_id", metavar="RUN", help="Id of the run, or its beginning.  [default: the newest]"
)
_fail_option = click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="Exit with 1 on a confirmed regression: two sessions showed it, against a pool of runs.",
)


@click.group(cls=_Explaining, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kernelwatch")
def alerts() -> None:
    """Judge what was measured, and tell people.

    Exit codes: 0 fine; 1 a confirmed regression, with --fail-on regression; 2 usage;
    3 nothing could be judged or sent, and stderr says why when something failed.
    """


@alerts.command()
@_run_option
@format_option
@_fail_option
@config_option
@store_option
def judge(*, url: str, run_id: str | None, form: str, fail_on: str | None, config: Path | None) -> None:
    """Judge a run against its ancestors and save the verdicts."""
    judgement = _judged(Database(url), run_id, config)
    click.echo(verdicts_json(judgement) if form == "json" else render_text(compose(judgement)).rstrip())
    _leave(judgement, fail_on)


@alerts.command()
@click.argument("base")
@click.argument("candidate")
@click.option("--gpu", metavar="UUID", help="GPU, or the beginning of its UUID.  [default: the candidate's]")
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Where names such as main or HEAD~3 are looked up.  [default: .]",
)
@format_option
@_fail_option
@config_option
@store_option
def compare(*, url: str, base: str, candidate: str, **options: Any) -> None:
    """Compare two commits, or two runs, on one GPU.

    BASE and CANDIDATE are the beginning of a commit id or of a run id, or a name that git knows.
    """
    from alerts.compare import compare as compare_sides

    judgement = compare_sides(
        Database(url),
        base,
        candidate,
        gpu=options["gpu"],
        checkout=options["repo"],
        rules=policies_here(options["config"]),
    )
    as_json = options["form"] == "json"
    click.echo(comparison_json(judgement) if as_json else render_text(compose(judgement)).rstrip())
    _leave(judgement, options["fail_on"])


@alerts.command()
@click.option("--gpu", metavar="UUID", help="GPU, or the beginning of its UUID.  [default: all]")
@format_option
@config_option
@store_option
def steps(url: str, gpu: str | None, form: str, config: Path | None) -> None:
    """Search every series for the commits at which its level changed, and save what is found.

    A search of the same series replaces what an earlier one found. Meant for every night, or on demand.
    """
    from alerts.change_points import search
    from alerts.stepforms import render_steps, steps_json

    histories = search(Database(url), gpu=gpu, rules=policies_here(config))
    click.echo(steps_json(histories) if form == "json" else render_steps(histories))


@alerts.command()
@_run_option
@click.option("--dry-run", is_flag=True, help="Print the Markdown instead of posting it.")
@_fail_option
@config_option
@store_option
def comment(*, url: str, run_id: str | None, dry_run: bool, fail_on: str | None, config: Path | None) -> None:
    """Write the pull-request comment on a run."""
    from alerts.markdown import render_markdown

    if not dry_run:
        raise click.UsageError(
            "posting comes with the pull-request bot: print the comment with --dry-run and hand it on"
        )
    judgement = _judged(Database(url), run_id, config)
    click.echo(render_markdown(compose(judgement)), nl=False)
    _leave(judgement, fail_on)


@alerts.command()
@_run_option
@click.option("--to", "recipients", multiple=True, required=True, metavar="ADDR", help="Repeat for more.")
@click.option("--from", "sender", metavar="ADDR", help="[default: --user where it is an address]")
@click.option("--smtp", "place", metavar="HOST:PORT", help="Mail server; needed unless --dry-run.")
@click.option(
    "--security",
    type=click.Choice(["starttls", "tls", "none"]),
    default="starttls",
    show_default=True,
    help="none never logs in.",
)
@click.option("--user", metavar="NAME", help="Log in; the password is KERNELWATCH_SMTP_PASSWORD.")
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Trust these authorities instead of the system's.",
)
@click.option(
    "--min-tier", type=click.Choice(["A", "B"]), default="A", show_default=True, help="Worth a mail."
)
@click.option("--flagged", is_flag=True, help="Send on regressions that are not confirmed, too.")
@click.option("--dry-run", is_flag=True, help="Print the mail's text instead of sending it.")
@config_option
@store_option
def email(url: str, **options: Any) -> None:
    """Send a mail when a regression is confirmed; say why not when none is sent."""
    from alerts.mailing import build_mail, regressions_due, why_nothing_is_due
    from alerts.smtp import send

    recipients = [_address(word, "--to") for word in options["recipients"]]
    sender = _sender(options["sender"], options["user"])
    server = None if options["dry_run"] else _server(options)
    database, minimum = Database(url), Tier(options["min_tier"])
    judgement = _judged(database, options["run_id"], options["config"])
    due = regressions_due(judgement, minimum=minimum, flagged=options["flagged"])
    if not due:
        click.echo(why_nothing_is_due(judgement, minimum=minimum, flagged=options["flagged"]))
        return
    mail = build_mail(database, judgement, due, sender=sender, recipients=recipients)
    if server is None:
        text = mail.get_body(("plain",))
        click.echo(f"To: {mail['To']}\nSubject: {mail['Subject']}\n")
        click.echo("" if text is None else text.get_content(), nl=False)
        return
    _report(str(mail["Subject"]), send(server, mail, recipients))


alerts.add_command(config_command)
alerts.add_command(triage)


def main() -> None:
    """The console command."""
    alerts(prog_name="alerts")


def _judged(database: Database, run_id: str | None, config: Path | None) -> RunJudgement:
    rules = policies_here(config)
    return judge_run(database, newest_run(database) if run_id is None else run_id, rules)


def _leave(judgement: RunJudgement, fail_on: str | None) -> None:
    if fail_on == "regression" and judgement.has_confirmed_regression:
        sys.exit(EXIT_REGRESSION)
    if not judgement.is_conclusive:
        sys.exit(EXIT_NOTHING)


def _server(options: dict[str, Any]) -> Server:
    from alerts.smtp import PASSWORD_VARIABLE, Security
    from alerts.smtp import Server as SmtpServer

    if options["place"] is None:
        raise click.UsageError("say which server takes the mail with --smtp HOST:PORT, or use --dry-run")
    place = _PLACE.fullmatch(options["place"])
    if place is None or not 0 < int(place[2]) <= _PORT_MAX:
        raise click.BadParameter(f"{options['place']!r} is not HOST:PORT", param_hint="--smtp")
    return SmtpServer(
        host=place[1].strip("[]"),
        port=int(place[2]),
        security=Security(options["security"]),
        user=options["user"],
        password=os.environ.get(PASSWORD_VARIABLE),
        ca_file=options["ca_file"],
    )


def _sender(sender: str | None, user: str | None) -> str:
    if sender is not None:
        return _address(sender, "--from")
    return user if user is not None and "@" in user else f"kernelwatch@{socket.gethostname()}"


def _address(word: str, option: str) -> str:
    """The word itself, once it is seen to be one address that fits into a header."""
    address = parseaddr(word)[1]
    if not re.fullmatch(r"[^\s@,;]+@[^\s@,;]+", address) or not word.isprintable() or "," in word:
        raise click.BadParameter(f"{word!r} is not a mail address", param_hint=option)
    return word


def _report(subject: str, delivery: Delivery) -> None:
    click.echo(f"sent {subject!r} to {', '.join(delivery.accepted)}")
    if delivery.refused:
        said = ", ".join(f"{address} ({why})" for address, why in delivery.refused.items())
        raise _Failed(f"the server took the mail, but not for {said}: check these addresses")
