"""The command ``alerts order``: carry out what a comment on a pull request orders."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from alerts.comment_command import conversation, repository_option
from alerts.errors import AlertsError
from alerts.options import store_option
from store import shown
from store.database import Database
from store.triage_events import Action

if TYPE_CHECKING:
    from alerts.github.client import Client
    from alerts.github.orders import Order


@click.command()
@click.option(
    "--workflow", metavar="FILE", default="measure.yml", show_default=True, help="The workflow that measures."
)
@click.option(
    "--artifact",
    metavar="NAME",
    default="kernelwatch",
    show_default=True,
    help="Its artifact; names of benchmarks are looked up there.",
)
@repository_option
@store_option
def order(*, url: str, workflow: str, artifact: str, repository: str | None) -> None:
    """Carry out the order in the comment that the event issue_comment is about.

    '/kernelwatch rerun' runs the measuring workflow again; '/kernelwatch accept NAME...' accepts the
    changes of these benchmarks on the pull request's commit. Only people who may write to the
    repository are obeyed. A comment without an order is fine: nothing is done.
    """
    from alerts.github.orders import Reaction, Verb, check_writer, measure_again, order_of, react
    from alerts.github.subject import subject_of

    with ExitStack() as stack:
        client, event = conversation(repository, stack)
        found = order_of(event)
        if found is None:
            click.echo("no order in this comment")
            return
        try:
            check_writer(client, found.by)
            head_sha = subject_of(client, event).head_sha
            if found.verb is Verb.RERUN:
                said = f"measuring again: {measure_again(client, head_sha, workflow)}"
            else:
                said = _accept(Database(url), client, found, head_sha, workflow=workflow, artifact=artifact)
        except AlertsError:
            react(client, found, Reaction.REFUSED)
            raise
        react(client, found, Reaction.DONE)
        click.echo(said)


def _accept(
    database: Database, client: Client, order: Order, head_sha: str, *, workflow: str, artifact: str
) -> str:
    """Accept in the store what the artifact of the newest measurement shows."""
    from alerts.deciding import record, target
    from alerts.github.orders import newest_workflow_run
    from alerts.github.sources import take_in

    with tempfile.TemporaryDirectory(prefix="kernelwatch-") as name:
        run_id = int(newest_workflow_run(client, head_sha, workflow)["id"])
        taken = take_in(client, run_id, artifact, head_sha=head_sha, database=database, folder=Path(name))
        about = target(taken.database, order.names, at=head_sha, checkout=Path())
    record(
        database,
        Action.ACCEPT,
        about,
        by=f"{order.by} on GitHub",
        body=f"ordered in {client.place.server_url}/{client.place.repository}/pull/{order.number}",
    )
    return f"accepted on {shown.short(head_sha)}: {', '.join(map(shown.visible, order.names))}"
