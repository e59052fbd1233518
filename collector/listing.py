"""What would be measured: the cases of the suites, and what is wrong with those that are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from collector.run import open_session
from store import shown

if TYPE_CHECKING:
    from collector.loaded import Loaded
    from collector.run import Plan


def list_cases(plan: Plan, *, as_json: bool) -> tuple[str, bool]:
    """The benchmark cases as text or JSON, and whether something could not be loaded.

    Raises:
        CollectorError: the worker could not be started, or the revision not laid out.
    """
    with open_session(plan) as session:
        loaded = session.loaded
    text = _as_json(loaded) if as_json else _as_text(loaded)
    return text, bool(loaded.failures)


def _as_text(loaded: Loaded) -> str:
    width = max((len(case.label) for case in loaded.cases), default=0)
    lines = [
        f"{shown.one_line(case.label):{width}}  {case.source}  {', '.join(case.tags)}".rstrip()
        for case in loaded.cases
    ]
    lines.append(f"{len(loaded.cases)} cases; timer {loaded.timer}; {loaded.gpu_name or 'no GPU'}")
    if "sentinels" in loaded.context:
        lines.append(f"sentinels: {loaded.context['sentinels']['error']}")
    for failure in loaded.failures:
        text = f"{failure['source']}: {failure['kind']}: {failure['message']}"
        lines.append(f"cannot be measured: {shown.one_line(text)}")
    return "\n".join(lines)


def _as_json(loaded: Loaded) -> str:
    return json.dumps(
        {
            "timer": loaded.timer,
            "gpu_uuid": loaded.gpu_uuid,
            "cases": [
                {
                    "label": case.label,
                    "benchmark": case.benchmark,
                    "parameters": dict(case.parameters),
                    "source": case.source,
                    "tags": list(case.tags),
                    "flops": case.flops,
                    "bytes_moved": case.bytes_moved,
                }
                for case in loaded.cases
            ],
            "failures": [dict(failure) for failure in loaded.failures],
        },
        indent=2,
    )
