"""What a worker host found when it loaded its job: cases, and what is wrong with the others. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from collector.suite import SENTINEL_SUITE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SENTINEL_TAG = "sentinel"


@dataclass(frozen=True)
class CaseInfo:
    """A benchmark case as the worker described it.

    Attributes:
        subject: key of the first implementation of the same workload; its own where there is no other.
    """

    key: str
    benchmark: str
    parameters: Mapping[str, Any]
    label: str
    source: str
    subject: str
    tags: tuple[str, ...]
    time_limit_s: float
    flops: float | None
    bytes_moved: float | None
    renamed_from: str | None = None


@dataclass(frozen=True)
class Loaded:
    """What a host found when it loaded its job.

    Attributes:
        fork_refused: why passes cannot be forked from it, or None.
        cases: those that can be run.
        known: those and the ones that contradict themselves, by key.
        failures: suites that could not be imported and cases that contradict themselves.
    """

    timer: str
    gpu_uuid: str | None
    gpu_name: str | None
    fork_refused: str | None
    cases: tuple[CaseInfo, ...]
    known: Mapping[str, CaseInfo]
    failures: tuple[Mapping[str, Any], ...]
    context: Mapping[str, Any]


def _chosen(case: Mapping[str, Any], only: Sequence[str]) -> bool:
    """Whether the globs choose a case; sentinels always run, for they judge the machine."""
    names = (case["benchmark"], case["label"])
    return (
        not only or SENTINEL_TAG in case["tags"] or any(fnmatchcase(n, glob) for n in names for glob in only)
    )


def _errors_and_context(message: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What could not be loaded; sentinels need torch, and where nobody has it they are no failure."""
    errors, context = message["errors"], dict(message["context"])
    if "error" in context["torch.version"]:
        own = "/".join(SENTINEL_SUITE.parts[-3:])
        missing = [error for error in errors if own in error["source"]]
        if missing:
            errors = [error for error in errors if error not in missing]
            context["sentinels"] = {"error": f"not measured: {missing[0]['message']}"}
    return errors, context


def loaded_from(message: Mapping[str, Any], only: Sequence[str]) -> Loaded:
    """Read a host's first message.

    Args:
        message: of the type ``loaded``.
        only: globs over names and labels; none choose all.
    """
    errors, context = _errors_and_context(message)
    described = [case for case in message["cases"] if _chosen(case, only)]
    known = {
        case["key"]: CaseInfo(
            key=case["key"],
            benchmark=case["benchmark"],
            parameters=case["parameters"],
            label=case["label"],
            source=case["source"],
            subject=case["subject"],
            tags=tuple(case["tags"]),
            renamed_from=case["renamed_from"],
            time_limit_s=case["time_limit_s"],
            flops=case["flops"],
            bytes_moved=case["bytes_moved"],
        )
        for case in described
    }
    contradictory = {case["key"]: case["error"] for case in described if case["error"]}
    return Loaded(
        timer=message["timer"],
        gpu_uuid=message["gpu_uuid"],
        gpu_name=message["gpu_name"],
        fork_refused=message["fork_refused"],
        cases=tuple(case for key, case in known.items() if key not in contradictory),
        known=known,
        failures=(*errors, *contradictory.values()),
        context=context,
    )
