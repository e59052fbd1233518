"""Have people told about a run that was just judged, where the configuration asks for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from store.configuration import Configuration

_LIMIT_S = 600
_COMMANDS = {"mail": "email", "webhook": "webhook"}  # by the table that switches each on


def tell(run_id: str, url: str, configuration: Configuration) -> Iterable[str]:
    """Start the commands whose tables say ``after_collect = true``; yields what they say.

    Like the judge, alerts is asked by its command and not imported. A message that cannot be
    delivered waits in the store: it is no reason for the measurement to fail.
    """
    for table, name in _COMMANDS.items():
        if configuration.tables.get(table, {}).get("after_collect") is True:
            yield from _said(name, ["--run", run_id, "--store", url], configuration)


def _said(name: str, arguments: list[str], configuration: Configuration) -> list[str]:
    command = [sys.executable, "-P", "-m", "alerts", name, *arguments]
    if configuration.file is not None:
        command += ["--config", str(configuration.file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"`alerts {name}` took longer than {_LIMIT_S} s: `alerts outbox send` delivers what waits"]
    said = [line for line in (*done.stdout.splitlines(), *done.stderr.splitlines()) if line.strip()]
    if done.returncode != 0 and not said:
        return [f"`alerts {name}` ended with status {done.returncode}"]
    return said
