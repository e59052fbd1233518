"""How the commands that judge end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alerts.judge import RunJudgement

EXIT_REGRESSION = 1
EXIT_NOTHING = 3

fail_option = click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="Exit with 1 on a confirmed regression: two sessions showed it, against a pool of runs. "
    "And with 3 where a benchmark failed, is missing or could not be judged: that is no pass.",
)


class Failed(click.ClickException):
    """An error message, with an exit code that is not the one of a regression."""

    exit_code = EXIT_NOTHING


def leave(judgements: Sequence[RunJudgement], fail_on: str | None, *, told: bool = True) -> None:
    """End with the code that tells the result; where all is fine, return.

    Args:
        judgements: what was judged.
        fail_on: ``regression``, or None where the result is not to fail anything.
        told: whether everybody could be told; a regression says more than that nobody was.
    """
    if fail_on == "regression" and any(judgement.has_confirmed_regression for judgement in judgements):
        sys.exit(EXIT_REGRESSION)
    gaps = [gap for judgement in judgements if (gap := judgement.unanswered) is not None]
    if fail_on is not None and gaps:
        click.echo(f"No pass: {'; '.join(gaps)}. What was not judged has not passed.", err=True)
    conclusive = all(judgement.is_conclusive for judgement in judgements)
    if not told or not conclusive or (fail_on is not None and gaps):
        sys.exit(EXIT_NOTHING)
