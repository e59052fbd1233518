"""What must hold of a run before it is stored or sent, beyond what its records check themselves."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import TYPE_CHECKING

from store.errors import StoreInvalid
from store.records import SHA_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from store.records import Measurement, Run, RunHeader, Verdict, Window

RUN_ID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INTEGER_LIMIT = 2**63
_SAMPLE_MS_MAX = 1e12  # thirty years: beyond it, statistics of samples may overflow
_SAMPLE_LISTS = ("latency_ms", "sum_ms", "copy_ms", "pause_ms")
_INTEGER_LISTS = ("n_kernels", "sm_clock_mhz", "throttle_reasons")


def check_run(run: Run) -> None:
    """Refuse a run that could not be stored as it is, or not be told from another.

    Raises:
        StoreInvalid: the run id is no UUID, a commit id is not in full, an instant has no
            time zone, a number is not finite or does not fit 64 bits, or a series occurs twice.
    """
    _check_header(run.header)
    seen: dict[str, str] = {}
    for measurement in run.measurements:
        label = measurement.case.label
        series_id = run.series_key(measurement).id
        if series_id in seen:
            raise StoreInvalid(
                f"run {run.header.run_id} measures {label} twice, from {seen[series_id]} and from "
                f"{measurement.source}: rename one of the benchmarks"
            )
        seen[series_id] = measurement.source
        _check_measurement(measurement, f"measurement {label}")
    for index, failure in enumerate(run.failures):
        _check_numbers(failure, f"failure {index}")
    for commit in run.history:
        _check_instants(commit, f"commit {commit.sha}")
    for tag in run.git_tags:
        if not SHA_PATTERN.fullmatch(tag.commit_sha):
            raise StoreInvalid(
                f"tag {tag.name!r} points at {tag.commit_sha!r}, which is not a full commit id"
            )


def check_verdict(verdict: Verdict) -> None:
    """Refuse a verdict that could not be stored as it is.

    Raises:
        StoreInvalid: a number is not finite or the instant has no time zone.
    """
    where = f"verdict on {verdict.series.case.label} of run {verdict.run_id}"
    _check_instants(verdict, where)
    parts = (
        ("candidate", verdict.candidate),
        ("baseline", verdict.baseline),
        ("second", verdict.second),
        ("drift", verdict.drift),
    )
    for name, record in (("", verdict), *((f" {name}", part) for name, part in parts)):
        if record is not None:
            _check_numbers(record, where + name)


def _check_header(header: RunHeader) -> None:
    where = f"run {header.run_id}"
    if not RUN_ID_PATTERN.fullmatch(header.run_id):
        raise StoreInvalid(f"the run id is no UUID in lower case: {header.run_id!r}")
    for name in ("paired_with", "aa_study", "confirms_run_id"):
        other = getattr(header, name)
        if other is not None and not RUN_ID_PATTERN.fullmatch(other):
            raise StoreInvalid(f"{where}: {name} is no UUID in lower case: {other!r}")
    for name in ("commit_sha", "merge_base"):
        sha = getattr(header, name)
        if sha is not None and not SHA_PATTERN.fullmatch(sha):
            raise StoreInvalid(f"{where}: {name} {sha!r} is not a full commit id")
    _check_instants(header, where)
    _check_numbers(header, where)
    for name, reading in header.context.items():
        _check_number(reading.value, f"{where}: context {name}")


def _check_measurement(measurement: Measurement, where: str) -> None:
    _check_numbers(measurement, where)
    _check_numbers(measurement.interval, f"{where}: interval")
    for kernel in measurement.kernels:
        _check_numbers(kernel, f"{where}: kernel {kernel.name}")
        for value in (*kernel.grid, *kernel.block, *kernel.cluster):
            _check_number(value, f"{where}: kernel {kernel.name}")
    for index, window in enumerate(measurement.windows):
        _check_window(window, f"{where}: window {index}")


def _check_window(window: Window, where: str) -> None:
    _check_numbers(window, where)
    _check_instants(window, where)
    longest = max(window.samples_ms, default=0.0)
    if longest > _SAMPLE_MS_MAX:
        raise StoreInvalid(f"{where}: a sample is {longest:g} ms, longer than any run")
    for name in _SAMPLE_LISTS:
        if not all(map(math.isfinite, getattr(window, name))):
            raise StoreInvalid(f"{where}: {name} holds a value that is not finite")
    for name in _INTEGER_LISTS:
        known = [value for value in getattr(window, name) if value is not None]
        for value in (min(known), max(known)) if known else ():
            _check_number(value, f"{where}: {name}")
    for name, reading in window.telemetry.items():
        _check_number(reading.value, f"{where}: telemetry {name}")


def _check_numbers(record: Any, where: str) -> None:
    for name, value in _values(record):
        _check_number(value, f"{where}: {name}")


def _check_instants(record: Any, where: str) -> None:
    for name, value in _values(record):
        if name.endswith("_at") and value.utcoffset() is None:
            raise StoreInvalid(f"{where}: {name} {value} has no time zone")


def _check_number(value: object, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise StoreInvalid(f"{where} is {value}, which is not finite: leave it out, or give the reason")
    if isinstance(value, int) and not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise StoreInvalid(f"{where} is {value}, which does not fit 64 bits")


def _values(record: Any) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(record, field.name)) for field in fields(record))
