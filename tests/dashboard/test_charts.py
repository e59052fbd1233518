"""Charts, by the specification that the browser gets."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_commit, a_measurement, a_sha, a_window
from rows import a_point, a_timeline, a_verdict, an_interval

from dashboard.charts.effects import can_be_drawn, effects_chart
from dashboard.charts.trend import describe_trend, picked, trend_chart, value_axis
from dashboard.charts.windows import SAMPLES_MAX, samples_step, windows_chart
from dashboard.trend import TrendRow, trend_rows
from store.records import FoldStatus, Interval, Outcome, Quantity, Standing, Tier

COMMITS = {a_sha(number): a_commit(number) for number in (1, 2, 3)}


def some_rows() -> list[TrendRow]:
    points = [a_point(1), a_point(2, tier=Tier.B), a_point(3, center=0.2625)]
    verdict = a_verdict(points[2])
    return trend_rows(
        points,
        timeline=a_timeline(1, 2, 3),
        commits=COMMITS,
        line=frozenset(COMMITS),
        verdicts={(verdict.run_id, verdict.series.id): verdict},
    )


def spec_of(rows: list[TrendRow], **axis: Any) -> dict[str, Any]:
    chart = trend_chart(
        rows,
        series=rows[0].point.series,
        gpu_name="NVIDIA H200",
        timeline=a_timeline(1, 2, 3),
        axis=value_axis(rows, **axis),
    )
    return chart.to_dict()


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of the last layer, wherever the specification keeps it."""
    layer = spec["layer"][-1]
    data = layer.get("data") or spec["data"]
    if "values" in data:
        return list(data["values"])
    return list(spec["datasets"][data["name"]])


def test_a_trend_stands_in_commit_order_with_commit_ids_below() -> None:
    spec = spec_of(some_rows())

    x = spec["layer"][-1]["encoding"]["x"]
    assert x["field"] == "slot"
    assert x["type"] == "quantitative"
    assert '["0001", "0002", "0003"]' in x["axis"]["labelExpr"]


def test_times_are_drawn_in_the_unit_of_the_median() -> None:
    spec = spec_of(some_rows())

    assert [round(datum["center"], 6) for datum in values_of(spec)] == [250.0, 250.0, 262.5]
    assert spec["layer"][0]["encoding"]["y"]["axis"]["title"] == "device busy time (us)"


def test_a_relative_axis_shows_percent_of_change() -> None:
    spec = spec_of(some_rows(), reference_ms=0.25)

    assert [round(datum["center"], 6) for datum in values_of(spec)] == [0.0, 0.0, 5.0]


def test_a_logarithmic_axis_holds_every_interval() -> None:
    scale = spec_of(some_rows(), logarithmic=True)["layer"][0]["encoding"]["y"]["scale"]

    assert scale["type"] == "log"
    assert scale["domain"][0] < 249.0
    assert scale["domain"][1] > 263.5


def test_noise_alone_does_not_fill_the_height() -> None:
    rows = some_rows()[:1]

    low, high = spec_of(rows)["layer"][0]["encoding"]["y"]["scale"]["domain"]

    assert (high - low) / 250.0 > 0.03


def test_a_tier_has_a_shape_and_a_colour_of_its_own() -> None:
    encoding = spec_of(some_rows())["layer"][-1]["encoding"]

    assert encoding["shape"]["scale"]["domain"] == ["A", "B", "C"]
    assert len(set(encoding["shape"]["scale"]["range"])) == 3
    assert len(set(encoding["color"]["scale"]["range"])) == 3


def test_a_confirmed_step_is_named_in_words() -> None:
    data = values_of(spec_of(some_rows()))

    assert [datum["mark_text"] for datum in data] == ["", "", "confirmed +5.00 %"]
    assert [datum["standing"] for datum in data] == ["", "", "confirmed"]


def test_the_tooltip_holds_what_a_person_needs() -> None:
    spec = spec_of(some_rows())

    fields = {entry["field"] for entry in spec["layer"][-1]["encoding"]["tooltip"]}
    assert fields == {
        "commit", "subject", "authored", "median", "interval", "verdict", "evidence", "windows", "gpu",
    }  # fmt: skip
    newest = values_of(spec)[-1]
    assert newest["subject"] == "Change number 3"
    assert newest["windows"] == "8 windows, 240 samples"
    assert newest["interval"] == "261.5 … 263.5 us"


