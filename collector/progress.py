"""What a person sees while a run is measured, and what becomes of Ctrl-C."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from collector.run import Watcher

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from collector.loaded import CaseInfo


class Interrupts:
    """Ctrl-C and a request to terminate: the first ends the measuring, and none the keeping.

    Attributes:
        asked: whether there was one, whatever was going on.
    """

    def __init__(self) -> None:
        self.asked = False
        self._measuring = True
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def end_of_measuring(self) -> None:
        """From here on an interrupt would only lose what was measured."""
        self._measuring = False

    def _receive(self, number: int, frame: object) -> None:
        del number, frame
        self.asked = True
        if self._measuring:
            self._measuring = False
            raise KeyboardInterrupt
        click.echo("keeping what was measured; this takes a moment", err=True)


class Notes(Watcher):
    """Says at once what a person should know, and draws nothing."""

    def note(self, text: str) -> None:
        """Say it on standard error."""
        click.echo(text, err=True)


class Bar(Watcher):
    """Draws the progress of a run on standard error, with the time left."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._stack = ExitStack()
        self._bar: ProgressBar[int] | None = None

    def started(self, cases: int, passes: int) -> None:
        """Begin the bar."""
        click.echo(f"measuring {cases} benchmark cases in {passes} passes", err=True)
        bar: ProgressBar[int] = click.progressbar(
            length=cases * passes, label="windows", file=sys.stderr, show_eta=True, show_pos=True
        )
        self._bar = self._stack.enter_context(bar)

    def window_done(self, case: CaseInfo) -> None:
        """One step further."""
        del case
        if self._bar is not None:
            self._bar.update(1)

    def measured(self) -> None:
        """What was measured is to be kept, whoever interrupts now."""
        self._interrupts.end_of_measuring()

    def note(self, text: str) -> None:
        """Say it at once."""
        click.echo(text, err=True)

    def close(self) -> None:
        """End the line of the bar."""
        self._stack.close()
