"""Hypothesis strategies for whole runs: every field anything that its record allows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from store.records import (
    CacheState,
    Case,
    ClockRegime,
    Commit,
    Failure,
    FoldStatus,
    GitTag,
    Interval,
    Kernel,
    Measurement,
    PairedRole,
    Quantity,
    Reading,
    Run,
    RunHeader,
    Scalar,
    Stage,
    Tier,
    Timer,
    Window,
)

# Any character that UTF-8 can carry: control characters, NUL and emoji included.
text = st.text(st.characters(codec="utf-8"), max_size=12)
int64 = st.integers(-(2**63), 2**63 - 1)
small = st.integers(0, 1000)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=1e-300, max_value=1e12)
instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
shas = st.text("0123456789abcdef", min_size=40, max_size=40)
scalars: st.SearchStrategy[Scalar] = st.none() | st.booleans() | st.integers() | finite | text
readings = st.builds(Reading, value=st.booleans() | int64 | finite | text) | st.builds(Reading, error=text)
contexts = st.dictionaries(text, readings, max_size=3)
cases = st.builds(Case.of, text, st.dictionaries(text, scalars, max_size=3))
triples = st.tuples(int64, int64, int64)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """An interval, or a refused fold with or without a centre."""
    if draw(st.booleans()):
        return Interval(draw(st.none() | positive), None, None, draw(small), FoldStatus.REFUSED)
    low, center, high = sorted(draw(st.tuples(finite, finite, finite)))
    return Interval(
        center, low, high, draw(small), draw(st.sampled_from([FoldStatus.OK, FoldStatus.PROVISIONAL]))
    )


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """A window; lists per sample are there or not, values in them known or not."""
    n = draw(st.integers(0, 4))

    def per_sample(values: st.SearchStrategy[Any]) -> Any:
        return tuple(draw(st.lists(values, min_size=n, max_size=n) | st.just([])))

    return Window(
        pass_index=draw(small),
        position=draw(small),
        pid=draw(small),
        started_at=draw(instants),
        samples_ms=tuple(draw(st.lists(positive, min_size=n, max_size=n))),
        exclusions=tuple(draw(st.lists(st.none() | text, min_size=n, max_size=n))),
        latency_ms=per_sample(finite),
        sum_ms=per_sample(finite),
        copy_ms=per_sample(finite),
        n_kernels=per_sample(int64),
        pause_ms=per_sample(finite),
        sm_clock_mhz=per_sample(st.none() | int64),
        throttle_reasons=per_sample(st.none() | int64),
        warmup_calls=draw(int64),
        warmup_ms=draw(finite),
        inner_reps=draw(int64),
        attempts=draw(small),
        telemetry=draw(contexts),
        invalid=draw(st.none() | text),
    )


kernels = st.builds(
    Kernel, name=text, grid=triples, block=triples, cluster=triples, registers=int64, shared_bytes=int64,
    count=int64,
)  # fmt: skip
measurements = st.builds(
    Measurement,
    case=cases,
    quantity=st.sampled_from(Quantity),
    cache_state=st.sampled_from(CacheState),
    tags=st.lists(text, max_size=2).map(tuple),
    source=text,
    interval=intervals(),
    resolution_ms=finite,
    tier=st.sampled_from(Tier),
    tier_evidence=st.lists(text, max_size=2).map(tuple),
    kernels=st.lists(kernels, max_size=2).map(tuple),
    flops=st.none() | finite,
    bytes_moved=st.none() | finite,
    windows=st.lists(windows(), max_size=3).map(tuple),
    fold_version=small,
    renamed_from=st.none() | text,
)
failures = st.builds(
    Failure, case=st.none() | cases, stage=st.sampled_from(Stage), kind=text, message=text, source=text,
    log=text, pass_index=st.none() | small,
)  # fmt: skip
commits = st.builds(
    Commit,
    sha=shas,
    parents=st.lists(shas, max_size=2).map(tuple),
    author=text,
    authored_at=instants,
    committed_at=instants,
    subject=text,
)
git_tags = st.builds(GitTag, name=text, commit_sha=shas)
headers = st.builds(
    RunHeader,
    run_id=st.uuids().map(str),
    repository=st.uuids().map(str),  # commits of one example do not meet those of another
    commit_sha=st.none() | shas,
    dirty=st.booleans(),
    base_ref=st.none() | text,
    merge_base=st.none() | shas,
    history_note=st.none() | text,
    started_at=instants,
    ended_at=instants,
    gpu_uuid=text,
    gpu_name=text,
    timer=st.sampled_from(Timer),
    clock_regime=st.sampled_from(ClockRegime),
    environment=text,
    passes=small,
    seed=int64,
    suites=st.lists(text, max_size=2).map(tuple),
    tool_version=text,
    protocol_version=small,
    interrupted=st.booleans(),
    context=contexts,
    aa_study=st.none() | st.uuids().map(str),
    confirms_run_id=st.none() | st.uuids().map(str),
)
paired_headers = st.builds(
    replace, headers, paired_with=st.uuids().map(str), paired_role=st.sampled_from(PairedRole)
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run in which every series occurs once and every commit has one set of parents."""
    header = draw(headers | paired_headers)
    chosen = draw(st.lists(measurements, max_size=3))
    distinct = {header.series_key(m.case, m.quantity, m.cache_state).id: m for m in chosen}
    return Run(
        header=header,
        measurements=tuple(distinct.values()),
        failures=tuple(draw(st.lists(failures, max_size=2))),
        history=tuple(draw(st.lists(commits, max_size=4, unique_by=lambda commit: commit.sha))),
        git_tags=tuple(draw(st.lists(git_tags, max_size=2))),
    )