def test_a_click_reports_commit_and_run() -> None:
    spec = spec_of(some_rows())

    params = {param["name"]: param for param in spec["params"]}
    assert params["pick"]["select"]["fields"] == ["sha", "run"]
    assert params["pick"]["select"]["type"] == "point"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"selection": {"pick": [{"sha": "abc", "run": "r1"}]}}, ("abc", "r1")),
        ({"selection": {"pick": [{"sha": "", "run": "r1"}]}}, (None, "r1")),
        ({"selection": {"pick": [{"sha": 7}]}}, (None, None)),
        ({"selection": {"pick": []}}, (None, None)),
        ({"selection": {}}, (None, None)),
        ({}, (None, None)),
        (None, (None, None)),
    ],
)
def test_only_a_whole_click_counts(event: object, expected: tuple[str | None, str | None]) -> None:
    assert picked(event) == expected


def test_a_point_without_bounds_is_drawn_and_one_without_a_number_is_not() -> None:
    no_bounds = a_point(1, interval=Interval(0.25, None, None, 2, FoldStatus.REFUSED), tier=Tier.C)
    no_number = a_point(2, interval=Interval(None, None, None, 0, FoldStatus.REFUSED), tier=Tier.C)
    rows = trend_rows(
        [no_bounds, no_number], timeline=a_timeline(1, 2, 3), commits={}, line=frozenset(), verdicts={}
    )

    (datum,) = values_of(spec_of(rows))

    assert datum["bounded"] is False
    assert datum["interval"] == "n/a"


def test_a_trend_is_described_for_those_who_cannot_see_it() -> None:
    rows = some_rows()

    sentence = describe_trend(rows, series=rows[0].point.series)

    assert "softmax[rows=1024] over 3 commits" in sentence
    assert "from 250.0 us at the oldest to 262.5 us at the newest" in sentence
    assert "1 flagged or confirmed" in sentence


def test_elapsed_time_is_not_called_device_time() -> None:
    point = a_point(1)
    series = point.header.series_key(point.series.case, Quantity.ELAPSED, point.series.cache_state)
    rows = trend_rows(
        [a_point(1, series=series)], timeline=a_timeline(1), commits={}, line=frozenset(), verdicts={}
    )

    assert value_axis(rows).title == "elapsed time (us)"


def test_candidate_and_baseline_share_an_axis_of_percent() -> None:
    verdict = a_verdict(a_point())

    spec = effects_chart([verdict]).to_dict()

    (datum,) = (
        (data for data in spec["datasets"].values() if "label" in data[0])
        if "datasets" in spec
        else (spec["layer"][0]["data"]["values"],)
    )
    assert round(datum[0]["candidate_center"], 6) == 5.0
    assert round(datum[0]["baseline_low"], 6) == -0.4
    assert datum[0]["effect"] == "+5.00 %"


def test_a_verdict_without_a_baseline_is_not_drawn() -> None:
    verdict = a_verdict(a_point(), baseline=None, outcome=Outcome.INCONCLUSIVE, standing=Standing.NONE)

    assert not can_be_drawn(verdict)
    with pytest.raises(ValueError, match="lacks an interval"):
        effects_chart([verdict])


def samples_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found = list(spec.get("datasets", {}).values())
    found += [layer["data"]["values"] for layer in spec["layer"] if "values" in layer.get("data", {})]
    return next(values for values in found if values and "kind" in values[0])


def test_samples_left_out_of_the_fold_are_drawn_with_their_reason() -> None:
    window = a_window(0, samples_ms=(0.25, 0.26), exclusions=(None, "clock outside the band"))
    measurement = a_measurement(windows=(window, a_window(1), a_window(2)))

    samples = samples_of(windows_chart(measurement).to_dict())

    assert samples[0]["kind"] == "counts"
    assert samples[1]["kind"] == "left out"
    assert samples[1]["why"] == "no: clock outside the band"


def test_a_window_that_does_not_count_is_drawn_as_left_out() -> None:
    window = a_window(0, n=2, invalid="another process used the GPU")
    measurement = a_measurement(windows=(window, a_window(1), a_window(2), a_window(3)))

    samples = samples_of(windows_chart(measurement).to_dict())

    assert {datum["kind"] for datum in samples if datum["pass"] == 0} == {"left out"}


def test_many_samples_are_thinned_evenly() -> None:
    windows = tuple(a_window(index, n=900) for index in range(8))
    measurement = a_measurement(windows=windows, interval=an_interval())

    assert samples_step(measurement) == 3
    assert len(samples_of(windows_chart(measurement).to_dict())) <= SAMPLES_MAX
