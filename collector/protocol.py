"""What the parent and its workers say to each other: one JSON object a line.

The parent writes a job and then requests to the worker's standard input; the worker writes
messages to a pipe of its own, so that prints of a benchmark can never be taken for results.
Both sides are of one version of the collector: the worker loads the parent's own files.
"""

from __future__ import annotations

import json
from typing import IO, Any, NotRequired, TypedDict

PROTOCOL_VERSION = 1


class JsonReading(TypedDict, total=False):
    """A value read from the machine, or the error that stood in its way."""

    value: str | int | float | bool
    error: str


class Job(TypedDict):
    """What a worker host is to measure, and how.

    Times and paths are as the command line gave them, resolved to absolute paths.
    """

    root: str
    suites: list[str]
    only: list[str]
    timer: str  # "cupti", "events", "wall", or "auto": cupti on a GPU, wall without one
    clocks: str
    gpu: str | None
    visible_devices: str | None
    examine: NotRequired[bool]  # read the machine's readings and end, without loading a suite


class Request(TypedDict):
    """What the host shall do next."""

    do: str  # "probe", "pass" or "stop"; about clocks "power_limit", "lock", "unlock" or "verify"
    pass_index: NotRequired[int]
    cases: NotRequired[list[str]]  # keys, in the order to run them
    positions: NotRequired[list[int]]
    pacing: NotRequired[dict[str, tuple[float, float]]]  # by case key: pause, and one too short, in ms
    fork: NotRequired[bool]
    drop_counter_proven: NotRequired[bool]
    traces: NotRequired[str | None]  # folder for the raw records of this pass
    mhz: NotRequired[int | None]  # SM clock to lock or to verify
    power_limit_mw: NotRequired[int | None]  # to set when locking, to restore when unlocking


def send(stream: IO[str], message: object) -> None:
    """Write one message and push it out.

    Raises:
        ValueError: the message holds NaN or infinity, which no reader accepts.
    """
    stream.write(json.dumps(message, allow_nan=False, separators=(",", ":")) + "\n")
    stream.flush()


def parse(line: str) -> dict[str, Any]:
    """Read one message.

    Raises:
        ValueError: the line is no JSON object.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"expected an object, got {line[:80]!r}")  # noqa: TRY004 - one error for bad input
    return message
