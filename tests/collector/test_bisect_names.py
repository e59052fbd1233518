"""Which benchmarks a bisection means on either side of a rename."""

from __future__ import annotations

from typing import Any

import pytest

from collector.bisect_names import names_among, only_of
from collector.loaded import CaseInfo


def a_case(benchmark: str, renamed_from: str | None = None, **parameters: Any) -> CaseInfo:
    label = f"{benchmark}[{', '.join(f'{name}={value}' for name, value in sorted(parameters.items()))}]"
    return CaseInfo(
        key=label, benchmark=benchmark, parameters=parameters, label=label if parameters else benchmark,
        source="bench_example.py:1", subject=label, tags=(), time_limit_s=60, flops=None, bytes_moved=None,
        renamed_from=renamed_from,
    )  # fmt: skip


SUITE = [a_case("softmax", "soft_max", rows=8), a_case("softmax", "soft_max", rows=9), a_case("norm")]


@pytest.mark.parametrize(
    ("asked", "added"),
    [
        ("softmax", ("soft_max",)),
        ("soft_max", ("softmax",)),
        ("softmax[rows=8]", ("soft_max[[]rows=8]",)),
        ("soft_max[rows=8]", ("softmax[[]rows=8]",)),
        ("soft*", ()),
        ("norm", ()),
        ("gone", ()),
    ],
)
def test_both_names_of_what_is_asked_about_are_chosen(asked: str, added: tuple[str, ...]) -> None:
    names = names_among(only_of(asked), SUITE, [])

    assert names.only == (*only_of(asked), *added)


def test_a_rename_that_the_suite_no_longer_declares_is_known_from_earlier_runs() -> None:
    names = names_among(only_of("softmax"), [a_case("softmax")], [("s", "soft_max"), ("soft_max", "softmax")])

    assert names.only == ("softmax", "s", "soft_max")


def test_a_name_that_is_still_measured_was_not_given_up() -> None:
    names = names_among(only_of("softmax"), [a_case("softmax", "soft_max"), a_case("soft_max")], [])

    assert names.only == ("softmax",)
