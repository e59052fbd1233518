"""Options about clocks that contradict each other."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from collector.cli import collect


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--clocks", "locked"], "--clocks locked needs to know the clock: add --clock-mhz MHZ"),
        (["--clock-mhz", "1500"], "--clock-mhz has no meaning with --clocks held"),
        (["--clocks", "free", "--clock-mhz", "1500"], "--clock-mhz has no meaning with --clocks free"),
        (["--power-limit", "500"], "--power-limit has no meaning with --clocks held"),
        (["--clocks", "verify", "--power-limit", "500"], "--power-limit has no meaning with --clocks verify"),
        (["--clocks", "locked", "--clock-mhz", "0"], "0 is not in the range x>=1"),
        (["--clocks", "locked", "--clock-mhz", "1500", "--power-limit", "0"], "is not in the range x>0"),
    ],
)
def test_clock_options_that_contradict_each_other_are_usage_errors(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(collect, arguments)

    assert result.exit_code == 2
    assert said in result.output
