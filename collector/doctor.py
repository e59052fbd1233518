"""The command ``collect doctor``: ask this machine whether it can measure, and say what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collector.diagnosis import Diagnosis, diagnose
from collector.errors import CollectorError
from collector.findings import Level
from collector.host import Host, memory_limit_bytes
from collector.protocol import Job
from collector.telemetry import reading_of
from store import shown
from store.database import DEFAULT_URL, Database

if TYPE_CHECKING:
    from collector.findings import Finding
    from collector.protocol import JsonReading

EXIT_CANNOT_MEASURE = 3
_EXAMINE_LIMIT_S = 300.0  # from one group of readings to the next: importing torch is among them
_GIT_LIMIT_S = 10


@click.command("doctor")
@click.option("--python", default=None, help="Interpreter of the code under test.  [default: this one]")
@click.option(
    "--gpu", default=None, metavar="INDEX-OR-UUID", help="GPU to look at.  [default: the first visible]"
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default=None,
    help="What stdout holds: text, or JSON for programs.  [default: text]",
)
@click.pass_obj
def doctor(options: dict[str, Any], /, **own: Any) -> None:
    """Say whether this machine can measure, at which tier, and what to do about what is missing.

    Nothing is changed. Exit codes: 0 it can measure, 2 usage, 3 it cannot.
    """
    options = options | {name: value for name, value in own.items() if value is not None}
    readings = examine_machine(
        python=options["python"],
        gpu=options["gpu"],
        timer=options["timer"] or "auto",
        store_url=options["url"] or DEFAULT_URL,
    )
    diagnosis = diagnose(readings, timer=options["timer"] or "auto")
    if options["output_format"] == "json":
        click.echo(json.dumps(as_json(diagnosis, readings), indent=2, allow_nan=False))
    else:
        click.echo(as_text(diagnosis))
    if not diagnosis.can_measure:
        sys.exit(EXIT_CANNOT_MEASURE)


def examine_machine(*, python: str, gpu: str | None, timer: str, store_url: str) -> dict[str, JsonReading]:
    """Read everything, in a worker process and here; what cannot be read is a reading with the error.

    Args:
        python: the interpreter of the code under test.
        gpu: index among the visible GPUs, or UUID; None for the first visible one.
        timer: as asked for; CUPTI is tried out only where it would be used.
        store_url: where runs would be kept.
    """
    readings = {
        "git.version": reading_of(_git_version),
        **_store_readings(store_url),
        "host.worker_memory_bytes": reading_of(memory_limit_bytes),
    }
    job = Job(
        root=str(Path.cwd()),
        suites=[],
        only=[],
        timer=timer,
        clocks="free",
        gpu=gpu,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        examine=True,
    )
    try:
        host = Host(python, job, memory_limit_bytes=sys.maxsize)
    except CollectorError as error:
        return readings | {"worker.died": {"value": f"could not be started: {error}"}}
    try:
        return readings | _worker_readings(host)
    finally:
        host.close()


def _worker_readings(host: Host) -> dict[str, JsonReading]:
    readings: dict[str, JsonReading] = {}
    while True:
        try:
            message = host.answer(_EXAMINE_LIMIT_S)
        except CollectorError as error:
            return readings | {"worker.died": {"value": f"spoke nonsense: {error}"}}
        if message["type"] == "examined":
            readings.update(message["readings"])
        elif message["type"] == "done":
            return readings
        else:
            return readings | {"worker.died": {"value": _how_it_ended(message, host)}}


def _how_it_ended(message: dict[str, Any], host: Host) -> str:
    if message["type"] == "late":
        how = f"did not answer within {_EXAMINE_LIMIT_S:.0f} s"
    elif message["type"] == "fatal":
        how = f"gave up: {message['message']}"
    else:
        how = f"ended with status {host.exit_code()}"
    log = host.log_tail()
    return f"{how}; its log: {log}" if log else how


def _git_version() -> str:
    done = subprocess.run(
        ["git", "--version"], capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=True
    )
    return done.stdout.strip().removeprefix("git version ")


def _store_readings(url: str) -> dict[str, JsonReading]:
    folder = Database(url).path.absolute().parent
    return {
        "store.folder": {"value": str(folder)},
        "store.free_bytes": reading_of(lambda: shutil.disk_usage(folder).free),
    }


def as_text(diagnosis: Diagnosis) -> str:
    """The findings, what to do about each below it, and the answer in the last line."""
    width = max(len(finding.subject) for finding in diagnosis.findings)
    lines = [line for finding in diagnosis.findings for line in _lines(finding, width)]
    return "\n".join([*lines, "", conclusion(diagnosis)])


def _lines(finding: Finding, width: int) -> list[str]:
    begin = f"{finding.level:7}  {finding.subject:{width}}  "
    lines = [begin + shown.one_line(finding.message, limit=1000)]
    indent = " " * len(begin)
    if finding.meaning:
        lines.append(f"{indent}{shown.one_line(finding.meaning)}")
    if finding.remedy:
        lines.append(f"{indent}what to do: {shown.one_line(finding.remedy)}")
    return lines


def conclusion(diagnosis: Diagnosis) -> str:
    """One sentence: can this machine measure, how, and how far can the numbers be trusted."""
    if not diagnosis.can_measure:
        count = sum(finding.level is Level.PROBLEM for finding in diagnosis.findings)
        return f"This machine cannot measure as asked: {shown.count(count, 'problem')}."
    return f"This machine can measure: timer {diagnosis.timer}, tier {diagnosis.best_tier} at best."


def as_json(diagnosis: Diagnosis, readings: dict[str, JsonReading]) -> dict[str, Any]:
    """The same for programs, with every reading."""
    best = diagnosis.best_tier
    return {
        "can_measure": diagnosis.can_measure,
        "timer": diagnosis.timer,
        "best_tier": None if best is None else best.value,
        "findings": [
            {
                "level": finding.level.value,
                "subject": finding.subject,
                "message": finding.message,
                "meaning": finding.meaning,
                "remedy": finding.remedy,
                "limits_tier_to": None if finding.limit is None else finding.limit.value,
            }
            for finding in diagnosis.findings
        ],
        "readings": readings,
    }
