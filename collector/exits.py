"""How the command ``collect`` ends."""

from __future__ import annotations

from typing import NoReturn

import click

EXIT_REGRESSION = 1
EXIT_NOTHING = 3
EXIT_INTERRUPTED = 130


class NothingMeasured(click.ClickException):
    """Ends the command with the exit code for a run that gave nothing."""

    exit_code = EXIT_NOTHING


def give_up(error: Exception) -> NoReturn:
    """End with what an error says to do.

    Raises:
        NothingMeasured: always.
    """
    raise NothingMeasured(str(error)) from error
