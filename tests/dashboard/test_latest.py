"""What moved lately, worst first."""

from __future__ import annotations

from builders import a_header, a_sha
from rows import a_point, a_verdict

from dashboard.latest import NOT_JUDGED, keep, lately, latest_rows, newest_runs, summarize
from store.records import Outcome, SeriesPoint, Standing, Tier, Verdict

LINE = frozenset(a_sha(number) for number in range(1, 30))


def by_key(*verdicts: Verdict) -> dict[tuple[str, str], Verdict]:
    return {(verdict.run_id, verdict.series.id): verdict for verdict in verdicts}


def names(points: list[SeriesPoint], verdicts: dict[tuple[str, str], Verdict]) -> list[str]:
    return [row.point.series.case.benchmark for row in latest_rows(points, verdicts, LINE)]


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


def test_a_series_is_shown_as_its_newest_run_left_it() -> None:
    old, new = a_point(3, center=0.2), a_point(4, center=0.3)

    (row,) = latest_rows([old, new], by_key(a_verdict(old)), LINE)

    assert row.point.interval.center == 0.3
    assert row.outcome == NOT_JUDGED


def test_a_branch_does_not_hide_the_main_line() -> None:
    on_branch = a_point(header=a_header(99, merge_base=a_sha(4)))

    rows = latest_rows([a_point(4), on_branch], {}, LINE)

    assert sorted(row.on_line for row in rows) == [False, True]


def test_filters_narrow_by_every_word_and_by_outcome_gpu_and_tier() -> None:
    softmax = a_point(3, benchmark="softmax", tier=Tier.B)
    topk = a_point(3, benchmark="topk")
    rows = latest_rows([softmax, topk], by_key(a_verdict(topk)), LINE)

    def kept(**filters: object) -> list[str]:
        return [row.point.series.case.benchmark for row in keep(rows, **filters)]  # type: ignore[arg-type]

    assert kept() == ["topk", "softmax"]
    assert kept(text="1024 SOFT") == ["softmax"]
    assert kept(text="soft 4096") == []
    assert kept(outcomes=["REGRESSED"]) == ["topk"]
    assert kept(outcomes=[NOT_JUDGED]) == ["softmax"]
    assert kept(tiers=["B"]) == ["softmax"]
    assert kept(gpu_uuids=["GPU-of-nobody"]) == []


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


def test_measurements_without_a_verdict_are_counted_as_such() -> None:
    judged, silent = a_point(3, benchmark="softmax"), a_point(3, benchmark="topk")

    summary = summarize(
        judged.header,
        line=LINE,
        points=[judged, silent, a_point(4)],
        verdicts=by_key(a_verdict(judged)),
        n_failed=2,
    )

    assert summary.counts["REGRESSED"] == 1
    assert summary.counts[NOT_JUDGED] == 1
    assert sum(summary.counts.values()) == 2
    assert summary.n_failed == 2
