"""The command that measures a run again. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.records import RunHeader

_BUILT_IN = "builtin"


def reproduce_command(header: RunHeader) -> str:
    """The ``collect`` line that asks for the same commit, GPU, timer, clocks, passes and suites.

    Uncommitted changes of a dirty run are in no command: the caller says so.
    """
    words = ["collect", "--commit", header.commit_sha or "HEAD"]
    if not header.gpu_uuid.startswith("cpu:"):
        words += ["--gpu", header.gpu_uuid]
    words += [
        "--timer", header.timer, "--clocks", header.clock_regime, "--passes", str(header.passes),
    ]  # fmt: skip
    for suite in header.suites:
        if suite != _BUILT_IN:
            words += ["--suite", suite]
    return shlex.join(words)
