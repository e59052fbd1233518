"""What moved lately, worst first."""

from __future__ import annotations

from dataclasses import replace

from builders import a_failure, a_header, a_sha
from rows import a_point, a_verdict

from alerts.order import Kind
from dashboard.latest import (
    Filters,
    LatestRow,
    Side,
    lately,
    latest_rows,
    newest_runs,
    own_news,
    summarize,
)
from store.records import Failure, Outcome, PairedRole, RunHeader, SeriesPoint, Standing, Tier, Verdict

LINE = frozenset(a_sha(number) for number in range(1, 30))


def by_key(*verdicts: Verdict) -> dict[tuple[str, str], Verdict]:
    return {(verdict.run_id, verdict.series.id): verdict for verdict in verdicts}


def names(points: list[SeriesPoint], verdicts: dict[tuple[str, str], Verdict]) -> list[str]:
    return [row.label.partition("[")[0] for row in latest_rows(points, verdicts, LINE)]


def test_the_worst_news_comes_first() -> None:
    kinds: list[tuple[str, Outcome, Standing, float | None]] = [
        ("unchanged", Outcome.UNCHANGED, Standing.NONE, 0.001),
        ("flagged", Outcome.REGRESSED, Standing.FLAGGED, 0.20),
        ("improved", Outcome.IMPROVED, Standing.CONFIRMED, -0.30),
        ("doubtful", Outcome.INCONCLUSIVE, Standing.NONE, None),
        ("small", Outcome.REGRESSED, Standing.CONFIRMED, 0.02),
        ("large", Outcome.REGRESSED, Standing.CONFIRMED, 0.10),
    ]
    points = [a_point(3, benchmark=name) for name, *_ in kinds]
    verdicts = by_key(
        *(
            a_verdict(point, outcome=outcome, standing=standing, effect=effect)
            for point, (_, outcome, standing, effect) in zip(points, kinds, strict=True)
        )
    )

    assert names([*points, a_point(3, benchmark="silent")], verdicts) == [
        "large", "small", "flagged", "improved", "doubtful", "silent", "unchanged",
    ]  # fmt: skip


def rows_with(
    points: list[SeriesPoint], newest: list[RunHeader], **failures: list[Failure]
) -> list[LatestRow]:
    """The rows as the newest runs leave them, with what failed by run id."""
    return latest_rows(points, {}, LINE, newest=newest, failures=failures)


def test_a_branch_does_not_hide_the_main_line() -> None:
    on_branch = a_point(header=a_header(99, merge_base=a_sha(4)))

    rows = latest_rows([a_point(4), on_branch], {}, LINE)

    assert sorted(row.side for row in rows) == [Side.MAIN, Side.OFF]


def test_what_the_newest_run_did_not_measure_is_missing() -> None:
    (row,) = rows_with([a_point(3)], [a_header(4)])

    assert (row.kind, row.header) == (Kind.MISSING, a_header(3))
    assert row.absent_from == a_header(4)


def test_a_run_under_other_conditions_misses_nothing() -> None:
    others = [
        a_header(4, environment="driver=590"),
        a_header(4, suites=("suites/other.py",)),
        a_header(4, gpu_uuid="GPU-2"),
        a_header(2),
    ]

    (row,) = rows_with([a_point(3)], others)

    assert row.kind is Kind.NOT_JUDGED


def test_a_run_that_confirms_another_misses_nothing() -> None:
    confirming = a_header(4, number=1, confirms_run_id=a_header(4).run_id)

    assert newest_runs([a_header(4), confirming], LINE) == [a_header(4)]


def test_the_baseline_of_a_pair_is_no_news_beside_its_candidate() -> None:
    candidate, baseline = a_header(4), a_header(3, number=1)
    pair = [
        replace(candidate, paired_with=baseline.run_id, paired_role=PairedRole.CANDIDATE),
        replace(baseline, paired_with=candidate.run_id, paired_role=PairedRole.BASELINE),
    ]

    assert own_news(pair) == pair[:1]
    assert own_news(pair[1:]) == pair[1:]


def test_what_failed_in_the_newest_run_is_one_row_with_its_last_number() -> None:
    point, newest = a_point(3), a_header(4)
    failure = a_failure("softmax", case=point.series.case)

    (row,) = rows_with([point], [newest], **{newest.run_id: [failure]})

    assert (row.kind, row.header, row.point) == (Kind.FAILED, newest, point)


def test_a_benchmark_that_never_gave_a_number_has_a_row() -> None:
    newest = a_header(4)
    failures = [a_failure("broken"), a_failure(case=None, source="suites/bad.py:1")]

    rows = rows_with([a_point(4, header=newest)], [newest], **{newest.run_id: failures})

    assert [(row.kind, row.label) for row in rows] == [
        (Kind.FAILED, "broken"), (Kind.FAILED, "suites/bad.py:1"), (Kind.NOT_JUDGED, "softmax[rows=1024]"),
    ]  # fmt: skip


def test_filters_narrow_by_every_word_and_every_property() -> None:
    softmax = a_point(3, benchmark="softmax", tier=Tier.B, tags=("memory",), source="suites/a.py:1")
    topk = a_point(3, benchmark="topk", source="suites/b.py:2")
    rows = latest_rows([softmax, topk], by_key(a_verdict(topk)), LINE)

    def kept(**filters: object) -> list[str]:
        chosen = Filters(**filters)  # type: ignore[arg-type]
        return [row.label.partition("[")[0] for row in rows if chosen.keep(row)]

    assert kept() == ["topk", "softmax"]
    assert kept(text="1024 SOFT") == ["softmax"]
    assert kept(text="soft 4096") == []
    assert kept(kinds=["confirmed"]) == ["topk"]
    assert kept(kinds=["not judged", "failed"]) == ["softmax"]
    assert kept(tiers=["B"]) == ["softmax"]
    assert kept(gpu_uuids=["GPU-of-nobody"]) == []
    assert kept(suites=["suites/b.py"]) == ["topk"]
    assert kept(tags=["memory", "compute"]) == ["softmax"]
    assert kept(sides=["main line"]) == ["topk", "softmax"]
    assert kept(repositories=["github.com/example/fork"]) == []


def test_a_busy_gpu_does_not_hide_a_quiet_one() -> None:
    busy = [a_header(number) for number in range(5, 10)]
    quiet = a_header(1, gpu_uuid="GPU-quiet")

    kept = lately([*busy, quiet], per_gpu=2)

    assert [header.gpu_uuid for header in kept].count("GPU-quiet") == 1
    assert len(kept) == 3


def test_each_gpu_has_a_newest_run_on_and_off_the_line() -> None:
    headers = [a_header(4), a_header(5), a_header(99, merge_base=a_sha(5)), a_header(2, gpu_uuid="GPU-2")]

    newest = newest_runs(headers, LINE)

    assert [header.commit_sha for header in newest] == [a_sha(99), a_sha(5), a_sha(2)]


def test_a_gpu_counts_its_rows_by_kind() -> None:
    judged, silent = a_point(3, benchmark="softmax"), a_point(3, benchmark="topk")
    other = a_point(3, header=a_header(3, gpu_uuid="GPU-2"))
    headers = [judged.header, other.header]
    rows = latest_rows([judged, silent, other], by_key(a_verdict(judged)), LINE)

    first, second = sorted(summarize(headers, rows, LINE), key=lambda s: s.header.gpu_uuid, reverse=True)

    assert first.counts[Kind.CONFIRMED] == 1
    assert first.counts[Kind.NOT_JUDGED] == 1
    assert sum(first.counts.values()) == 2
    assert sum(second.counts.values()) == 1
