"""What a run should have measured and has no word on, by the rule of the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.baseline import distance, on_line
from alerts.completeness import missing_cases
from alerts.gathering import baseline_line
from alerts.judge import Evidence
from alerts.partner import partner_id
from alerts.policy import Policy
from dashboard import queries
from store.older_names import NO_RENAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Case, Commit, Failure, RunHeader, SeriesPoint

RUNS = Policy().pool_size


def missing_from(
    header: RunHeader,
    measured: Sequence[SeriesPoint],
    failures: Sequence[Failure],
    commits: Mapping[str, Commit],
) -> dict[Case, str] | None:
    """Cases that earlier runs have a number for and this one has no word on, each with the commit.

    Args:
        header: the run.
        measured: what it measured.
        failures: what gave no number in it.
        commits: of its repository, by id.

    Returns:
        None where the run lies too far back to be looked up among the newest of its GPU.
    """
    recent = queries.recent_headers(gpu_uuid=header.gpu_uuid)
    if header.run_id not in {other.run_id for other in recent}:
        return None
    line = baseline_line(header, commits)
    before = sorted(
        (other for other in recent if on_line(header, other, line)), key=lambda other: distance(other, line)
    )
    names = queries.renames(header.repository, [header.run_id]).get(header.run_id, NO_RENAMES)
    partner = partner_id(header)
    evidence = Evidence(
        header=header,
        candidates=tuple(measured),
        failures=tuple(failures),
        history=tuple(names.points(queries.newest_points([other.run_id for other in before[:RUNS]]))),
        line=line,
        paired=() if partner is None else tuple(names.points(queries.points(run_ids=[partner]))),
    )
    return missing_cases(evidence, runs=RUNS)
