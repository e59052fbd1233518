"""The commands ``alerts outbox``: look at what waits, send it, try it again, or give it up."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from alerts.mail_options import configured, server_from, smtp_options
from alerts.mail_settings import MailTable
from alerts.options import config_option, format_option, store_option
from store import shown
from store.database import Database
from store.outbox import drop as drop_message
from store.outbox import load_message, load_outbox, requeue
from store.outbox_records import Channel, State

if TYPE_CHECKING:
    from collections.abc import Sequence

_HOOKS = (Channel.SLACK, Channel.TEAMS, Channel.JSON)


@click.group()
def outbox() -> None:
    """Look at the messages that are to be told, and send them."""


@outbox.command(name="list")
@click.option(
    "--state", "states", multiple=True, type=click.Choice([state.value for state in State]),
    help="Only messages with a recipient in this state; repeat for more.  [default: all]",
)  # fmt: skip
@format_option
@store_option
def list_(url: str, states: Sequence[str], form: str) -> None:
    """List messages, oldest first, one line a recipient."""
    from alerts.outbox_forms import entries_json, list_text

    chosen = [State(state) for state in states] or None
    entries = load_outbox(Database(url), states=chosen)
    click.echo(entries_json(entries) if form == "json" else list_text(entries))


@outbox.command()
@click.argument("key")
@store_option
def show(url: str, key: str) -> None:
    """Show the message whose key begins with KEY: how far it is, and what it says."""
    from alerts.outbox_forms import entry_text

    click.echo(entry_text(load_message(Database(url), key)))


@outbox.command()
@smtp_options
@config_option
@store_option
def send(url: str, **options: Any) -> None:
    """Send what is due: mail to the server of [mail] or --smtp, webhooks to their variables."""
    from alerts.outbox_delivery import Carrier, deliver, mail_carrier, webhook_carrier
    from alerts.outbox_forms import tell_report

    configuration = configured(options["config"])
    server = server_from(options, configuration.read("mail", MailTable), configuration)
    database = Database(url)
    carriers: dict[Channel, Carrier] = dict.fromkeys(_HOOKS, webhook_carrier(os.environ))
    if server is not None:
        carriers[Channel.EMAIL] = mail_carrier(server)
    elif any(entry.channel is Channel.EMAIL for entry in load_outbox(database, states=[State.QUEUED])):
        raise click.UsageError("mail waits: say which server takes it with --smtp HOST:PORT or in [mail]")
    report = deliver(database, carriers, rng=random.Random())  # noqa: S311 - jitter, no secret
    if not (report.sent or report.kept or report.failed):
        click.echo(_nothing_due(database))
    tell_report(report)


@outbox.command()
@click.argument("key")
@click.option("--to", "recipients", multiple=True, metavar="ADDR", help="Only to these.  [default: all]")
@click.option("--everybody", is_flag=True, help="Also to those who have it already.")
@store_option
def resend(url: str, key: str, recipients: Sequence[str], *, everybody: bool) -> None:
    """Make the message whose key begins with KEY due at once, where it failed, waits or was dropped."""
    database = Database(url)
    entry = load_message(database, key)
    unknown = sorted(set(recipients) - {who.address for who in entry.recipients})
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} is no recipient of this message", param_hint="--to")
    states = [State.FAILED, State.QUEUED, State.DROPPED, *([State.SENT] if everybody else [])]
    changed = requeue(
        database, entry.key, now=datetime.now(UTC), states=states, recipients=recipients or None
    )
    click.echo(f"{shown.count(changed, 'recipient')} due now: 'alerts outbox send' sends it")


@outbox.command()
@click.argument("key")
@store_option
def drop(url: str, key: str) -> None:
    """Give up the message whose key begins with KEY; what it tells is not told again."""
    database = Database(url)
    entry = load_message(database, key)
    click.echo(
        f"dropped for {shown.count(drop_message(database, entry.key, now=datetime.now(UTC)), 'recipient')}"
    )


def _nothing_due(database: Database) -> str:
    waiting = [
        who.due_at
        for entry in load_outbox(database, states=[State.QUEUED, State.SENDING])
        for who in entry.recipients
        if who.state in (State.QUEUED, State.SENDING)
    ]
    if not waiting:
        return "nothing waits"
    number = shown.count(len(waiting), "recipient")
    return f"nothing is due: {number} to wait for, the next at {min(waiting):%Y-%m-%d %H:%M:%S} UTC"
