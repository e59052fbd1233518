"""The command ``alerts``: judge a run, compare two commits, date steps, tell people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from alerts.comment_command import comment
from alerts.config_command import config_command, tell_unmatched
from alerts.configuration import policies_here
from alerts.errors import AlertsError
from alerts.exits import Failed, fail_option, leave
from alerts.jsonform import judgement_json
from alerts.judging import judge_run
from alerts.mail_commands import email, webhook
from alerts.mail_options import run_option
from alerts.message import compose
from alerts.naming import newest_run
from alerts.options import config_option, format_option, store_option
from alerts.order_command import order
from alerts.outbox_commands import outbox
from alerts.rejudge_command import (
    all_option,
    check_together,
    gpu_option,
    judge_all,
    leave_rejudged,
    rejudged_json,
    render_rejudged,
    repo_option,
    since_option,
)
from alerts.terminal import render_text
from alerts.triage_commands import triage
from store.database import Database
from store.errors import ConfigurationInvalid, StoreError

if TYPE_CHECKING:
    from alerts.judge import RunJudgement


class _Explaining(click.Group):
    """Turns what the rooms raise into messages, at this one place."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ConfigurationInvalid as error:
            raise click.UsageError(str(error)) from error
        except (AlertsError, StoreError) as error:
            raise Failed(str(error)) from error


@click.group(cls=_Explaining, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kernelwatch")
def alerts() -> None:
    """Judge what was measured, and tell people.

    Exit codes: 0 fine; 1 a confirmed regression, with --fail-on regression; 2 usage;
    3 nothing could be judged or sent, and stderr says why when something failed.
    """


@alerts.command()
@run_option
@all_option
@since_option
@gpu_option
@repo_option
@format_option
@fail_option
@config_option
@store_option
def judge(
    *, url: str, run_id: str | None, form: str, fail_on: str | None, config: Path | None, **more: Any
) -> None:
    """Judge a run against its ancestors and save the verdicts.

    With --all every run of the store is judged again, as after a change of thresholds, of the method
    or of accepted changes; what is printed is how many verdicts say something else than before.
    """
    check_together(run_id=run_id, fail_on=fail_on, **more)
    if more["every"]:
        database, rules = Database(url), policies_here(config)
        rejudged = judge_all(database, rules, since=more["since"], gpu=more["gpu"], checkout=more["repo"])
        tell_unmatched(database, rules)
        click.echo(rejudged_json(rejudged) if form == "json" else render_rejudged(rejudged))
        leave_rejudged(rejudged)
        return
    judgement = _judged(Database(url), run_id, config)
    click.echo(judgement_json(judgement) if form == "json" else render_text(compose(judgement)).rstrip())
    leave([judgement], fail_on)


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
@fail_option
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
    click.echo(judgement_json(judgement) if as_json else render_text(compose(judgement)).rstrip())
    leave([judgement], options["fail_on"])


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


alerts.add_command(comment)
alerts.add_command(config_command)
alerts.add_command(email)
alerts.add_command(order)
alerts.add_command(outbox)
alerts.add_command(triage)
alerts.add_command(webhook)


def main() -> None:
    """The console command."""
    alerts(prog_name="alerts")


def _judged(database: Database, run_id: str | None, config: Path | None) -> RunJudgement:
    rules = policies_here(config)
    judgement = judge_run(database, newest_run(database) if run_id is None else run_id, rules)
    tell_unmatched(database, rules)
    return judgement
