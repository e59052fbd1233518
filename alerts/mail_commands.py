"""The commands ``alerts email`` and ``alerts webhook``: queue what is news, and send what is due."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from alerts.audience import Audience
from alerts.configuration import policies_of
from alerts.mail_options import (
    address_option,
    configured,
    dry_run_option,
    judged_runs,
    run_option,
    sender_from,
    server_from,
    since_option,
    smtp_options,
    tier_option,
)
from alerts.mail_settings import Hook, HookKind, MailTable, WebhookTable, folder_of, mail_audiences
from alerts.options import config_option, store_option
from store.database import Database
from store.outbox_records import Channel
from store.records import RecordInvalid, Tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alerts.judge import RunJudgement
    from alerts.mailing import Desk
    from store.outbox_records import Draft


@click.command()
@run_option
@since_option
@click.option(
    "--to", "recipients", multiple=True, metavar="ADDR",
    help="Repeat for more.  [default: the lists of the configuration]",
)  # fmt: skip
@click.option("--from", "sender", metavar="ADDR", help="[default: --user where it is an address]")
@smtp_options
@tier_option
@click.option("--flagged", is_flag=True, help="Send on regressions that are not confirmed, too.")
@dry_run_option
@config_option
@store_option
def email(url: str, **options: Any) -> None:
    """Send mail on confirmed regressions and on those that are over; say why not when none is sent.

    Mail goes through the outbox of the store: sent once to each list, and kept while the server is away.
    """
    configuration = configured(options["config"])
    table = configuration.read("mail", MailTable)
    audiences = _mail_audiences(options, table, mail_audiences(table, folder_of(configuration)))
    sender = sender_from(options["sender"], options["user"], table)
    server = None if options["dry_run"] else server_from(options, table, configuration)
    if server is None and not options["dry_run"]:
        raise click.UsageError(
            "say which server takes the mail with --smtp HOST:PORT or in [mail], or use --dry-run"
        )
    database, now = Database(url), datetime.now(UTC)
    rules = policies_of(configuration)
    judgements = judged_runs(database, options["run_id"], options["since"], rules=rules, now=now)
    from alerts.mailing import Desk
    from alerts.outbox_delivery import mail_carrier

    desk = Desk(database, judgements, rules=rules, now=now)
    drafts = _drafts(desk, audiences, judgements, sender=sender, now=now)
    if server is None:
        _show(drafts)
    else:
        _send(database, drafts, {Channel.EMAIL: mail_carrier(server)}, now)


@click.command()
@run_option
@since_option
@click.option(
    "--kind", type=click.Choice([kind.value for kind in HookKind]), help="What the other side understands."
)
@click.option(
    "--url-variable", metavar="NAME",
    help="The environment variable with the URL.  [default: the hooks of the configuration]",
)  # fmt: skip
@click.option("--signed-by", metavar="NAME", help="The variable with the secret that signs; for json.")
@tier_option
@dry_run_option
@config_option
@store_option
def webhook(url: str, **options: Any) -> None:
    """Post the same news to Slack, Teams or a program; say why not when nothing is posted."""
    configuration = configured(options["config"])
    hooks = _hooks(options, configuration.read("webhook", WebhookTable).hook)
    audiences = [_narrowed(hook.audience, options["min_tier"]) for hook in hooks]
    database, now = Database(url), datetime.now(UTC)
    rules = policies_of(configuration)
    judgements = judged_runs(database, options["run_id"], options["since"], rules=rules, now=now)
    from alerts.mailing import Desk
    from alerts.outbox_delivery import webhook_carrier

    desk = Desk(database, judgements, rules=rules, now=now)
    drafts = _drafts(desk, audiences, judgements, sender="", now=now)
    if options["dry_run"]:
        _show(drafts)
        return
    carrier = webhook_carrier(os.environ)
    _send(database, drafts, {audience.channel: carrier for audience in audiences}, now)


def _mail_audiences(options: dict[str, Any], table: MailTable, lists: Sequence[Audience]) -> list[Audience]:
    if options["recipients"]:
        lists = [
            Audience(
                channel=Channel.EMAIL,
                recipients=tuple(address_option(word, "--to") for word in options["recipients"]),
                minimum=table.min_tier,
                flagged=table.flagged,
            )
        ]
    if not lists:
        raise click.UsageError("say who gets the mail with --to ADDR, or in [mail] of the configuration")
    from dataclasses import replace

    flagged = options["flagged"] or table.flagged
    return [replace(_narrowed(one, options["min_tier"]), flagged=flagged) for one in lists]


def _narrowed(audience: Audience, minimum: str | None) -> Audience:
    from dataclasses import replace

    return audience if minimum is None else replace(audience, minimum=Tier(minimum))


def _hooks(options: dict[str, Any], hooks: Sequence[Hook]) -> Sequence[Hook]:
    if options["url_variable"] is not None:
        if options["kind"] is None:
            raise click.UsageError("say with --kind what the webhook understands")
        try:
            return [
                Hook(
                    kind=HookKind(options["kind"]),
                    url_variable=options["url_variable"],
                    signed_by=options["signed_by"],
                )
            ]
        except RecordInvalid as error:
            raise click.UsageError(str(error)) from None
    if not hooks:
        raise click.UsageError(
            "say where to post with --kind and --url-variable, or in [[webhook.hook]] of the configuration"
        )
    return hooks


def _drafts(
    desk: Desk,
    audiences: Sequence[Audience],
    judgements: Sequence[RunJudgement],
    *,
    sender: str,
    now: datetime,
) -> list[Draft]:
    """What is to be told, ready for the outbox; a line on each audience that hears nothing."""
    from alerts.mailing import draft_of, why_nothing

    drafts = []
    for audience in audiences:
        found = desk.tell(audience)
        if not found.bulletins:
            click.echo(f"{audience.name}: {why_nothing(judgements, audience, found)}")
        drafts += [draft_of(bulletin, audience, sender=sender, now=now) for bulletin in found.bulletins]
    return drafts


def _show(drafts: Sequence[Draft]) -> None:
    from alerts.outbox_forms import content_text

    for draft in drafts:
        click.echo(content_text(draft.channel, draft.content))


def _send(database: Database, drafts: Sequence[Draft], carriers: Any, now: datetime) -> None:
    from alerts.outbox_delivery import deliver
    from alerts.outbox_forms import tell_report
    from store.outbox import queue

    queue(database, drafts, now=now)
    tell_report(deliver(database, carriers, rng=random.Random()))  # noqa: S311 - jitter, no secret
