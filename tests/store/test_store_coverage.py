"""Which runs hold a number, and which a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import a_failure, a_header, a_measurement, a_run, a_verdict

from store.coverage import judged_runs, runs_with_a_number
from store.runs import save_run
from store.verdicts import save_verdicts

if TYPE_CHECKING:
    from store.database import Database

REPOSITORY = a_header().repository


def test_failures_and_the_tool_s_own_calls_are_no_numbers(database: Database) -> None:
    save_run(database, a_run(1))
    save_run(database, a_run(2, measurements=(), failures=(a_failure(),)))
    save_run(database, a_run(3, measurements=(a_measurement("copy", tags=("sentinel",)),)))
    save_run(database, a_run(4, header={"repository": "github.com/example/other"}))

    assert runs_with_a_number(database, REPOSITORY, besides="sentinel") == {a_header(1).run_id}


def test_a_run_with_any_verdict_is_judged(database: Database) -> None:
    runs = [a_run(number) for number in (1, 2)]
    for run in runs:
        save_run(database, run)
    save_verdicts(database, [a_verdict(runs[1])])

    assert judged_runs(database, REPOSITORY) == {runs[1].header.run_id}
    assert judged_runs(database, "github.com/example/other") == set()
