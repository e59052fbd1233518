"""The runs of one code, and whose tests are counted together: q-values when a whole store is judged."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alerts.effects import benjamini_hochberg
from alerts.judging import newest_by_gpu

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from alerts.judge import JudgedPoint
    from alerts.quiet import Quiet
    from store.outlines import Outlines
    from store.records import RunHeader, SeriesKey, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The runs of one commit, or one run of uncommitted changes: they are settled together.

    Attributes:
        runs: all of them, newest first.
        judged: those that are judged.
    """

    runs: Sequence[RunHeader]
    judged: Sequence[RunHeader]

    @property
    def has_sessions(self) -> bool:
        """Whether the runs measured the same code. Uncommitted changes are never the same code twice."""
        return self.runs[0].commit_sha is not None and not self.runs[0].dirty

    def sessions(self, gpu_uuid: str) -> list[RunHeader]:
        """The runs on one GPU."""
        return [run for run in self.runs if run.gpu_uuid == gpu_uuid] if self.has_sessions else []

    def measured_twice(self, gpu_uuid: str, points: Outlines) -> frozenset[int]:
        """The numbers of the series that several sessions on a GPU have: they are settled between them."""
        sessions = self.sessions(gpu_uuid)
        if len(sessions) < 2:  # noqa: PLR2004 - one session repeats nothing, and most commits have no other
            return frozenset()
        rows = [row for run in sessions for row in points.rows(run.run_id)]
        series, times = np.unique(points.series_code[rows], return_counts=True)
        return frozenset(series[times > 1].tolist())

    def resolutions_ms(self, gpu_uuid: str, points: Outlines) -> dict[str, float]:
        """The coarsest time quantum of one sample of each series in any session on a GPU, by series id."""
        found: dict[str, float] = {}
        for run in self.sessions(gpu_uuid):
            for row in points.rows(run.run_id):
                series_id = points.series[points.series_code[row]].id
                found[series_id] = max(found.get(series_id, 0.0), points.resolution_ms[row].item())
        return found

    def families(self) -> Iterator[tuple[list[str], set[str]]]:
        """Runs whose tests are counted together, and those among them that get their q-values from that.

        A run stands beside the newest ones on other GPUs; these beside it only where it is the newest itself.
        """
        newest = newest_by_gpu(self.runs) if self.has_sessions else {}
        whole = set(newest.values())
        for run in self.judged:
            if run.run_id in whole:
                continue
            alone = not self.has_sessions or run.confirms_run_id is not None
            others = [] if alone else [run_id for gpu, run_id in newest.items() if gpu != run.gpu_uuid]
            yield [run.run_id, *sorted(others)], {run.run_id}
        if any(run.run_id in whole for run in self.judged):
            yield sorted(whole), whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What is known about a code before its tests are counted.

    Attributes:
        settled: the verdicts on its runs that were judged, and those on others that changed with them.
        judged: of each run the points that were judged one by one.
        stored: earlier verdicts on the runs that are not judged.
        quiet: the points of which there was nothing to say.
    """

    settled: Iterable[Verdict]
    judged: Mapping[str, Sequence[JudgedPoint]]
    stored: Mapping[str, Sequence[Verdict]]
    quiet: Quiet
    points: Outlines


def with_q_values(
    code: Code, decided: Decided, q_value: NDArray[np.float64]
) -> list[tuple[Verdict, float | None]]:
    """Every verdict to be written with its q-value: over the run, and the newest ones on other GPUs.

    Args:
        code: the runs.
        decided: what was decided about them.
        q_value: by row of the outlines; those of quiet points are filled in.
    """
    stored = {run.run_id: decided.stored.get(run.run_id, ()) for run in code.runs}
    current: dict[str, dict[SeriesKey, Verdict]] = defaultdict(dict)
    for run_id, verdicts in stored.items():
        current[run_id] |= {verdict.series: verdict for verdict in verdicts}
    for verdict in decided.settled:
        current[verdict.run_id][verdict.series] = verdict
    q_values = {
        run_id: {series: verdict.q_value for series, verdict in verdicts.items()}
        for run_id, verdicts in current.items()
    }
    tests = {run.run_id: _Tests.of(run.run_id, decided, current[run.run_id]) for run in code.runs}
    for members, told in code.families():
        counted = benjamini_hochberg(np.concatenate([tests[run_id].p_values for run_id in members]))
        for run_id in members:
            own, counted = counted[: len(tests[run_id].p_values)], counted[len(tests[run_id].p_values) :]
            if run_id in told:
                tests[run_id].tell(own, q_value, q_values.setdefault(run_id, {}))
    before = {(v.run_id, v.series): v for verdicts in stored.values() for v in verdicts}
    return [
        (verdict, q_values[run_id][series])
        for run_id, verdicts in current.items()
        for series, verdict in verdicts.items()
        if (old := before.get((run_id, series))) is None
        or (verdict, q_values[run_id][series]) != (old, old.q_value)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tests:
    """The tests of one run: first those of quiet points, then the others.

    Attributes:
        rows: the quiet points, as rows of the outlines.
        series: the others.
        p_values: of both, in this order.
    """

    rows: NDArray[np.intp]
    series: Sequence[SeriesKey]
    p_values: NDArray[np.float64]

    @classmethod
    def of(cls, run_id: str, decided: Decided, current: Mapping[SeriesKey, Verdict]) -> _Tests:
        """From what was decided about the run."""
        judged, stored = decided.judged.get(run_id, ()), decided.stored.get(run_id, ())
        series = [item.verdict.series for item in judged if item.is_test] or [
            v.series for v in stored if v.q_value is not None and v.p_value is not None
        ]
        span = decided.points.rows(run_id)
        quiet = decided.quiet.p_value[span.start : span.stop]
        is_test = ~np.isnan(quiet)
        others = np.array([current[key].p_value or 0.0 for key in series], dtype=np.float64)
        return cls(
            rows=np.flatnonzero(is_test) + span.start,
            series=series,
            p_values=np.concatenate([quiet[is_test], others]),
        )

    def tell(
        self, q_values: Sequence[float], quiet: NDArray[np.float64], others: dict[SeriesKey, float | None]
    ) -> None:
        """Write the q-value of each test where it belongs."""
        quiet[self.rows] = q_values[: self.rows.size]
        others.update(zip(self.series, q_values[self.rows.size :], strict=True))
