"""The policy that holds, value by value with where it comes from: as text, and as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from alerts.policy import Policy, matches, plain
from alerts.terminal import aligned
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.policy import Override, Policies
    from store.configuration import Configuration
    from store.records import Case

_LABEL_LIMIT = 60
_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """What there is to say about a policy.

    Attributes:
        configuration: where it was read from.
        cases: those that the store knows; None where there is no store to ask.
    """

    configuration: Configuration
    policies: Policies
    cases: Sequence[Case] | None


def unmatched(policies: Policies, cases: Sequence[Case]) -> list[str]:
    """A sentence for each glob of an override that means no known case; none where no case is known."""
    names = sorted({case.benchmark for case in cases})
    return [
        f"override {number}: {_glob(glob)} matches nothing in the store, which has "
        f"{shown.count(len(names), 'benchmark')}{_guess(glob, names, cases)}"
        for number, override in enumerate(policies.overrides, 1)
        for glob in override.benchmarks
        if names and not any(matches(case, glob) for case in cases)
    ]


def _guess(glob: str, names: Sequence[str], cases: Sequence[Case]) -> str:
    """What may have been meant, in parentheses."""
    written = glob.replace("[", "[[]")
    if any(matches(case, written) for case in cases):
        return f" (a [ of a label is written [[]: {_glob(written)})"
    alike = get_close_matches(glob, names, n=1)
    return f" (nearest: {_glob(alike[0])})" if alike else ""


def _glob(text: str) -> str:
    return shown.visible(text, limit=_LABEL_LIMIT)


def render_policy(report: PolicyReport) -> str:
    """Lines of text: the file, the general policy, the overrides, and the cases that differ."""
    place = report.configuration.place("judge")
    file = report.configuration.file
    blocks = [
        "No configuration file was found: everything is at its default."
        if file is None
        else f"Configuration: {shown.visible(str(file))}",
        "\n".join(aligned([("threshold", "value", "default", "from"), *_general_rows(report)])),
        "\n".join(_override_lines(report.policies.overrides, f"[[{place.table}.override]]")),
        "\n".join(_case_lines(report)),
    ]
    return "\n\n".join(block for block in blocks if block)


def policy_json(report: PolicyReport) -> str:
    """The same as an object. Fields are added, never renamed or taken away."""
    configuration, policies = report.configuration, report.policies
    cases = report.cases or ()
    return json.dumps(
        {
            "file": None if configuration.file is None else str(configuration.file),
            "general": {
                name: {"value": value, "default": getattr(Policy(), name), "from": _origin(report, name)}
                for name, value in _thresholds(policies.general)
            },
            "overrides": [
                {"benchmarks": override.benchmarks, "values": dict(override.values)}
                for override in policies.overrides
            ],
            "benchmarks": [
                {
                    "benchmark": case.label,
                    "values": dict(_thresholds(policies.of(case))),
                    "overrides": policies.deciding(case),
                }
                for case in cases
            ],
            "unmatched": unmatched(policies, cases),
        },
        indent=2,
    )


def _thresholds(policy: Policy) -> list[tuple[str, Any]]:
    return [(entry.name, getattr(policy, entry.name)) for entry in fields(Policy)]


def _origin(report: PolicyReport, name: str) -> str:
    given = report.configuration.tables.get("judge", {})
    return str(report.configuration.place("judge")) if name in given else _DEFAULT


def _general_rows(report: PolicyReport) -> Iterable[tuple[str, ...]]:
    default = Policy()
    for name, value in _thresholds(report.policies.general):
        yield name, plain(value), plain(getattr(default, name)), _origin(report, name)


def _override_lines(overrides: Iterable[Override], heading: str) -> Iterable[str]:
    for number, override in enumerate(overrides, 1):
        said = ", ".join(f"{name} {plain(value)}" for name, value in override.values.items())
        yield f"{heading} number {number}, for {plain(override.benchmarks)}: {said or 'changes nothing'}"


def _case_lines(report: PolicyReport) -> Iterable[str]:
    policies, cases = report.policies, report.cases
    if cases is None:
        yield "There is no store to take benchmarks from: name one with --store to see the policy of each."
        return
    differing = [(case, found) for case in cases if (found := policies.deciding(case))]
    if differing:
        heads = ("benchmark", "differs in")
        yield from aligned([heads, *(_case_row(policies, case, found) for case, found in differing)])
    others = len(cases) - len(differing)
    follow = "follows" if others == 1 else "follow"
    yield f"{shown.count(others, 'case')} of the store {follow} the general policy."
    for sentence in unmatched(policies, cases):
        yield f"Note: {sentence}."


def _case_row(policies: Policies, case: Case, found: dict[str, int]) -> tuple[str, str]:
    own = policies.of(case)
    said = ", ".join(
        f"{name} {plain(getattr(own, name))} (override {number})" for name, number in found.items()
    )
    return shown.visible(case.label, limit=_LABEL_LIMIT), said
