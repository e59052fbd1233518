"""Raw CUPTI records on disk: evidence for a person, and test data for machines without a GPU."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

from collector.records import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TRACE_VERSION = 1
_UNSAFE = re.compile(r"[^A-Za-z0-9_.=-]+")


def write_trace(folder: Path, label: str, trace: Trace, message: Mapping[str, Any]) -> Path:
    """Write the records of one window beside what was made of them.

    Args:
        folder: made when it does not exist.
        label: the case, which names the file.
        trace: the records, with the bounds of the iterations.
        message: the worker's message about the window.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_UNSAFE.sub('-', label).strip('-')}.trace.json.gz"
    document = {"version": TRACE_VERSION, "label": label, "trace": trace.to_json(), "message": dict(message)}
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write(json.dumps(document, separators=(",", ":")).encode())
    return path


def read_trace(path: Path) -> tuple[Trace, dict[str, Any]]:
    """The records of a window and the worker's message about it.

    Raises:
        ValueError: the file is of another version.
    """
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        document = json.load(stream)
    if document.get("version") != TRACE_VERSION:
        raise ValueError(f"{path} is a trace of version {document.get('version')}, not {TRACE_VERSION}")
    return Trace.from_json(document["trace"]), document["message"]
